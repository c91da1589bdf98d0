//! A blob cut into chunks that can each be verified against the blob's BLAKE3 hash.
//!
//! BLAKE3 is a tree: the *chaining value* of an aligned subtree depends only on its bytes and its
//! position, and merging the chaining values upwards gives the root, which is the hash (Aumasson,
//! Neves, O'Connor and Wilcox-O'Hearn 2021, "BLAKE3", section 2.1). Chunks here are subtrees of
//! [`CHUNK`] bytes. A client first checks that their chaining values merge into the requested hash.
//! Then it can verify each chunk by itself, from any holder.

use std::thread;

use blake3::hazmat::{self, ChainingValue, HasherExt, Mode};
use protocol::Hash;

/// Size of a chunk in bytes; the last chunk of a blob may be shorter. Subtrees of BLAKE3 have a power
/// of two.
pub(crate) const CHUNK: usize = 256 << 10;
/// Fewest chunks that are hashed on a thread of their own: 4 MiB take two milliseconds.
const PART: u64 = 16;

/// The length of a blob, and the chaining values of its chunks, which were verified against its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    root: Hash,
    length: u64,
    /// Empty for a blob of a single chunk, which is verified by the hash itself.
    values: Vec<ChainingValue>,
}

/// Number of chunks of a blob of `length` bytes. An empty blob is one empty chunk.
pub(crate) fn chunks(length: u64) -> u64 {
    length.div_ceil(CHUNK as u64).max(1)
}

/// Number of chaining values of a blob of `length` bytes.
pub(crate) fn values(length: u64) -> u64 {
    match chunks(length) {
        1 => 0,
        many => many,
    }
}

impl Tree {
    /// Computes the tree of a blob.
    pub(crate) fn of(blob: &[u8]) -> Self {
        if blob.len() <= CHUNK {
            let (root, length) = (Hash::of(blob), blob.len() as u64);
            return Self {
                root,
                length,
                values: Vec::new(),
            };
        }
        let values = all_values(blob);
        let length = blob.len() as u64;
        Self {
            root: merge_root(&values, length),
            length,
            values,
        }
    }

    /// The tree with the length and values that a holder sent; `None` unless they merge into `root`.
    pub(crate) fn claimed(root: Hash, length: u64, values: Vec<ChainingValue>) -> Option<Self> {
        let right = values.len() as u64 == self::values(length)
            && (values.is_empty() || merge_root(&values, length) == root);
        right.then_some(Self {
            root,
            length,
            values,
        })
    }

    /// The blob's hash.
    pub(crate) fn root(&self) -> Hash {
        self.root
    }

    /// The blob's length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The chaining values, in the order of the chunks.
    pub(crate) fn values(&self) -> &[ChainingValue] {
        &self.values
    }

    /// Returns whether these bytes are the chunk of this number.
    pub(crate) fn holds(&self, chunk: u64, bytes: &[u8]) -> bool {
        match self.values.get(chunk as usize) {
            Some(&expected) => value((chunk, bytes)) == expected,
            None => self.values.is_empty() && chunk == 0 && Hash::of(bytes) == self.root,
        }
    }
}

/// The chaining values of a blob's chunks, computed on all cores.
fn all_values(blob: &[u8]) -> Vec<ChainingValue> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let many = chunks(blob.len() as u64).div_ceil(cores as u64).max(PART);
    let part = |(first, part): (u64, &[u8])| -> Vec<ChainingValue> {
        (first..).zip(part.chunks(CHUNK)).map(value).collect()
    };
    let firsts = (0u64..).step_by(many as usize);
    let mut parts = firsts.zip(blob.chunks(many as usize * CHUNK));
    thread::scope(|scope| {
        let first = parts.next();
        let others: Vec<_> = parts.map(|of| scope.spawn(move || part(of))).collect();
        let mut all = first.map_or_else(Vec::new, part);
        for other in others {
            all.extend(other.join().expect("hashing does not panic"));
        }
        all
    })
}

fn value((chunk, bytes): (u64, &[u8])) -> ChainingValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(chunk * CHUNK as u64);
    hasher.update(bytes).finalize_non_root()
}

/// Merges the chaining values of two or more chunks into the hash of the blob.
fn merge_root(values: &[ChainingValue], length: u64) -> Hash {
    let (left, right) = children(values, length);
    Hash(*hazmat::merge_subtrees_root(&left, &right, Mode::Hash).as_bytes())
}

fn merge(values: &[ChainingValue], length: u64) -> ChainingValue {
    if let [value] = values {
        return *value;
    }
    let (left, right) = children(values, length);
    hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash)
}

fn children(values: &[ChainingValue], length: u64) -> (ChainingValue, ChainingValue) {
    let left = hazmat::left_subtree_len(length);
    let (before, after) = values.split_at((left / CHUNK as u64) as usize);
    (merge(before, left), merge(after, length - left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    #[test]
    fn chunks_of_any_length_merge_into_the_blake3_hash() {
        let around = |n: usize| [n * CHUNK - 1, n * CHUNK, n * CHUNK + 1];
        let lengths = [0, 1, 1024]
            .into_iter()
            .chain((1..=7).chain([33, 50]).flat_map(around));
        for length in lengths {
            let blob = blob(length);
            let tree = Tree::of(&blob);
            assert_eq!(tree.root(), Hash::of(&blob), "{length} bytes");
            let claimed = Tree::claimed(tree.root(), tree.length(), tree.values().to_vec());
            assert_eq!(claimed, Some(tree.clone()), "{length} bytes");
            assert_eq!(
                chunks(length as u64) as usize,
                blob.chunks(CHUNK).len().max(1)
            );
            for (chunk, bytes) in (0u64..).zip(blob.chunks(CHUNK)) {
                assert!(tree.holds(chunk, bytes));
                assert!(!tree.holds(chunk + 1, bytes));
            }
        }
    }

    #[test]
    fn one_changed_bit_is_detected_in_its_chunk() {
        let mut blob = blob(3 * CHUNK + 5);
        let tree = Tree::of(&blob);
        blob[2 * CHUNK + 7] ^= 1;
        let held: Vec<_> = (0u64..)
            .zip(blob.chunks(CHUNK))
            .map(|(i, c)| tree.holds(i, c))
            .collect();
        assert_eq!(held, [true, true, false, true]);
    }

    #[test]
    fn a_tree_that_does_not_belong_to_the_hash_is_refused() {
        let tree = Tree::of(&blob(3 * CHUNK));
        let claim =
            |length, values: &[ChainingValue]| Tree::claimed(tree.root(), length, values.to_vec());
        let mut swapped = tree.values().to_vec();
        swapped.swap(0, 1);
        assert_eq!(claim(tree.length(), &swapped), None);
        assert_eq!(claim(tree.length(), &tree.values()[..2]), None);
        assert_eq!(claim(tree.length() + CHUNK as u64, tree.values()), None);
        assert_eq!(claim(2 * CHUNK as u64, &[]), None);
        // A length that is wrong by less than a chunk is detected by the last chunk.
        let short = claim(tree.length() - 1, tree.values());
        assert!(
            short.is_some_and(|short| !short.holds(2, &blob(3 * CHUNK)[2 * CHUNK..3 * CHUNK - 1]))
        );
    }
}
