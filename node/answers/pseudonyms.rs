//! Pseudonyms of an institution in the rounds of questions.

use protocol::SecretKey;

/// Purpose for which the secret of pseudonyms is derived.
const PSEUDONYMS: &str = "rota 2026-11-29 pseudonyms of institutions in questions";

/// A pseudonym for every question, of which nobody else can tell whose it is: they follow from a secret.
pub(super) struct Pseudonyms([u8; 32]);

impl Pseudonyms {
    /// Those of the institution with this key.
    pub(super) fn of(key: &SecretKey) -> Self {
        Self(blake3::derive_key(PSEUDONYMS, &key.to_bytes()))
    }

    /// The one in this question.
    pub(super) fn in_question(&self, question: usize) -> u64 {
        let mut hash = blake3::Hasher::new_keyed(&self.0);
        hash.update(b"pseudonym of a question");
        hash.update(&(question as u64).to_le_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.finalize().as_bytes()[..8]);
        u64::from_le_bytes(first)
    }
}
