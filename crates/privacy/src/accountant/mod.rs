//! Privacy loss of one unit by all sums so far: ε and δ.
//!
//! # The idea
//!
//! Take two data sets that differ by one unit, a row or a person. **ε** says how different anything that
//! was published can look between the two: no event is more likely by more than a factor e^ε, except for
//! a small probability **δ** (*differential privacy*). Who sees the published sums can therefore hardly
//! tell whether the unit was there, whatever else they know.
//!
//! Each differentially private sum costs something. The [`Accountant`] adds up what it cost. For Gaussian noise this is
//! exact, with one number μ for everything so far:
//!
//! ```text
//! μ² = Σ 1/z²                                             over all sums; z is the noise of one, in Δ
//! δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)                 Φ: the normal distribution
//! ```
//!
//! It holds for sums of *all* rows in every round. Rounds on a random part of the rows would be cheaper,
//! and need another accountant.
//!
//! # Never below the truth
//!
//! ε is computed for μ·(1 + 10⁻⁴). The margin covers that noise consists of integers and that it is a sum
//! of several silos' parts (`tests/lattice.rs` computes the exact δ of such sums and compares), and errors
//! of rounding. It costs little: truth ≤ ε ≤ 1.001·truth. What is shown is rounded up.
//!
//! # Two numbers, always
//!
//! ε holds as long as no more than c authors collude. If **all** others do, only the silo's own
//! noise is left, and **ε_alone** holds, for μ·√(a−c). A [`Bound`] has both, and shows both.
//!
//! ```
//! use privacy::accountant::{Accountant, Delta, multiplier};
//! use privacy::noise::Authors;
//!
//! // How much noise for ε = 1 after 40 rounds?
//! let delta = Delta::new(1e-5)?;
//! let z = multiplier(1.0, delta, 40)?;
//! assert_eq!(format!("{z:.2}"), "23.60");
//!
//! let mut accountant = Accountant::new();
//! accountant.spend(z, Authors::new(7, 3)?, 40);
//! let bound = accountant.bound(delta);
//! assert!(bound.epsilon().value() <= 1.0);
//! assert_eq!(
//!     bound.to_string(),
//!     "epsilon 1.0000 (2.1547 if all others collude), delta 1e-5"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod curve;
mod epsilon;
mod normal;

pub use epsilon::{Delta, DeltaError, Epsilon};

use std::fmt;

use crate::noise::{Authors, Multiplier, MultiplierError};

/// μ is taken larger by this part.
const MARGIN: f64 = 1e-4;

/// From this μ on there is no bound worth the name: ε would be above 10⁷.
const MOST_MU: f64 = 1e4;

/// No noise multiplier gives an ε.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TargetError {
    /// ε out of range.
    #[error("an epsilon of {0}: it must be between 0.001 and 1000")]
    Epsilon(f64),
    /// No rounds.
    #[error("noise for {0} rounds: there must be between 1 and 2^32")]
    Rounds(u64),
    /// z out of range.
    #[error("epsilon {epsilon} after {rounds} rounds cannot be reached: {because}")]
    Multiplier {
        /// The wanted ε.
        epsilon: f64,
        /// Number of rounds.
        rounds: u64,
        /// Fault of z.
        because: MultiplierError,
    },
}

/// The noise multiplier z with which ε holds after so many rounds.
///
/// # Errors
///
/// If `epsilon` is not between 0.001 and 1,000, `rounds` not between 1 and 2³², or no [`Multiplier`] is
/// large or small enough.
pub fn multiplier(epsilon: f64, delta: Delta, rounds: u64) -> Result<Multiplier, TargetError> {
    if !(1e-3..=1e3).contains(&epsilon) {
        return Err(TargetError::Epsilon(epsilon));
    }
    if rounds == 0 || rounds > 1 << 32 {
        return Err(TargetError::Rounds(rounds));
    }
    let error = |because| TargetError::Multiplier {
        epsilon,
        rounds,
        because,
    };
    let mu = curve::mu(epsilon, delta.value());
    let z = (1.0 + MARGIN) * libm::sqrt(rounds as f64) / mu;
    let mut z = Multiplier::new(z).map_err(error)?;
    // Rounding can have made the ε of this z larger than the wanted one by its last bits.
    while shown(rounds as f64 / (z.value() * z.value()), delta).value() > epsilon {
        z = z.next().map_err(error)?;
    }
    Ok(z)
}

/// ε for a sum of 1/z².
fn shown(squares: f64, delta: Delta) -> Epsilon {
    let mu = libm::sqrt(squares) * (1.0 + MARGIN);
    Epsilon::new(if mu > MOST_MU {
        f64::INFINITY
    } else {
        curve::epsilon(mu, delta.value())
    })
}

/// Adds up what differentially private sums cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Accountant {
    /// Σ 1/z².
    shared: f64,
    /// Σ (a−c)/z².
    alone: f64,
}

impl Accountant {
    /// With nothing published so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// `rounds` sums with noise z each, shared by these authors.
    pub fn spend(&mut self, z: Multiplier, authors: Authors, rounds: u64) {
        let squares = rounds as f64 / (z.value() * z.value());
        self.shared += squares;
        self.alone += squares * f64::from(authors.unknown());
    }

    /// A sum without noise: from now on there is no bound.
    pub fn spend_without_noise(&mut self) {
        (self.shared, self.alone) = (f64::INFINITY, f64::INFINITY);
    }

    /// μ of everything so far, without the margin.
    pub fn mu(&self) -> f64 {
        libm::sqrt(self.shared)
    }

    /// μ if all others collude, without the margin.
    pub fn mu_alone(&self) -> f64 {
        libm::sqrt(self.alone)
    }

    /// ε and ε_alone of everything so far.
    pub fn bound(&self, delta: Delta) -> Bound {
        Bound {
            delta,
            epsilon: shown(self.shared, delta),
            alone: shown(self.alone, delta),
        }
    }

    /// The largest area under the curve that any test of membership can have: Φ(μ/√2). 0.5 is guessing.
    pub fn most_auc(&self) -> f64 {
        1.0 - normal::tail(self.mu() * (1.0 + MARGIN) / std::f64::consts::SQRT_2)
    }
}

/// Bound of the privacy loss of one unit: ε, and ε_alone beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    delta: Delta,
    epsilon: Epsilon,
    alone: Epsilon,
}

impl Bound {
    /// The δ that both are for.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// ε, as long as at most c authors collude.
    pub fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// ε_alone, if all others collude.
    pub fn alone(&self) -> Epsilon {
        self.alone
    }
}

/// Takes the places of both numbers, as in `{:.2}`.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("epsilon ")?;
        self.epsilon.fmt(f)?;
        f.write_str(" (")?;
        self.alone.fmt(f)?;
        write!(f, " if all others collude), delta {}", self.delta)
    }
}

#[cfg(test)]
mod tests;
