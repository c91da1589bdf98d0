//! The one key derivation of secure-aggregation rounds: BLAKE3 in derive-key mode.
//!
//! `KDF(label; parts)` has the context `rota masks 1 ` + label and hashes the parts, each behind its
//! length as eight little-endian bytes. It gives 32 bytes for keys. For scalars it gives 64 bytes,
//! reduced modulo the order of the group, so that they are uniform.

use curve25519_dalek::Scalar;
use zeroize::{Zeroize, Zeroizing};

/// Purpose of a derived value. No two uses share a context, so no value of one is one of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    /// The secret a of a key A.
    Dh,
    /// The secret β of a key B.
    Share,
    /// A coefficient of the polynomial.
    Poly,
    /// A coefficient of the transcript's nonce polynomial.
    Nonce,
    /// The challenge of a transcript.
    Transcript,
    /// The key of an author's own stream.
    Own,
    /// The key of the stream of a pair of authors.
    Pair,
    /// The random scalar of the proof in an opening.
    Opening,
    /// The secrets of a rehearsal, and its answer.
    Rehearsal,
}

impl Label {
    /// The context of BLAKE3's derive-key mode.
    pub(crate) const fn context(self) -> &'static str {
        match self {
            Self::Dh => "rota masks 1 dh",
            Self::Share => "rota masks 1 share",
            Self::Poly => "rota masks 1 poly",
            Self::Nonce => "rota masks 1 nonce",
            Self::Transcript => "rota masks 1 transcript",
            Self::Own => "rota masks 1 self",
            Self::Pair => "rota masks 1 pair",
            Self::Opening => "rota masks 1 opening",
            Self::Rehearsal => "rota masks 1 rehearsal",
        }
    }
}

/// A derived scalar is zero. That has probability 2⁻²⁵², and such a scalar hides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZeroScalar;

/// A derivation under way. It is overwritten when it is dropped, since parts may be secret.
#[derive(Clone)]
pub(crate) struct Kdf(blake3::Hasher);

impl Kdf {
    /// `KDF(label; …)`, without parts so far.
    pub(crate) fn new(label: Label) -> Self {
        Self(blake3::Hasher::new_derive_key(label.context()))
    }

    /// One more part.
    pub(crate) fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// One more part that is made of `count` pieces of `size` bytes, in order.
    pub(crate) fn pieces<const SIZE: usize>(
        mut self,
        pieces: impl ExactSizeIterator<Item = [u8; SIZE]>,
    ) -> Self {
        let length = pieces.len() as u64 * SIZE as u64;
        self.0.update(&length.to_le_bytes());
        for piece in pieces {
            self.0.update(&piece);
        }
        self
    }

    /// One more part: a position, as two bytes.
    pub(crate) fn position(self, position: u16) -> Self {
        self.part(&position.to_le_bytes())
    }

    /// One more part: a number, as eight bytes.
    pub(crate) fn number(self, number: u64) -> Self {
        self.part(&number.to_le_bytes())
    }

    /// 32 bytes.
    pub(crate) fn key(self) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        self.fill(&mut *key);
        key
    }

    /// 64 bytes modulo the order of the group.
    pub(crate) fn scalar(self) -> Result<Zeroizing<Scalar>, ZeroScalar> {
        let mut wide = Zeroizing::new([0; 64]);
        self.fill(&mut *wide);
        let scalar = Zeroizing::new(Scalar::from_bytes_mod_order_wide(&wide));
        if *scalar == Scalar::ZERO {
            return Err(ZeroScalar);
        }
        Ok(scalar)
    }

    fn fill(&self, bytes: &mut [u8]) {
        let mut reader = self.0.finalize_xof();
        reader.fill(bytes);
        reader.zeroize();
    }
}

impl Drop for Kdf {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::testing::hex;

    /// The published vectors of BLAKE3: input length, first 64 bytes of its derive-key output.
    const VECTORS: &str = include_str!("vectors/blake3-derive-key.txt");

    #[test]
    fn blake3_derives_the_published_keys() {
        let context = "BLAKE3 2019-12-27 16:29:52 test vectors context";
        let mut seen = 0;
        for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
            let (length, output) = line.split_once(' ').unwrap();
            let length: usize = length.parse().unwrap();
            let input: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let mut hasher = blake3::Hasher::new_derive_key(context);
            hasher.update(&input);
            let mut wide = [0; 64];
            Kdf(hasher).fill(&mut wide);
            assert_eq!(wide.to_vec(), hex(output), "{length} bytes");
            seen += 1;
        }
        assert!(seen >= 8);
    }

    #[test]
    fn parts_are_hashed_behind_their_lengths() {
        let derived = Kdf::new(Label::Pair).part(b"ab").part(b"c").key();
        let mut bytes = Vec::new();
        for part in [&b"ab"[..], b"c"] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        assert_eq!(*derived, blake3::derive_key("rota masks 1 pair", &bytes));
        let moved = Kdf::new(Label::Pair).part(b"a").part(b"bc").key();
        assert_ne!(derived, moved);
        let pieces = Kdf::new(Label::Pair).pieces([*b"ab", *b"cd"].into_iter());
        assert_eq!(pieces.key(), Kdf::new(Label::Pair).part(b"abcd").key());
    }

    #[test]
    fn the_first_half_of_a_scalar_is_the_key() {
        let kdf = || Kdf::new(Label::Poly).number(7).position(2);
        let mut wide = [0; 64];
        kdf().fill(&mut wide);
        assert_eq!(wide[..32], *kdf().key());
        let scalar = kdf().scalar().unwrap();
        assert_eq!(*scalar, Scalar::from_bytes_mod_order_wide(&wide));
    }

    #[test]
    fn every_label_has_a_context_of_its_own() {
        use Label::*;
        let labels = [
            Dh, Share, Poly, Nonce, Transcript, Own, Pair, Opening, Rehearsal,
        ];
        let keys: std::collections::BTreeSet<_> = labels.map(|label| *Kdf::new(label).key()).into();
        assert_eq!(keys.len(), labels.len());
    }
}
