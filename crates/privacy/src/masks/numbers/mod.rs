//! Numbers with a fixed point: what becomes of a model before it is masked, and of a sum afterwards.
//!
//! Masks add up exactly for integers only. A coordinate is v = model − start, in `f64`, clipped to
//! ± 8, times 2¹⁸, rounded to the nearest integer with ties to even. So a coordinate is at most 2²¹
//! in absolute value, and a weighted sum at most Σ w·2²¹: its *reach*. Words have 32 bits as long as the
//! reach is below 2³¹, else 64, so no honest sum wraps around.

use super::words::{Width, Word};

/// Coordinates after those of the model that are zero in every honest vector. If streams do not cancel
/// they are not zero in the sum.
pub const CHECKS: usize = 4;

/// Fixed-point encoding of real numbers as integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fixed {
    bound: f64,
    bits: u32,
}

/// Reason for which a fixed point is refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "numbers up to {bound} with {bits} bits after the point: the bound must be above 0, and bound \
     times 2^bits an integer below 2^52, so that every step is exact"
)]
pub struct FixedError {
    /// Largest absolute value.
    pub bound: f64,
    /// Bits after the point.
    pub bits: u32,
}

/// Reason for which numbers cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// Slices of different lengths.
    #[error(
        "{model} numbers of the model and {start} of the start, for {words} words: they must be as many"
    )]
    Lengths {
        /// Numbers of the start model.
        start: usize,
        /// Numbers of the trained model.
        model: usize,
        /// Words to write.
        words: usize,
    },
    /// NaN or infinite.
    #[error("coordinate {0} is not a finite number, in the start model or in the trained one")]
    NotFinite(usize),
    /// A start model that is too large.
    #[error(
        "coordinate {at} of the start model is {value}, it must be between -{bound} and {bound}"
    )]
    Start {
        /// The coordinate.
        at: usize,
        /// Value of the coordinate.
        value: f32,
        /// The largest absolute value.
        bound: f64,
    },
}

impl EncodeError {
    /// This error of a block of numbers that begins with coordinate `at`.
    pub(crate) fn beginning_at(self, at: usize) -> Self {
        match self {
            Self::NotFinite(coordinate) => Self::NotFinite(at + coordinate),
            other => other,
        }
    }
}

impl Fixed {
    /// Differences of models: up to ± 8, in steps of 2⁻¹⁸.
    pub const MODEL: Self = Self {
        bound: 8.0,
        bits: 18,
    };

    /// Numbers of questions: up to ± 2²², in steps of 2⁻³⁰.
    pub const QUESTION: Self = Self {
        bound: 4_194_304.0,
        bits: 30,
    };

    /// Numbers up to ± `bound` in steps of 2^−`bits`, for agreed ranges.
    ///
    /// # Errors
    ///
    /// If `bound` times 2^`bits` is not an integer between 1 and 2⁵².
    pub fn new(bound: f64, bits: u32) -> Result<Self, FixedError> {
        let most = bound * step(bits.min(52));
        let exact = most >= 1.0 && most <= step(52) && most == most.trunc();
        if bits > 52 || !exact {
            return Err(FixedError { bound, bits });
        }
        Ok(Self { bound, bits })
    }

    /// The largest absolute value of an encoded number.
    pub fn most(self) -> u64 {
        (self.bound * step(self.bits)) as u64
    }

    /// Returns whether training may begin at a model.
    ///
    /// # Errors
    ///
    /// If a coordinate is not finite or beyond the bound.
    pub fn check_start(self, start: &[f32]) -> Result<(), EncodeError> {
        for (at, value) in start.iter().copied().enumerate() {
            if !value.is_finite() {
                return Err(EncodeError::NotFinite(at));
            }
            if f64::from(value).abs() > self.bound {
                let bound = self.bound;
                return Err(EncodeError::Start { at, value, bound });
            }
        }
        Ok(())
    }

    /// One number as an integer, and whether it was clipped. It must not be NaN.
    pub fn integer(self, number: f64) -> (i64, bool) {
        let clipped = number.clamp(-self.bound, self.bound);
        let integer = (clipped * step(self.bits)).round_ties_even();
        (integer as i64, clipped != number)
    }

    /// Writes `weight` times the difference of two models into `words`, and says how many coordinates
    /// were clipped. Chunks of the models may come in any order.
    ///
    /// # Errors
    ///
    /// If the slices differ in length, or a number is not finite.
    pub fn encode<W: Word>(
        self,
        weight: u64,
        start: &[f32],
        model: &[f32],
        words: &mut [W],
    ) -> Result<u64, EncodeError> {
        if start.len() != model.len() || model.len() != words.len() {
            return Err(EncodeError::Lengths {
                start: start.len(),
                model: model.len(),
                words: words.len(),
            });
        }
        let mut clipped = 0;
        for (at, (word, (start, model))) in
            words.iter_mut().zip(start.iter().zip(model)).enumerate()
        {
            let difference = f64::from(*model) - f64::from(*start);
            if !difference.is_finite() {
                return Err(EncodeError::NotFinite(at));
            }
            let (integer, beyond) = self.integer(difference);
            *word = W::wrap(integer).times(weight);
            clipped += u64::from(beyond);
        }
        Ok(clipped)
    }

    /// The weighted mean of the differences, of one coordinate of a sum with these added weights.
    pub fn mean(self, sum: i64, weights: u64) -> f64 {
        sum as f64 / step(self.bits) / weights as f64
    }
}

/// 2^bits, for up to 52 bits.
fn step(bits: u32) -> f64 {
    (1_u64 << bits) as f64
}

/// Reason for which there is no reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// A weight of zero, which takes an author out of the sum.
    #[error("author {0} of the sum has weight 0: every weight must be at least 1")]
    ZeroWeight(usize),
    /// Too large for 64 bits.
    #[error(
        "the sum can reach 2^63, which words of 64 bits cannot hold: the weights must be smaller"
    )]
    TooLarge,
}

/// The largest absolute value that a coordinate of an honest sum has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reach(u64);

impl Reach {
    /// A given reach, as for sums with noise.
    ///
    /// # Errors
    ///
    /// If it is not below 2⁶³.
    pub fn new(reach: u64) -> Result<Self, ReachError> {
        if reach > i64::MAX as u64 {
            return Err(ReachError::TooLarge);
        }
        Ok(Self(reach))
    }

    /// That of a sum with these weights: Σ w times the largest encoded number.
    ///
    /// # Errors
    ///
    /// If a weight is zero, or the reach is not below 2⁶³.
    pub fn of(weights: &[u64], fixed: Fixed) -> Result<Self, ReachError> {
        let mut sum = 0_u64;
        for (at, weight) in weights.iter().enumerate() {
            if *weight == 0 {
                return Err(ReachError::ZeroWeight(at));
            }
            sum = sum.checked_add(*weight).ok_or(ReachError::TooLarge)?;
        }
        let reach = sum.checked_mul(fixed.most());
        Self::new(reach.ok_or(ReachError::TooLarge)?)
    }

    /// Bits of the words that hold it: 32 while it is below 2³¹.
    pub fn width(self) -> Width {
        if self.0 < 1 << 31 {
            Width::Bits32
        } else {
            Width::Bits64
        }
    }

    /// Returns whether a coordinate of a sum lies within it.
    pub fn holds(self, number: i64) -> bool {
        number.unsigned_abs() <= self.0
    }

    /// The number itself.
    pub fn most(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
