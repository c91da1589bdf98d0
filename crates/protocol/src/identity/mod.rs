//! Ed25519 keys and signatures, and the one place where signatures are checked.

mod simulated;

use std::fmt;

use ed25519_dalek::{Signer, SigningKey};
use serde::{Deserialize, Serialize};

pub use simulated::SimulatedKeys;

/// A member's public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicKey(#[serde(with = "crate::codec::bytes")] pub [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An Ed25519 signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature(#[serde(with = "crate::codec::bytes")] [u8; 64]);

impl Signature {
    /// From its 64 bytes.
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        Self(*bytes)
    }

    /// The 64 bytes of the signature.
    pub fn to_bytes(self) -> [u8; 64] {
        self.0
    }
}

/// A member's signing key.
#[derive(Clone)]
pub struct SecretKey {
    key: SigningKey,
    /// `true` if the key makes keyed hashes in the place of signatures.
    simulated: bool,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey of {}", self.public())
    }
}

impl SecretKey {
    /// The key with these 32 secret bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self {
            key: SigningKey::from_bytes(bytes),
            simulated: false,
        }
    }

    /// The 32 secret bytes, for the key file and for the node's own mesh.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.key.to_bytes()
    }

    /// The matching public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    /// Signs `message`.
    pub fn sign(&self, message: &[u8]) -> Signature {
        if self.simulated {
            return self.keyed_hash(message);
        }
        Signature::from_bytes(&self.key.sign(message).to_bytes())
    }

    /// A secret value derived from this key. The label keeps uses (nonces, seeds) apart.
    pub fn derive(&self, label: &str, parts: &[&[u8]]) -> [u8; 32] {
        let key = blake3::derive_key(
            "rota: values derived from a signing key",
            self.key.as_bytes(),
        );
        let mut hasher = blake3::Hasher::new_keyed(&key);
        for part in std::iter::once(&label.as_bytes()).chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

/// A public key, parsed for checking signatures.
#[derive(Debug, Clone)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl VerifyingKey {
    /// Parses a public key. `None` if it is no point of the curve, or one of the few weak points
    /// under which a signature of one message fits others too.
    pub fn new(key: &PublicKey) -> Option<Self> {
        ed25519_dalek::VerifyingKey::from_bytes(&key.0)
            .ok()
            .filter(|key| !key.is_weak())
            .map(Self)
    }

    /// The key's bytes.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.to_bytes())
    }
}

/// A signature to check.
#[derive(Debug, Clone, Copy)]
pub struct SignatureClaim<'a> {
    /// The key that is said to have signed.
    pub key: &'a VerifyingKey,
    /// The signed bytes.
    pub message: &'a [u8],
    /// The signature.
    pub signature: Signature,
}

/// Checks signatures. An implementation may count and cache checks; its answer must be a function of
/// the bytes.
pub trait Verifier: Send + Sync {
    /// Returns true if a signature is valid (`verify_strict`: no malleable form is accepted).
    fn verify(&self, claim: &SignatureClaim<'_>) -> bool;

    /// Returns true if all signatures are valid, checked as one batch.
    fn verify_all(&self, claims: &[SignatureClaim<'_>]) -> bool;
}

/// Checks every signature, every time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Strict;

impl Verifier for Strict {
    fn verify(&self, claim: &SignatureClaim<'_>) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&claim.signature.to_bytes());
        claim.key.0.verify_strict(claim.message, &signature).is_ok()
    }

    fn verify_all(&self, claims: &[SignatureClaim<'_>]) -> bool {
        if let [claim] = claims {
            return self.verify(claim);
        }
        let messages: Vec<_> = claims.iter().map(|claim| claim.message).collect();
        let keys: Vec<_> = claims.iter().map(|claim| claim.key.0).collect();
        let signatures: Vec<_> = claims
            .iter()
            .map(|claim| ed25519_dalek::Signature::from_bytes(&claim.signature.to_bytes()))
            .collect();
        claims.is_empty() || ed25519_dalek::verify_batch(&messages, &signatures, &keys).is_ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_only_if_every_signature_does() {
        let keys: Vec<_> = (0..5).map(|i| SecretKey::from_bytes(&[i; 32])).collect();
        let public: Vec<_> = keys
            .iter()
            .map(|k| VerifyingKey::new(&k.public()).unwrap())
            .collect();
        let mut signatures: Vec<_> = keys.iter().map(|k| k.sign(b"yes")).collect();
        let check = |signatures: &[Signature]| {
            let claims: Vec<_> = public
                .iter()
                .zip(signatures)
                .map(|(key, &signature)| SignatureClaim {
                    key,
                    message: b"yes",
                    signature,
                })
                .collect();
            (
                Strict.verify_all(&claims),
                claims.iter().all(|c| Strict.verify(c)),
            )
        };
        assert_eq!(check(&signatures), (true, true));
        signatures[3] = keys[3].sign(b"no");
        assert_eq!(check(&signatures), (false, false));
        signatures[3] = keys[2].sign(b"yes");
        assert_eq!(check(&signatures), (false, false));
    }

    #[test]
    fn weak_keys_are_refused() {
        // The neutral element: every message has a valid signature under it.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        assert!(VerifyingKey::new(&PublicKey(neutral)).is_none());
    }
}
