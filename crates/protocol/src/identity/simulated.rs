//! Keyed hashes in the place of signatures, for simulations in which one process holds all keys. They cost
//! far less, and prove nothing to anybody else: nobody without the secret key can check one, so nodes,
//! which check by [`Strict`](super::Strict), refuse it.

use std::collections::BTreeMap;

use super::{PublicKey, SecretKey, Signature, SignatureClaim, Verifier};

impl SecretKey {
    /// This key, with keyed hashes in the place of its signatures. The public key stays, and with it
    /// the id of a federation.
    #[must_use]
    pub fn simulated(self) -> Self {
        Self {
            simulated: true,
            ..self
        }
    }

    /// 64 bytes that only this key makes of this message.
    pub(super) fn keyed_hash(&self, message: &[u8]) -> Signature {
        let mut bytes = [0; 64];
        let mut hasher = blake3::Hasher::new_keyed(self.key.as_bytes());
        hasher.update(message);
        hasher.finalize_xof().fill(&mut bytes);
        Signature::from_bytes(&bytes)
    }
}

/// Checks simulated signatures by making them again: it holds the secret keys of all members.
#[derive(Debug, Clone, Default)]
pub struct SimulatedKeys(BTreeMap<PublicKey, SecretKey>);

impl SimulatedKeys {
    /// Returns true if the secret key of this public key is here.
    pub fn holds(&self, key: &PublicKey) -> bool {
        self.0.contains_key(key)
    }
}

impl FromIterator<SecretKey> for SimulatedKeys {
    fn from_iter<T: IntoIterator<Item = SecretKey>>(keys: T) -> Self {
        Self(keys.into_iter().map(|key| (key.public(), key)).collect())
    }
}

impl Extend<SecretKey> for SimulatedKeys {
    fn extend<T: IntoIterator<Item = SecretKey>>(&mut self, keys: T) {
        self.0
            .extend(keys.into_iter().map(|key| (key.public(), key)));
    }
}

/// A claim under a key that it does not hold does not hold.
impl Verifier for SimulatedKeys {
    fn verify(&self, claim: &SignatureClaim<'_>) -> bool {
        let key = self.0.get(&claim.key.public());
        key.is_some_and(|key| key.keyed_hash(claim.message) == claim.signature)
    }

    fn verify_all(&self, claims: &[SignatureClaim<'_>]) -> bool {
        claims.iter().all(|claim| self.verify(claim))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Strict, VerifyingKey};
    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes(&[seed; 32])
    }

    fn holds(
        verifier: &dyn Verifier,
        by: &SecretKey,
        message: &[u8],
        signature: Signature,
    ) -> bool {
        let key = &VerifyingKey::new(&by.public()).unwrap();
        let claim = SignatureClaim {
            key,
            message,
            signature,
        };
        assert_eq!(verifier.verify(&claim), verifier.verify_all(&[claim]));
        verifier.verify(&claim)
    }

    #[test]
    fn only_the_key_s_own_hash_of_the_message_holds() {
        let (one, other) = (key(1).simulated(), key(2).simulated());
        let keys: SimulatedKeys = [one.clone(), other.clone()].into_iter().collect();
        assert_eq!(one.public(), key(1).public());
        let signature = one.sign(b"yes");
        assert!(holds(&keys, &one, b"yes", signature));
        assert!(!holds(&keys, &one, b"no", signature));
        assert!(!holds(&keys, &other, b"yes", signature));
        for bit in 0..512 {
            let mut bytes = signature.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!holds(&keys, &one, b"yes", Signature::from_bytes(&bytes)));
        }
    }

    #[test]
    fn neither_kind_passes_for_the_other_and_strangers_never() {
        let (plain, simulated, stranger) = (key(1), key(1).simulated(), key(3).simulated());
        let keys: SimulatedKeys = [simulated.clone()].into_iter().collect();
        assert!(!holds(&Strict, &plain, b"yes", simulated.sign(b"yes")));
        assert!(!holds(&keys, &plain, b"yes", plain.sign(b"yes")));
        assert!(!holds(&keys, &stranger, b"yes", stranger.sign(b"yes")));
    }
}
