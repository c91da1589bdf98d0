//! A blob cut into chunks that can each be verified against the blob's BLAKE3 hash.
//!
//! BLAKE3 is a tree: the *chaining value* of an aligned subtree depends on its bytes and its place
//! alone, and merging the chaining values upwards gives the root, which is the hash (Aumasson,
//! Neves, O'Connor and Wilcox-O'Hearn 2021, "BLAKE3", section 2.1). Chunks here are subtrees of
//! [`CHUNK`] bytes. Whoever has their chaining values, and has seen that these merge into the hash
//! that was asked for, can check each chunk on its own, from whomever it came.

use blake3::hazmat::{self, ChainingValue, HasherExt, Mode};
use protocol::Hash;

/// Bytes of a chunk; the last of a blob may be shorter. A power of two, as subtrees are.
pub(crate) const CHUNK: usize = 256 << 10;

/// The verified shape of a blob: its length, and a chaining value for each of its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    root: Hash,
    length: u64,
    /// None where the blob is a single chunk: the hash itself stands for it.
    values: Vec<ChainingValue>,
}

/// How many chunks `length` bytes are. An empty blob is one empty chunk.
pub(crate) fn chunks(length: u64) -> u64 {
    length.div_ceil(CHUNK as u64).max(1)
}

/// How many chaining values describe `length` bytes.
pub(crate) fn values(length: u64) -> u64 {
    match chunks(length) {
        1 => 0,
        many => many,
    }
}

impl Tree {
    /// Of a whole blob; reads it once.
    pub(crate) fn of(blob: &[u8]) -> Self {
        if blob.len() <= CHUNK {
            let (root, length) = (Hash::of(blob), blob.len() as u64);
            return Self {
                root,
                length,
                values: Vec::new(),
            };
        }
        let values: Vec<_> = (0u64..).zip(blob.chunks(CHUNK)).map(value).collect();
        let length = blob.len() as u64;
        Self {
            root: merge_root(&values, length),
            length,
            values,
        }
    }

    /// From what a holder said; `None` unless it merges into `root`.
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

    /// The blob's bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The chaining values, in the order of the chunks.
    pub(crate) fn values(&self) -> &[ChainingValue] {
        &self.values
    }

    /// Whether these bytes are that chunk of the blob.
    pub(crate) fn holds(&self, chunk: u64, bytes: &[u8]) -> bool {
        match self.values.get(chunk as usize) {
            Some(&expected) => value((chunk, bytes)) == expected,
            None => self.values.is_empty() && chunk == 0 && Hash::of(bytes) == self.root,
        }
    }
}

fn value((chunk, bytes): (u64, &[u8])) -> ChainingValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(chunk * CHUNK as u64);
    hasher.update(bytes).finalize_non_root()
}

/// Two or more chunks into the hash of the whole.
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
    fn chunks_merge_into_the_plain_hash_at_every_shape() {
        let around = |n: usize| [n * CHUNK - 1, n * CHUNK, n * CHUNK + 1];
        let lengths = [0, 1, 1024].into_iter().chain((1..=7).flat_map(around));
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
    fn one_changed_bit_is_noticed_in_its_chunk() {
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
        // A length that is wrong within the last chunk is found out by that chunk.
        let short = claim(tree.length() - 1, tree.values());
        assert!(
            short.is_some_and(|short| !short.holds(2, &blob(3 * CHUNK)[2 * CHUNK..3 * CHUNK - 1]))
        );
    }
}
