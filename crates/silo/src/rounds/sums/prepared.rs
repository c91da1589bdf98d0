//! Secret state of a silo for a secure-aggregation round.

use std::fmt;

use bytes::Bytes;
use methods::Params;
use privacy::masks::{MemberKeys, Secret};
use protocol::Hash;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::config::SiloConfig;

/// Begins the blob of what a silo keeps for a round. With the secret it is 48 bytes long, so that the
/// numbers of the model lie as in the model's own document.
const PREPARED: &[u8; 16] = b"rota prepared 1\n";

/// Begins that of integers that are added up as they are. Behind the secret stand the id of the epoch and the integers.
const INTEGERS: &[u8; 16] = b"rota prepared 2\n";

/// Secret state of a silo for a secure-aggregation round until it is adopted: all that it sends follows from it
/// and from the list. Nobody can guess the hash of its blob, because the blob has the secret in it.
#[derive(Debug, Clone)]
pub(crate) struct PreparedRound {
    pub(crate) round: u64,
    pub(crate) secret: Secret,
    pub(crate) input: PreparedInput,
}

/// Input that is masked.
#[derive(Clone)]
pub(crate) enum PreparedInput {
    /// The trained model.
    Model(Params),
    /// Integers that are added up as they are: with their noise, or answers. Noise is drawn once for an epoch and
    /// round, whatever lists, leads and restarts there are: the same noise in two sums would show what these differ
    /// by.
    Integers(SecretIntegers),
}

impl fmt::Debug for PreparedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model(_) => "Model(..)",
            Self::Integers(_) => "Integers(..)",
        })
    }
}

/// Integers that only this silo knows. They are overwritten when they are dropped.
#[derive(Clone)]
pub(crate) struct SecretIntegers(Zeroizing<Vec<i64>>);

impl SecretIntegers {
    /// So many zeros. There are never more, so no copy is left behind by growing.
    pub(crate) fn zeros(count: usize) -> Self {
        Self(Zeroizing::new(vec![0; count]))
    }

    /// These integers.
    pub(crate) fn of(integers: &[i64]) -> Self {
        Self(Zeroizing::new(integers.to_vec()))
    }

    pub(crate) fn all(&self) -> &[i64] {
        &self.0
    }

    pub(crate) fn all_mut(&mut self) -> &mut [i64] {
        &mut self.0
    }
}

impl ZeroizeOnDrop for SecretIntegers {}

impl fmt::Debug for SecretIntegers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secret integers", self.0.len())
    }
}

/// The secret in a blob that a silo keeps to itself for a secure-aggregation round, if its institution may disclose it.
/// Where it adds noise it may not: the vector would be known with this silo's noise alone. Nor may it in the round of
/// a question, for which nobody agreed to show the numbers of one silo.
pub fn disclosed_secret(blob: &[u8]) -> Option<Secret> {
    let rest = blob.strip_prefix(PREPARED)?;
    rest.first_chunk().copied().map(Secret::new)
}

impl PreparedRound {
    /// Beginning of the document of the model in the blob.
    pub(crate) const BEGINNING: usize = PREPARED.len() + 32;

    /// Returns whether a blob is of this kind. It is given to nobody, whoever finds out its hash.
    pub(crate) fn is(blob: &[u8]) -> bool {
        blob.starts_with(PREPARED) || blob.starts_with(INTEGERS)
    }

    /// The bytes that are kept where integers are masked, in this epoch only.
    pub(crate) fn integers_blob(secret: &Secret, epoch: &Hash, integers: &[i64]) -> Bytes {
        let size = INTEGERS.len() + 64 + 8 * integers.len();
        let mut blob = Zeroizing::new(Vec::with_capacity(size));
        for part in [INTEGERS, &secret.expose()[..], &epoch.0] {
            blob.extend_from_slice(part);
        }
        blob.extend(integers.iter().flat_map(|integer| integer.to_le_bytes()));
        Bytes::from_owner(blob)
    }

    /// The bytes that are kept.
    pub(crate) fn blob(secret: &Secret, document: &[u8]) -> Bytes {
        let blob = [PREPARED, &secret.expose()[..], document].concat();
        Bytes::from_owner(Zeroizing::new(blob))
    }

    /// Reads a blob that [`PreparedRound::blob`] or [`PreparedRound::integers_blob`] made. `admit` reads a model.
    /// Noise of another epoch is not used again.
    pub(crate) fn read(
        round: u64,
        blob: &Bytes,
        epoch: &Hash,
        admit: impl FnOnce(Bytes) -> Result<Params, String>,
    ) -> Result<Self, String> {
        if let Some(rest) = blob.strip_prefix(INTEGERS) {
            return Self::read_integers(round, rest, epoch);
        }
        let secret = blob
            .strip_prefix(PREPARED)
            .and_then(|rest| rest.first_chunk::<32>());
        let secret = secret.ok_or("the blob holds no secret of a secure-aggregation round")?;
        Ok(Self {
            round,
            secret: Secret::new(*secret),
            input: PreparedInput::Model(admit(blob.slice(Self::BEGINNING..))?),
        })
    }

    fn read_integers(round: u64, rest: &[u8], epoch: &Hash) -> Result<Self, String> {
        let (secret, rest) = rest
            .split_first_chunk::<32>()
            .ok_or("the blob holds no secret")?;
        let (of, numbers) = rest
            .split_first_chunk::<32>()
            .ok_or("the blob names no epoch")?;
        if of != &epoch.0 {
            return Err("what was prepared is of another epoch".into());
        }
        let (numbers, over) = numbers.as_chunks::<8>();
        if !over.is_empty() {
            return Err("the blob ends within a number".into());
        }
        let mut integers = SecretIntegers::zeros(numbers.len());
        for (integer, bytes) in integers.all_mut().iter_mut().zip(numbers) {
            *integer = i64::from_le_bytes(*bytes);
        }
        Ok(Self {
            round,
            secret: Secret::new(*secret),
            input: PreparedInput::Integers(integers),
        })
    }

    /// The keys of this round.
    ///
    /// # Errors
    /// A key is zero: the silo has to sit this round out.
    pub(crate) fn keys(&self, config: &SiloConfig) -> Result<MemberKeys, String> {
        let member = &config.member;
        let secret = self.secret.clone();
        let keys = MemberKeys::derive(secret, &member.epoch.id.0, self.round, member.me.0);
        keys.map_err(|error| error.to_string())
    }
}
