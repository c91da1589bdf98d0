//! Identifies authors of a void sum: everything that an author sent in a round follows from its secret and the
//! list, but for its vector's numbers. So an author that discloses its secret can be examined by anybody who kept
//! what it sent.
//!
//! The keys of a secret have to be those of the list: no other secret gives them. Then the transcript is
//! computed again, and the whole mask is taken off the masked vector, own stream and streams of pairs.
//! The remainder has to be the weight times integers within their bound, and four zeros. Whoever reads
//! this knows the author's vector: a disclosure is for rounds whose sum tells nothing.

use super::keys::MemberKeys;
use super::mask::{Mask, MaskError, StreamFault};
use super::numbers::{CHECKS, Fixed};
use super::ready::ReadyList;
use super::stream::StreamError;
use super::sum::SumAuthors;
use super::transcript::{DealError, Transcript};
use super::vector::{BLOCK, Shape};
use super::words::{Width, Word};

/// Parts that an author sent for a list.
#[derive(Debug, Clone, Copy)]
pub struct SentParts<'a> {
    /// Its weight in the sum, at least 1.
    pub weight: u64,
    /// Its transcript.
    pub transcript: &'a [u8],
    /// Its masked vector.
    pub vector: &'a [u8],
}

/// Deviation of an author from what follows from its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskDeviation {
    /// Another transcript.
    Transcript,
    /// A vector of another size.
    Length {
        /// Bytes of the vector.
        found: usize,
        /// Bytes that it must have.
        expected: usize,
    },
    /// A single stream of the mask is wrong.
    Stream {
        /// The author with whom the stream is shared; `None` for the own stream.
        with: Option<u16>,
        /// Fault of the stream.
        fault: StreamFault,
    },
    /// The mask is another one.
    Mask,
    /// A check coordinate is not zero, where the mask is right.
    Check {
        /// The check coordinate, from 0.
        at: usize,
        /// Its value.
        value: i64,
    },
    /// A coordinate is no multiple of the author's weight.
    Weight {
        /// The coordinate.
        at: u64,
        /// Its value.
        value: i64,
        /// The author's weight.
        weight: u64,
    },
    /// A coordinate is larger than clipping leaves it.
    Reach {
        /// The coordinate.
        at: u64,
        /// Its value.
        value: i64,
        /// The largest absolute value.
        most: u64,
    },
}

impl MaskDeviation {
    /// The deviation as a sentence about "it"; `name` gives the name of the member at a position.
    pub fn sentence(&self, name: impl Fn(u16) -> String) -> String {
        match *self {
            Self::Transcript => {
                "its transcript is not the one that follows from its secret and the list".into()
            }
            Self::Length { found, expected } => {
                format!("its vector has {found} bytes, expected {expected}")
            }
            Self::Stream { with: None, fault } => {
                format!("the stream of its own is {fault} in its mask")
            }
            Self::Stream {
                with: Some(with),
                fault,
            } => format!(
                "the stream that it shares with {} is {fault} in its mask",
                name(with)
            ),
            Self::Mask => {
                "its vector has another mask than the one that follows from its secret and the list"
                    .into()
            }
            Self::Check { at, value } => {
                format!("its mask is right, and its check coordinate {at} is {value}, expected 0")
            }
            Self::Weight { at, value, weight } => format!(
                "its mask is right, and its coordinate {at} is {value}, no multiple of its weight {weight}"
            ),
            Self::Reach { at, value, most } => format!(
                "its mask is right, and its coordinate {at} is {value}, expected at most {most}: it was \
                 not clipped"
            ),
        }
    }
}

/// Reason for which an author cannot be examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExamineError {
    /// The keys do not belong to an author of this list and sum.
    #[error(transparent)]
    Mask(#[from] MaskError),
    /// A derived number is zero.
    #[error(transparent)]
    Deal(#[from] DealError),
    /// Vectors beyond the end of the streams.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Compares what an author sent with what follows from its keys. Gives the first thing that deviates.
///
/// # Errors
///
/// If the list has other keys at this position, so that the secret is not that of the author, or the
/// position is no author of the sum.
pub fn examine(
    ready: &ReadyList,
    sum: &SumAuthors,
    (shape, fixed): (Shape, Fixed),
    keys: &MemberKeys,
    sent: SentParts<'_>,
) -> Result<Option<MaskDeviation>, ExamineError> {
    let mask = Mask::derive(ready, keys, sum)?;
    if Transcript::deal(ready, keys)? != sent.transcript {
        return Ok(Some(MaskDeviation::Transcript));
    }
    let (found, expected) = (sent.vector.len(), shape.bytes());
    if found != expected {
        return Ok(Some(MaskDeviation::Length { found, expected }));
    }
    let own = keys.position();
    let others = sum.authors().iter().copied().filter(|other| *other != own);
    let others: Vec<_> = others.collect();
    let deviation = match shape.width() {
        Width::Bits32 => deviation::<u32>(&mask, &others, (shape, fixed), sent),
        Width::Bits64 => deviation::<u64>(&mask, &others, (shape, fixed), sent),
    };
    Ok(deviation?)
}

/// Returns what is wrong with a masked vector of the right size. `others` are the other authors, ascending.
fn deviation<W: Word>(
    mask: &Mask,
    others: &[u16],
    (shape, fixed): (Shape, Fixed),
    sent: SentParts<'_>,
) -> Result<Option<MaskDeviation>, StreamError> {
    let width = W::WIDTH.bytes() as usize;
    let mut block = vec![W::default(); BLOCK.min(shape.words())];
    let mut checks = [W::default(); CHECKS];
    let mut beyond = None;
    for (nth, bytes) in sent.vector.chunks(BLOCK * width).enumerate() {
        let at = nth * BLOCK;
        let words = &mut block[..bytes.len() / width];
        words.fill(W::default());
        W::add_bytes(words, bytes);
        mask.take_off(at as u64, words)?;
        for (at, word) in (at..).zip(words.iter()) {
            match at.checked_sub(shape.coordinates()) {
                Some(check) => checks[check] = *word,
                None => {
                    beyond = beyond.or_else(|| wrong(at as u64, word.signed(), fixed, sent.weight))
                }
            }
        }
    }
    let mut values = checks.iter().map(|word| word.signed()).enumerate();
    let Some((at, value)) = values.find(|(_, value)| *value != 0) else {
        return Ok(beyond);
    };
    // One wrong stream shows in all coordinates alike; the checks alone tell which one it is.
    if let Some((nth, fault)) = mask.explained_by(shape.coordinates() as u64, &checks)? {
        let with = nth.checked_sub(1).and_then(|nth| others.get(nth).copied());
        return Ok(Some(MaskDeviation::Stream { with, fault }));
    }
    Ok(Some(match beyond {
        None => MaskDeviation::Check { at, value },
        Some(_) => MaskDeviation::Mask,
    }))
}

/// Returns what is wrong with a coordinate of a weighted vector without its mask.
fn wrong(at: u64, value: i64, fixed: Fixed, weight: u64) -> Option<MaskDeviation> {
    let most = fixed.most().saturating_mul(weight);
    if value.unsigned_abs() > most {
        return Some(MaskDeviation::Reach { at, value, most });
    }
    let multiple = value.unsigned_abs().is_multiple_of(weight);
    (!multiple).then_some(MaskDeviation::Weight { at, value, weight })
}
