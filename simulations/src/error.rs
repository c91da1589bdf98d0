//! Why a run fails.

use std::time::Duration;

use learn::DataError;

use crate::invariants::Violation;

/// Why a run did not come to a good end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The task's data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The scenario does not make a federation.
    #[error("{0}")]
    Setup(String),
    /// A world that was handed in does not give a silo its surroundings.
    #[error("{0}")]
    World(String),
    /// A property did not hold.
    #[error("seed {seed}: {violation}; the same seed shows it again")]
    Violated {
        /// The seed.
        seed: u64,
        /// Which, when and how.
        violation: Violation,
    },
    /// So many silos cannot train that a round has too few contributions for ever.
    #[error(
        "round {round} cannot come about, training failed at {silos} of {members} silos: {reason}"
    )]
    Training {
        /// The round.
        round: u64,
        /// How many cannot.
        silos: usize,
        /// Of how many.
        members: usize,
        /// What the last of them said.
        reason: String,
    },
    /// The federation made no progress any more.
    #[error("seed {seed}: not finished after {} s on the federation's clock: {states}", after.as_secs())]
    Stuck {
        /// The seed.
        seed: u64,
        /// When it was given up.
        after: Duration,
        /// Where every silo is.
        states: String,
    },
    /// The members do not hold one chain, or an outcome on it does not follow from its sheet.
    #[error("seed {seed}: {what}")]
    Audit {
        /// The seed.
        seed: u64,
        /// What is wrong.
        what: String,
    },
    /// A silo stopped because of a defect of this program.
    #[error("{silo} stopped because of a defect: {why}")]
    Defect {
        /// Its name.
        silo: String,
        /// What happened.
        why: String,
    },
}
