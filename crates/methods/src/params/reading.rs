//! Hashes a document and looks at its values in one pass over its bytes.

use multiversion::multiversion;

use crate::Digest;

/// Bytes that are hashed and looked at in turn: they stay in the processor's cache, so that looking
/// costs a small part of hashing.
const PIECE: usize = 1 << 17;

/// Size in bytes from which it is worth while to look at the values of a document: below it a model's norm
/// costs next to nothing.
const WORTH: usize = 1 << 16;

/// Findings of one pass over the bytes of a blob.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// BLAKE3 of all bytes.
    pub hash: Digest,
    /// The largest absolute value, if the blob is a model's document of 64 KiB or more.
    pub largest: Option<LargestAbs>,
}

/// The largest absolute value of a document, not finite where a value is not. Only a [`Reading`] makes one,
/// so that a [`Gate`](super::Gate) can rely on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LargestAbs(f32);

impl LargestAbs {
    /// An upper bound of the ℓ2 norm of a model with so many values: that of a model in which all values
    /// are as large, and a little more for rounding. Not finite where a value is not.
    pub(super) fn norm_at_most(self, values: usize) -> f64 {
        f64::from(self.0) * (values as f64).sqrt() * (1.0 + 1e-6)
    }
}

impl Reading {
    /// Reads a blob of any kind. Of one that begins like a document and is none, the largest value means
    /// nothing; a gate refuses it for its header.
    pub fn of(blob: &[u8]) -> Self {
        let values = values_at(blob).filter(|_| blob.len() >= WORTH);
        let Some(values) = values else {
            return Self {
                hash: *blake3::hash(blob).as_bytes(),
                largest: None,
            };
        };
        let mut hasher = blake3::Hasher::new();
        let (mut largest, mut at) = (0, 0);
        for piece in blob.chunks(PIECE) {
            hasher.update(piece);
            // Values begin at a multiple of four bytes, as pieces do: none is in two of them.
            let from = values.saturating_sub(at).min(piece.len());
            largest = largest_bits(&piece[from..]).max(largest);
            at += piece.len();
        }
        Self {
            hash: *hasher.finalize().as_bytes(),
            largest: Some(LargestAbs(f32::from_bits(largest))),
        }
    }
}

/// Returns where the values of a safetensors document begin: behind the header, whose length stands first.
fn values_at(blob: &[u8]) -> Option<usize> {
    let length = u64::from_le_bytes(*blob.first_chunk()?);
    let at = usize::try_from(length).ok()?.checked_add(8)?;
    (at <= blob.len() && at.is_multiple_of(4)).then_some(at)
}

/// The largest of these values without their signs, as bits: those of numbers have the numbers' order,
/// and those of what is not finite are larger.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
fn largest_bits(values: &[u8]) -> u32 {
    let (values, _) = values.as_chunks::<4>();
    let bits = values
        .iter()
        .map(|value| u32::from_le_bytes(*value) & (u32::MAX >> 1));
    bits.fold(0, u32::max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Layout, Params, Role, TensorSpec};

    /// The document of a model whose values are 0 but for some.
    fn document(values: usize, set: &[(usize, f32)]) -> bytes::Bytes {
        let spec = TensorSpec::new("w", [values], Role::Weight);
        let layout = Layout::new(vec![spec]).unwrap();
        let model = Params::build(&layout, |into| {
            set.iter().for_each(|&(at, value)| into[at] = value);
        });
        model.document()
    }

    #[test]
    fn the_hash_is_of_all_bytes_and_the_largest_value_of_the_model() {
        for values in [16_384, 32_768, 40_001, 100_000] {
            for at in [0, 1, values / 2, values - 1] {
                let document = document(values, &[(at, -3.5), ((at + 7) % values, 2.0)]);
                let read = Reading::of(&document);
                assert_eq!(read.hash, *blake3::hash(&document).as_bytes());
                assert_eq!(
                    read.largest,
                    Some(LargestAbs(3.5)),
                    "{values} values, at {at}"
                );
            }
        }
    }

    #[test]
    fn a_value_that_is_not_finite_is_the_largest() {
        for wrong in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let read = Reading::of(&document(50_000, &[(3, f32::MAX), (49_999, wrong)]));
            assert!(!read.largest.unwrap().0.is_finite(), "{wrong}");
        }
        let read = Reading::of(&document(50_000, &[(3, f32::MAX)]));
        assert_eq!(read.largest, Some(LargestAbs(f32::MAX)));
    }

    #[test]
    fn small_blobs_and_what_is_no_document_are_only_hashed() {
        let small = document(100, &[(1, 2.0)]);
        assert_eq!(Reading::of(&small).largest, None);
        assert_eq!(Reading::of(&[]).hash, *blake3::hash(&[]).as_bytes());
        let long = vec![0xffu8; WORTH];
        let read = Reading::of(&long);
        assert_eq!(read.hash, *blake3::hash(&long).as_bytes());
        assert_eq!(read.largest, None);
    }
}
