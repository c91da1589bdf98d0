//! Proofs that many pairs of points have one ratio: the batched DLEQ proofs of RFC 9497, section 2.2.
//!
//! The prover knows k and shows that B = k·A and Dᵢ = k·Cᵢ for all i, in two scalars. The pairs are
//! added up with weights dᵢ, hashes that nobody can choose, into one pair M = Σ dᵢ·Cᵢ and
//! Z = Σ dᵢ·Dᵢ. One proof then shows that log_A B = log_M Z.
//!
//! In the RFC a weight is a hash of the *own* pair and of what `context` holds. A prover that may
//! choose the Cᵢ can look for pairs whose errors cancel in the sum. `context` therefore has to hold a
//! hash of all pairs, as [`Opening`](super::Opening) does: then each try changes all weights.
//!
//! The functions are written for any group of prime order, as in the RFC.

use std::ops::{Add, Mul, Sub};

use sha2::{Digest, Sha512};

/// A group of prime order.
pub(crate) trait PrimeGroup {
    /// Integers modulo the order.
    type Scalar: Copy
        + PartialEq
        + Add<Output = Self::Scalar>
        + Sub<Output = Self::Scalar>
        + Mul<Output = Self::Scalar>;

    /// Elements of the group.
    type Element: Copy;

    /// A uniform scalar from uniform bytes.
    fn scalar(wide: &[u8; 64]) -> Self::Scalar;

    /// The one encoding of an element.
    fn encode(element: &Self::Element) -> [u8; 32];

    /// A multiple by a secret scalar, in constant time.
    fn multiply(scalar: &Self::Scalar, element: &Self::Element) -> Self::Element;

    /// The sum of multiples of public elements by public scalars.
    fn combine(scalars: &[Self::Scalar], elements: &[Self::Element]) -> Self::Element;
}

/// Statement of the proof: B = k·A, and Dᵢ = k·Cᵢ for each pair.
pub(crate) struct Statement<'a, G: PrimeGroup> {
    /// A, a generator of the group.
    pub(crate) base: G::Element,
    /// B.
    pub(crate) key: G::Element,
    /// All Cᵢ.
    pub(crate) before: &'a [G::Element],
    /// All Dᵢ, as many.
    pub(crate) after: &'a [G::Element],
    /// The RFC's contextString.
    pub(crate) context: &'a [u8],
}

/// A challenge and the response to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DleqProof<S> {
    /// c.
    pub(crate) challenge: S,
    /// s = r − c·k.
    pub(crate) response: S,
}

/// Reason for which a proof can be neither made nor checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Two lists of different lengths.
    #[error("{before} points before and {after} after multiplication: they must be as many")]
    Lengths {
        /// Points before.
        before: usize,
        /// Points after.
        after: usize,
    },
    /// RFC 9497 numbers the pairs with two bytes.
    #[error("{0} pairs, a batch has between 1 and {MOST_PAIRS}")]
    Pairs(usize),
    /// RFC 9380 allows 255 bytes for a tag, which begins with `HashToScalar-`.
    #[error("a context of {0} bytes, it may have {MOST_CONTEXT}")]
    Context(usize),
}

/// Pairs of a batch.
pub const MOST_PAIRS: usize = 65_535;

/// Bytes of a context.
pub const MOST_CONTEXT: usize = 255 - HASH_TO_SCALAR.len();

const HASH_TO_SCALAR: &[u8] = b"HashToScalar-";

/// A proof by the one who knows `key`, k, with a scalar `random` that is used for nothing else.
///
/// # Errors
///
/// If the lists differ in length, are empty or too long, or the context is too long.
pub(crate) fn prove<G: PrimeGroup>(
    statement: &Statement<'_, G>,
    key: &G::Scalar,
    random: &G::Scalar,
) -> Result<DleqProof<G::Scalar>, BatchError> {
    let weights = weights(statement)?;
    let before = G::combine(&weights, statement.before);
    // ComputeCompositesFast: the prover knows k.
    let after = G::multiply(key, &before);
    let commitments = [
        G::multiply(random, &statement.base),
        G::multiply(random, &before),
    ];
    let challenge = challenge(statement, [before, after], commitments);
    let response = *random - challenge * *key;
    Ok(DleqProof {
        challenge,
        response,
    })
}

