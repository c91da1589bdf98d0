//! What a ledger is told of a contribution.

use std::fmt;

use privacy::accountant::Accountant;
use privacy::noise::{Authors, Multiplier};
use protocol::Hash;

use crate::unit::Unit;

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
        unit: Unit,
    },
    /// A contribution without noise: it bounds nothing.
    NoBound,
}

impl Cost {
    /// Adds the cost of one contribution.
    pub(crate) fn spend(&self, accountant: &mut Accountant) {
        match self {
            Self::Noised { z, authors, .. } => accountant.spend(*z, *authors, 1),
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
