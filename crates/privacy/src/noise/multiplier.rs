//! z: how much noise there is for one unit of Δ.

use std::fmt;

/// Bits after the point of z.
pub(super) const BITS: u32 = 20;

/// The smallest and the largest z.
const RANGE: (f64, f64) = (1.0 / 128.0, 1_048_575.0);

/// A number that cannot be z.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a noise multiplier of {0}: it must be between 0.0078125 (2^-7) and 1048575 (2^20 - 1)")]
pub struct MultiplierError(pub f64);

/// z: the standard deviation of the noise of a sum, divided by Δ.
///
/// It is a multiple of 2⁻²⁰, so that σ follows from it in integers and is the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Multiplier(u64);

impl Multiplier {
    /// `z`, rounded up to the next multiple of 2⁻²⁰.
    ///
    /// # Errors
    ///
    /// If `z` is not between 2⁻⁷ and 2²⁰ − 1.
    pub fn new(z: f64) -> Result<Self, MultiplierError> {
        if !(RANGE.0..=RANGE.1).contains(&z) {
            return Err(MultiplierError(z));
        }
        Ok(Self((z * unit()).ceil() as u64))
    }

    /// The next larger one.
    ///
    /// # Errors
    ///
    /// If it is the largest one.
    pub fn next(self) -> Result<Self, MultiplierError> {
        let next = (self.0 + 1) as f64 / unit();
        Self::new(next)
    }

    /// z itself, exactly.
    pub fn value(self) -> f64 {
        self.0 as f64 / unit()
    }

    /// z·2²⁰, below 2⁴⁰.
    pub(super) fn integer(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Multiplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// 2²⁰.
fn unit() -> f64 {
    (1_u64 << BITS) as f64
}