/// Returns whether a proof shows the statement.
///
/// # Errors
///
/// If the lists differ in length, are empty or too long, or the context is too long.
pub(crate) fn verify<G: PrimeGroup>(
    statement: &Statement<'_, G>,
    proof: &DleqProof<G::Scalar>,
) -> Result<bool, BatchError> {
    let weights = weights(statement)?;
    let before = G::combine(&weights, statement.before);
    let after = G::combine(&weights, statement.after);
    let commitments = commitments::<G>([statement.base, statement.key], [before, after], proof);
    Ok(challenge(statement, [before, after], commitments) == proof.challenge)
}

/// Returns what the prover must have committed to: s·A + c·B and s·M + c·Z.
pub(crate) fn commitments<G: PrimeGroup>(
    keys: [G::Element; 2],
    composites: [G::Element; 2],
    proof: &DleqProof<G::Scalar>,
) -> [G::Element; 2] {
    let scalars = [proof.response, proof.challenge];
    [keys, composites].map(|pair| G::combine(&scalars, &pair))
}

/// The weights dᵢ of ComputeComposites.
fn weights<G: PrimeGroup>(statement: &Statement<'_, G>) -> Result<Vec<G::Scalar>, BatchError> {
    let (before, after) = (statement.before.len(), statement.after.len());
    if before != after {
        return Err(BatchError::Lengths { before, after });
    }
    if !(1..=MOST_PAIRS).contains(&before) {
        return Err(BatchError::Pairs(before));
    }
    if statement.context.len() > MOST_CONTEXT {
        return Err(BatchError::Context(statement.context.len()));
    }
    let tag = [b"Seed-", statement.context].concat();
    let seed = Sha512::new()
        .chain_update(prefixed(&G::encode(&statement.key)))
        .chain_update(prefixed(&tag))
        .finalize();
    let seed = prefixed(&seed);
    let pairs = statement.before.iter().zip(statement.after);
    let weights = pairs.enumerate().map(|(at, (before, after))| {
        let message = [
            &seed[..],
            &(at as u16).to_be_bytes(),
            &prefixed(&G::encode(before)),
            &prefixed(&G::encode(after)),
            b"Composite",
        ];
        hash_to_scalar::<G>(&message.concat(), statement.context)
    });
    Ok(weights.collect())
}

/// The challenge c.
fn challenge<G: PrimeGroup>(
    statement: &Statement<'_, G>,
    composites: [G::Element; 2],
    commitments: [G::Element; 2],
) -> G::Scalar {
    let elements = [&[statement.key], &composites[..], &commitments].concat();
    let mut message: Vec<u8> = elements
        .iter()
        .flat_map(|element| prefixed(&G::encode(element)))
        .collect();
    message.extend(b"Challenge");
    hash_to_scalar::<G>(&message, statement.context)
}

/// Bytes behind their length, in two bytes from the high one on.
fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

/// HashToScalar of RFC 9497, section 4.1: `expand_message_xmd` of RFC 9380 with SHA-512 gives 64
/// bytes, which are reduced modulo the order.
fn hash_to_scalar<G: PrimeGroup>(message: &[u8], context: &[u8]) -> G::Scalar {
    let mut tag = [HASH_TO_SCALAR, context].concat();
    tag.push(tag.len() as u8);
    let first = Sha512::new()
        .chain_update([0; 128])
        .chain_update(message)
        .chain_update([0, 64, 0])
        .chain_update(&tag)
        .finalize();
    let second = Sha512::new()
        .chain_update(first)
        .chain_update([1])
        .chain_update(&tag)
        .finalize();
    G::scalar(&second.into())
}

#[cfg(test)]
mod tests;
