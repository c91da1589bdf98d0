//! The keys of the authors' own streams, computed from t openings.

use std::fmt;

use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::group::combination;
use super::mask::own_key;
use super::opening::Opening;
use super::polynomial::lagrange_at_zero;
use super::ready::ReadyList;
use super::stream::{self, StreamError, StreamKey};
use super::sum::SumAuthors;
use super::transcript::Transcripts;
use super::words::{Sign, Word};

/// Reason for which openings do not give the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SeedsError {
    /// Fewer than t.
    #[error("openings of {found} members, {threshold} are needed to open the round")]
    Few {
        /// Different members that opened.
        found: usize,
        /// t.
        threshold: usize,
    },
    /// Openings of different blocks, lists or transcripts.
    #[error("the opening of position {0} belongs to another block, list or set of transcripts")]
    Foreign(u16),
}

/// Reason for which streams cannot be taken off a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnmaskError {
    /// An author without transcript.
    #[error("position {0} is an author of the sum and has no transcript in the block")]
    Author(u16),
    /// Words beyond the end of the streams.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// The keys of the own streams of a block's authors.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub struct Seeds(Vec<(u16, StreamKey)>);

impl Seeds {
    /// Interpolates S of every author from any t openings of one block. More than t are welcome: the
    /// first t are used, and any others would give the same.
    ///
    /// # Errors
    ///
    /// If fewer than t different members opened, or the openings do not belong together.
    pub fn recover(
        ready: &ReadyList,
        transcripts: &Transcripts,
        openings: &[&Opening],
    ) -> Result<Self, SeedsError> {
        let belongs = |opening: &&&Opening| {
            opening.unlocks(ready, transcripts)
                && Some(opening.block()) == openings.first().map(|first| first.block())
        };
        if let Some(foreign) = openings.iter().find(|opening| !belongs(opening)) {
            return Err(SeedsError::Foreign(foreign.from()));
        }
        let mut used: Vec<&Opening> = openings.to_vec();
        used.sort_by_key(|opening| opening.from());
        used.dedup_by_key(|opening| opening.from());
        let (found, threshold) = (used.len(), ready.threshold());
        if found < threshold {
            return Err(SeedsError::Few { found, threshold });
        }
        used.truncate(threshold);
        let places: Vec<_> = used.iter().map(|opening| *opening.place()).collect();
        let weights = lagrange_at_zero(&places);
        let seeds = transcripts.authors().enumerate().map(|(at, author)| {
            let shares = used.iter().map(|opening| *opening.shares()[at].point());
            let opened = Zeroizing::new(combination(&weights, &shares.collect::<Vec<_>>()));
            (author, own_key(ready.root(), author, &opened))
        });
        Ok(Self(seeds.collect()))
    }

    /// Takes the own streams of a sum's authors off `words`: the added masked vectors of *all* of them,
    /// from word `at` on. What is left is the sum of the inputs.
    ///
    /// # Errors
    ///
    /// If an author has no transcript, or the words go beyond the end of the streams.
    pub fn unmask<W: Word>(
        &self,
        sum: &SumAuthors,
        at: u64,
        words: &mut [W],
    ) -> Result<(), UnmaskError> {
        let key = |author: &u16| {
            let found = self.0.binary_search_by_key(author, |(author, _)| *author);
            let found = found.map_err(|_| UnmaskError::Author(*author))?;
            Ok((&self.0[found].1, Sign::Minus))
        };
        let keys = sum.authors().iter().map(key);
        let keys: Vec<_> = keys.collect::<Result<_, UnmaskError>>()?;
        Ok(stream::apply(keys.into_iter(), at, words)?)
    }

    /// The keys by author.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> &[(u16, StreamKey)] {
        &self.0
    }
}

impl ZeroizeOnDrop for Seeds {}

impl fmt::Debug for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seeds of {} authors", self.0.len())
    }
}
