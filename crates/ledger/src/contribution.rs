//! What a ledger is told of a contribution.

use std::fmt;

use privacy::accountant::Accountant;
use privacy::noise::{Authors, AuthorsError, Multiplier, MultiplierError};
use protocol::Hash;
use protocol::privacy::{Privacy, RoundMode};

use crate::unit::SourceUnit;

/// The epoch and round of a federation in which something was contributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Id of the federation.
    pub federation: Hash,
    /// Number of the epoch.
    pub epoch: u64,
    /// Number of the round.
    pub round: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            federation,
            epoch,
            round,
        } = self;
        write!(
            f,
            "round {round} in epoch {epoch} of federation {federation}"
        )
    }
}

/// What a contribution costs.
#[derive(Debug, Clone, PartialEq)]
pub enum Cost {
    /// A part of a sum with noise.
    Noised {
        /// z: the noise of the sum, in Δ.
        z: Multiplier,
        /// a and c: who shares the noise.
        authors: Authors,
        /// What one unit is.
        unit: SourceUnit,
    },
    /// A contribution without noise: it bounds nothing.
    NoBound,
}

/// An agreement on noise whose numbers are out of range, so that it bounds nothing.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CostError {
    /// z.
    #[error(transparent)]
    Multiplier(#[from] MultiplierError),
    /// a and c.
    #[error(transparent)]
    Authors(#[from] AuthorsError),
}

impl Cost {
    /// Returns what a contribution to a round costs under an agreement on privacy.
    ///
    /// # Errors
    /// [`CostError`]: noise that bounds nothing. The parameter set of a federation has none.
    pub fn of(privacy: &Privacy) -> Result<Self, CostError> {
        let (masked, noise) = match privacy.mode() {
            RoundMode::Noised(masked, noise) => (masked, noise),
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => return Ok(Self::NoBound),
        };
        Ok(Self::Noised {
            z: Multiplier::new(noise.z.value())?,
            authors: Authors::new(masked.smallest_sum, masked.colluders)?,
            unit: SourceUnit::from(&noise.unit),
        })
    }

    /// Adds the cost of so many contributions.
    pub fn spend(&self, accountant: &mut Accountant, contributions: u64) {
        match self {
            Self::Noised { z, authors, .. } => accountant.spend(*z, *authors, contributions),
            Self::NoBound if contributions == 0 => {}
            Self::NoBound => accountant.spend_without_noise(),
        }
    }
}

/// A contribution that is about to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// The epoch and round.
    pub place: Place,
    /// A hash that says nothing of the contribution, and is another one for every other contribution.
    pub commitment: Hash,
    /// What it costs.
    pub cost: Cost,
}
