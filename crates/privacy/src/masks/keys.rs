//! Secrets of one member in a round, and the two public keys that follow from them.

use std::fmt;

use curve25519_dalek::{RistrettoPoint, Scalar};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::group::{ENCODED, Point};
use super::kdf::{Kdf, Label, ZeroScalar};

/// 32 random bytes, new for every epoch and round. Everything else that a member does in a masked
/// round follows from them and from the list. They are overwritten when they are dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// Takes bytes from the system's generator of random numbers, or those of the journal.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the journal.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl ZeroizeOnDrop for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A derived scalar is zero, so this secret cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key derived from this round's secret is zero, which happens once in 2^252 secrets: the silo \
     has to sit this round out"
)]
pub struct KeysError;

impl From<ZeroScalar> for KeysError {
    fn from(_: ZeroScalar) -> Self {
        Self
    }
}

/// The keys of one member for one epoch and round.
#[derive(Clone)]
pub struct MemberKeys {
    position: u16,
    secret: Secret,
    /// a and β.
    exchange: Zeroizing<Scalar>,
    share: Zeroizing<Scalar>,
    public: PublicPoints,
}

/// The two keys that a member's Contribution carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicPoints {
    /// A = a·G: two authors derive the key of their common stream from it.
    pub exchange: Point,
    /// B = β·G: authors give the member its share under it.
    pub share: Point,
}

impl MemberKeys {
    /// a = KDF(dh; secret, epoch, round, position) and β = KDF(share; the same).
    ///
    /// `epoch` is the epoch's id and `position` the member's place in the roster, from 0.
    ///
    /// # Errors
    ///
    /// If a scalar is zero.
    pub fn derive(
        secret: Secret,
        epoch: &[u8; 32],
        round: u64,
        position: u16,
    ) -> Result<Self, KeysError> {
        let scalar = |label| {
            Kdf::new(label)
                .part(&*secret.0)
                .part(epoch)
                .number(round)
                .position(position)
                .scalar()
        };
        let exchange = scalar(Label::Dh)?;
        let share = scalar(Label::Share)?;
        let public = PublicPoints {
            exchange: Point::new(RistrettoPoint::mul_base(&exchange)),
            share: Point::new(RistrettoPoint::mul_base(&share)),
        };
        Ok(Self {
            position,
            secret,
            exchange,
            share,
            public,
        })
    }

    /// The member's place in the roster.
    pub fn position(&self) -> u16 {
        self.position
    }

    /// Returns what the Contribution carries.
    pub fn public(&self) -> &PublicPoints {
        &self.public
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret.0
    }

    /// β.
    pub(crate) fn share(&self) -> &Scalar {
        &self.share
    }

    /// The bytes of a·A, for the A of another member.
    pub(crate) fn exchange(&self, other: &Point) -> Zeroizing<[u8; ENCODED]> {
        let common = Zeroizing::new(*self.exchange * other.point());
        let compressed = Zeroizing::new(common.compress());
        Zeroizing::new(compressed.to_bytes())
    }

    /// a.
    #[cfg(test)]
    pub(crate) fn exchange_secret(&self) -> &Scalar {
        &self.exchange
    }
}

impl ZeroizeOnDrop for MemberKeys {}

impl fmt::Debug for MemberKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("position", &self.position)
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown_by_debug() {
        let keys = MemberKeys::derive(Secret::new([7; 32]), &[1; 32], 3, 2).unwrap();
        let shown = format!("{keys:?} {:?}", keys.secret);
        let digits = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
        for secret in [&[7; 32], keys.exchange.as_bytes(), keys.share.as_bytes()] {
            assert!(!shown.contains(&digits(&secret[..4])), "{shown}");
            let decimal = format!("{:?}", &secret[..4]);
            assert!(!shown.contains(decimal.trim_matches(['[', ']'])), "{shown}");
        }
    }

    #[test]
    fn keys_differ_by_secret_epoch_round_and_position() {
        let derive = |secret, epoch, round, position| {
            let keys = MemberKeys::derive(Secret::new([secret; 32]), &[epoch; 32], round, position);
            *keys.unwrap().public()
        };
        let all = [
            derive(1, 1, 1, 1),
            derive(2, 1, 1, 1),
            derive(1, 2, 1, 1),
            derive(1, 1, 2, 1),
            derive(1, 1, 1, 2),
        ];
        let points = all.iter().flat_map(|keys| [keys.exchange, keys.share]);
        let points: std::collections::BTreeSet<_> = points.map(|point| point.bytes()).collect();
        assert_eq!(points.len(), 10);
    }
}
