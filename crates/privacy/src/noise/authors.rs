//! Distribution of the noise among silos.

use crate::sensitivity::Sensitivity;

use super::gaussian::{Gaussian, MOST_SIGMA};
use super::multiplier::{BITS, Multiplier};

/// Two numbers that leave nobody to add noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{fewest} authors of a sum at least, of which {colluders} may collude: there must be \
     more authors than colluders, or no noise is left that they do not know"
)]
pub struct AuthorsError {
    /// The fewest authors of a sum.
    pub fewest: u16,
    /// Members that may collude.
    pub colluders: u16,
}

/// A silo would need more noise than can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the noise of one silo would need a standard deviation of {sigma}, and {MOST_SIGMA} is the largest \
     one: lower z, or agree on more authors"
)]
pub struct SigmaError {
    /// The needed one.
    pub sigma: u128,
}

/// Authors that add noise to a sum: at least a, of which up to c may collude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authors {
    fewest: u16,
    colluders: u16,
}

impl Authors {
    /// a and c.
    ///
    /// # Errors
    ///
    /// If a is not larger than c.
    pub fn new(fewest: u16, colluders: u16) -> Result<Self, AuthorsError> {
        if fewest <= colluders {
            return Err(AuthorsError { fewest, colluders });
        }
        Ok(Self { fewest, colluders })
    }

    /// a, the fewest authors of a sum.
    pub fn fewest(self) -> u16 {
        self.fewest
    }

    /// c, the members that may collude.
    pub fn colluders(self) -> u16 {
        self.colluders
    }

    /// a − c: so many parts of the noise stay unknown.
    pub fn unknown(self) -> u16 {
        self.fewest - self.colluders
    }

    /// The noise of one silo: the smallest σ with (a−c)·σ² ≥ (z·Δ)².
    ///
    /// It is computed in integers. Δ² is irrational for short vectors; it is then rounded up at the 26th
    /// bit after the point, so that σ is never too small.
    ///
    /// # Errors
    ///
    /// If σ exceeds [`MOST_SIGMA`].
    pub fn gaussian(self, z: Multiplier, sensitivity: Sensitivity) -> Result<Gaussian, SigmaError> {
        let z = u128::from(z.integer());
        let (four_squares, bits) = sensitivity.four_squares();
        // Below 2^127: z < 2^40, and 4Δ²·2^bits < 2^47.
        let numerator = z * z * four_squares;
        let denominator = u128::from(self.unknown()) << (2 + 2 * BITS + bits);
        // σ² is an integer, so it is at least a fraction if it is at least the next larger integer.
        let square = numerator.div_ceil(denominator);
        let floor = square.isqrt();
        let sigma = floor + u128::from(floor * floor < square);
        let small = u64::try_from(sigma).ok();
        small
            .and_then(|sigma| Gaussian::new(sigma).ok())
            .ok_or(SigmaError { sigma })
    }
}
