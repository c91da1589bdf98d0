//! Sensitivity of a sum to one unit: gradients become integers, each unit by itself.
//!
//! # The idea
//!
//! A *unit* is what the bound protects: one row of a table, or one person with all rows that name this
//! person. Noise hides a unit only if the unit's share of the sum is small. So every unit's vector is made
//! shorter if it is longer than a norm C (*clipped*). Masks add integers, so the vector is divided by a
//! small step and rounded:
//!
//! ```text
//! L = max(2^10, 50·√d)        steps in the norm C, for vectors of d coordinates
//! step = C / L
//! Δ = L + √d/2                no unit changes the sum of integers by more than this, in norm
//! ```
//!
//! Rounding moves each coordinate by half a step at most, so the whole vector by √d/2 at most. That gives
//! Δ by the triangle inequality. Numbers with a floating point could still exceed it by a last bit, so
//! the norm of the integers is computed exactly, and a unit beyond Δ counts as zero. So does a unit with
//! a number that is not finite.
//!
//! **Each unit is rounded by itself,** before it is added. If a silo rounded its sum instead, one unit
//! could tip the rounding of every coordinate by one whole step: with d = 2 and L = 8 by 9.22 in place of
//! Δ = 8.71 (`tests.rs` has both data sets).
//!
//! **A unit has the same integers wherever it stands.** They are a function of its own numbers, in one
//! fixed order of additions, whatever the batch, the place in it and the number of threads. If a last bit
//! depended on the batch, one unit more would tip roundings of many others.
//!
//! **Numbers that repeat are rounded alike.** A gradient of a model has other digits in every row, and errors of rounding
//! cancel in the sum. The numbers of a question may be the same in thousands of rows, and then they add up. So sums of
//! questions have 2^20 steps in C ([`Sensitivity::fine`]): the sum of n rows is off by n·C/2^21 at most, and Δ is 2^20 + √d/2.
//!
//! # Sums of more units than agreed
//!
//! The number of units of a silo is agreed on, because the reach of a sum follows from it. A silo with more still
//! takes part: if it stayed away, one unit would decide that. Its sum is *saturated*: every coordinate is
//! brought within what the agreed units can add up to ([`Sensitivity::saturate`]). That moves no two sums
//! further apart, so one unit changes a saturated sum by Δ at most, too.
//!
//! ```
//! use privacy::sensitivity::{Clip, Sensitivity};
//!
//! let sensitivity = Sensitivity::new(2)?;
//! assert_eq!(sensitivity.steps(), 1024.0);
//! let clip = Clip::new(1.0, sensitivity)?; // gradients are clipped to norm 1
//! let mut sum = [0; 2];
//! clip.add(&[0.5, -0.25], &mut sum)?;
//! clip.add(&[30.0, 40.0], &mut sum)?; // becomes (0.6, 0.8)
//! assert_eq!(sum, [512 + 614, -256 + 819]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clip;
mod saturate;

pub use clip::{Clip, ClipError, LengthError, Unit};

use crate::masks::{Reach, ReachError};

/// The most coordinates of a vector.
pub const MOST_COORDINATES: u64 = 1 << 32;

/// Steps in the norm C of short vectors.
const FEWEST_STEPS: u64 = 1 << 10;

/// Steps in the norm C where many units have the same numbers.
const FINE_STEPS: u64 = 1 << 20;

/// Bits after the point of 4Δ² where it is irrational.
const BITS: u32 = 24;

/// The number of coordinates is no number of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("vectors of {0} coordinates: they must have between 1 and {MOST_COORDINATES}")]
pub struct DimensionError(pub u64);

/// L: how many steps the norm C has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// A fixed number, where this is more than 50·√d.
    Whole(u64),
    /// 50·√d.
    Root,
    /// 2^20, whatever d is.
    Fine,
}

/// L and Δ for vectors of d coordinates, see the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sensitivity {
    dimension: u64,
    steps: Steps,
}

impl Sensitivity {
    /// For vectors of `dimension` coordinates.
    ///
    /// # Errors
    ///
    /// If there are none, or more than [`MOST_COORDINATES`].
    pub fn new(dimension: u64) -> Result<Self, DimensionError> {
        if dimension == 0 || dimension > MOST_COORDINATES {
            return Err(DimensionError(dimension));
        }
        // 50·√d ≤ 2^10, in integers.
        let short = 2500 * dimension <= FEWEST_STEPS * FEWEST_STEPS;
        let steps = if short {
            Steps::Whole(FEWEST_STEPS)
        } else {
            Steps::Root
        };
        Ok(Self { dimension, steps })
    }

