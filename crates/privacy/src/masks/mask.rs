//! The mask of one author: its own stream, and one stream with every other author of its sum.
//!
//! The stream of a pair is added by the author with the lower position and subtracted by the other, so
//! it cancels in the sum of all, and in nothing less. The own stream stays in the sum; only after the
//! block is final can its key be computed, from t openings.

use std::fmt;

use curve25519_dalek::RistrettoPoint;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::kdf::{Kdf, Label};
use super::keys::MemberKeys;
use super::ready::{OwnKeysError, ReadyList, Root};
use super::stream::{self, StreamError, StreamKey};
use super::sum::SumAuthors;
use super::transcript::{DealError, coefficient};
use super::words::{Sign, Word};

/// Reason for which a member has no mask for a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// The list does not fit the own keys.
    #[error(transparent)]
    Keys(#[from] OwnKeysError),
    /// The member is not an author of the sum.
    #[error("the own position {0} is no author of the sum, so there is nothing to mask")]
    NoAuthor(u16),
    /// A derived scalar is zero.
    #[error(transparent)]
    Zero(DealError),
}

/// Fault of one stream of a mask, if all others are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFault {
    /// It is not there.
    Missing,
    /// It is subtracted where it has to be added, or added where it has to be subtracted.
    Reversed,
    /// It is there twice.
    Twice,
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Reversed => "there with the wrong sign",
            Self::Twice => "there twice",
        })
    }
}

/// The keys of all streams of one author's mask.
#[derive(Clone)]
pub struct Mask(Vec<(StreamKey, Sign)>);

impl Mask {
    /// The mask of the owner of `keys` as an author of `sum`.
    ///
    /// # Errors
    ///
    /// If the list does not have the own keys, or the sum does not have the own position.
    pub fn derive(
        ready: &ReadyList,
        keys: &MemberKeys,
        sum: &SumAuthors,
    ) -> Result<Self, MaskError> {
        ready.own(keys)?;
        let own = keys.position();
        if !sum.authors().contains(&own) {
            return Err(MaskError::NoAuthor(own));
        }
        let constant = coefficient(keys, ready.root(), 0);
        let constant = constant.map_err(|zero| MaskError::Zero(zero.into()))?;
        let opened = Zeroizing::new(RistrettoPoint::mul_base(&constant));
        let mut streams = vec![(own_key(ready.root(), own, &opened), Sign::Plus)];
        let members = ready.members().iter();
        let others = members.filter(|member| {
            member.position != own && sum.authors().binary_search(&member.position).is_ok()
        });
        streams.extend(others.map(|other| {
            let mut ends = [
                (own, keys.public().exchange.bytes()),
                (other.position, other.keys.exchange.bytes()),
            ];
            ends.sort_unstable_by_key(|(position, _)| *position);
            let sign = if own < other.position {
                Sign::Plus
            } else {
                Sign::Minus
            };
            let common = keys.exchange(&other.keys.exchange);
            (pair_key(ready.root(), ends, &common), sign)
        }));
        Ok(Self(streams))
    }

    /// Masks `words` in place: those of the vector from word `at` on. Chunks may come in any order;
    /// each word must be masked once.
    ///
    /// # Errors
    ///
    /// If the words go beyond what ChaCha20 gives for one key (256 GiB).
    pub fn apply<W: Word>(&self, at: u64, words: &mut [W]) -> Result<(), StreamError> {
        stream::apply(self.0.iter().map(|(key, sign)| (key, *sign)), at, words)
    }

    /// Takes the mask off `words`, as [`Mask::apply`] puts it on.
    pub(crate) fn take_off<W: Word>(&self, at: u64, words: &mut [W]) -> Result<(), StreamError> {
        let streams = self.0.iter().map(|(key, sign)| (key, sign.other()));
        stream::apply(streams, at, words)
    }

    /// The stream of this mask, from 0 for the own one, by which alone `rest` can be explained: words of
    /// zeros with a mask, from which this mask was taken off. `None` if there is none. Several words make
    /// sure that it is no chance.
    pub(crate) fn explained_by<W: Word>(
        &self,
        at: u64,
        rest: &[W],
    ) -> Result<Option<(usize, StreamFault)>, StreamError> {
        let zero = |words: &[W]| words.iter().all(|word| *word == W::default());
        for (nth, (key, sign)) in self.0.iter().enumerate() {
            let with = |sign: Sign, words: &[W]| {
                let mut words = words.to_vec();
                stream::apply(std::iter::once((key, sign)), at, &mut words).map(|()| words)
            };
            let without = with(*sign, rest)?;
            let fault = if zero(&without) {
                StreamFault::Missing
            } else if zero(&with(*sign, &without)?) {
                StreamFault::Reversed
            } else if zero(&with(sign.other(), rest)?) {
                StreamFault::Twice
            } else {
                continue;
            };
            return Ok(Some((nth, fault)));
        }
        Ok(None)
    }

    /// The keys with their signs, the own one first.
    #[cfg(test)]
    pub(crate) fn streams(&self) -> &[(StreamKey, Sign)] {
        &self.0
    }
}

impl ZeroizeOnDrop for Mask {}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask of {} secret streams", self.0.len())
    }
}

/// b = KDF(self; root, author, S).
pub(crate) fn own_key(root: Root, author: u16, opened: &RistrettoPoint) -> StreamKey {
    let compressed = Zeroizing::new(opened.compress());
    let key = Kdf::new(Label::Own)
        .part(&root.0)
        .position(author)
        .part(compressed.as_bytes())
        .key();
    StreamKey(key)
}

/// s = KDF(pair; root, lower position, higher position, A of the lower, A of the higher, a·A).
fn pair_key(root: Root, [low, high]: [(u16, [u8; 32]); 2], common: &[u8; 32]) -> StreamKey {
    let key = Kdf::new(Label::Pair)
        .part(&root.0)
        .position(low.0)
        .position(high.0)
        .part(&low.1)
        .part(&high.1)
        .part(common)
        .key();
    StreamKey(key)
}