    /// For vectors of `dimension` coordinates of which many units have the same numbers, with 2^20 steps in the norm C.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn fine(dimension: u64) -> Result<Self, DimensionError> {
        let steps = Steps::Fine;
        Self::new(dimension).map(|sensitivity| Self {
            steps,
            ..sensitivity
        })
    }

    /// With another L, to show what depends on it.
    #[cfg(test)]
    fn with_steps(dimension: u64, steps: u64) -> Self {
        let steps = Steps::Whole(steps);
        Self { dimension, steps }
    }

    /// d, the number of coordinates.
    pub fn dimension(self) -> u64 {
        self.dimension
    }

    /// L, the number of steps in the norm C.
    pub fn steps(self) -> f64 {
        match self.steps {
            Steps::Whole(steps) => steps as f64,
            Steps::Root => 50.0 * (self.dimension as f64).sqrt(),
            Steps::Fine => FINE_STEPS as f64,
        }
    }

    /// Whole steps of a norm of 1, where C stands for this norm: counts are exact on them.
    pub fn whole_steps(self, norm: f64) -> f64 {
        (self.steps() / norm).floor()
    }

    /// Δ, to show it. What is decided with Δ is decided in integers instead.
    pub fn value(self) -> f64 {
        self.steps() + (self.dimension as f64).sqrt() / 2.0
    }

    /// Returns whether integers with this sum of squares have at most norm Δ. Exact.
    pub fn holds(self, squares: u128) -> bool {
        let most = match self.steps {
            Steps::Whole(steps) => self.square_of_steps(steps),
            Steps::Root => self.square_of_root(),
            Steps::Fine => self.square_of_steps(FINE_STEPS),
        };
        squares
            .checked_mul(4)
            .is_some_and(|squares| squares <= most)
    }

    /// 4Δ²·2^bits as an integer that is never too small, and the bits. It is exact where Δ² is rational;
    /// else less than 1 too large.
    pub(crate) fn four_squares(self) -> (u128, u32) {
        match self.steps {
            Steps::Whole(steps) => {
                let (rational, root) = self.parts(steps, BITS);
                let floor = root.isqrt();
                (rational + floor + u128::from(floor * floor < root), BITS)
            }
            Steps::Root => (self.square_of_root(), 0),
            // No bit after the point: 4Δ² is beyond 2^42 already.
            Steps::Fine => (self.square_of_steps(FINE_STEPS) + 1, 0),
        }
    }

    /// 4Δ² for so many steps, rounded down.
    fn square_of_steps(self, steps: u64) -> u128 {
        let (rational, root) = self.parts(steps, 0);
        rational + root.isqrt()
    }

    /// 4Δ²·2^bits = rational + √root: 4·(L + √d/2)² = 4L² + d + √(16·L²·d).
    fn parts(self, steps: u64, bits: u32) -> (u128, u128) {
        let (steps, dimension) = (u128::from(steps), u128::from(self.dimension));
        let rational = (4 * steps * steps + dimension) << bits;
        (rational, (16 * steps * steps * dimension) << (2 * bits))
    }

    /// 4·(50·√d + √d/2)² = 101²·d.
    fn square_of_root(self) -> u128 {
        10_201 * u128::from(self.dimension)
    }

    /// The largest absolute value that an honest coordinate of a differentially private sum has: Δ for each of `units`,
    /// and 10·σ·√authors, ten standard deviations of the noise of all. A sum beyond is void. Discrete
    /// Gaussian noise is subgaussian with its σ (Canonne, Kamath and Steinke 2020), and that of k authors with
    /// σ·√k, so noise alone exceeds it in less than 2·e⁻⁵⁰ of all coordinates, four of 10²².
    ///
    /// # Errors
    ///
    /// If it is not below 2⁶³.
    pub fn reach(self, units: u64, sigma: u64, authors: u16) -> Result<Reach, ReachError> {
        // Coordinates are integers, so none of one unit exceeds the integer part of Δ.
        let square = 100 * u128::from(sigma) * u128::from(sigma) * u128::from(authors);
        let floor = square.isqrt();
        let noise = floor + u128::from(floor * floor < square);
        let reach = self.most(units).checked_add(noise);
        let reach = reach.and_then(|reach| u64::try_from(reach).ok());
        Reach::new(reach.ok_or(ReachError::TooLarge)?)
    }
}

#[cfg(test)]
pub(crate) mod tests;
