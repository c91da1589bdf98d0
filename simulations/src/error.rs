//! The error of a run.

use std::time::Duration;

use task::data::DataError;

use bare::invariants::Violation;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The task's data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The scenario does not describe a federation that can run.
    #[error("{0}")]
    Setup(String),
    /// The environment that was handed in cannot set up a silo's environment.
    #[error("{0}")]
    Environment(String),
    /// A safety property was violated.
    #[error("seed {seed}: {violation}; run the same seed to see it again")]
    Violated {
        /// The seed.
        seed: u64,
        /// The violation: which property, when and how.
        violation: Violation,
    },
    /// A round that can never reach its minimum of contributions, because so many silos cannot train.
    #[error(
        "round {round} cannot reach its minimum of {minimum} contributions: training failed at {silos} of \
         {members} silos: {reason}"
    )]
    Training {
        /// The round.
        round: u64,
        /// Contributions that a round needs.
        minimum: usize,
        /// Silos whose training failed.
        silos: usize,
        /// Members of the federation.
        members: usize,
        /// The error of the last of them.
        reason: String,
    },
    /// A round without messages cannot end.
    #[error("round {round} cannot end: {what}")]
    Round {
        /// The round.
        round: u64,
        /// Why not.
        what: String,
    },
    /// The federation did not finish in time.
    #[error("seed {seed}: not finished after {} s on the federation's clock: {states}", after.as_secs())]
    Stuck {
        /// The seed.
        seed: u64,
        /// When the run was given up, on the federation's clock.
        after: Duration,
        /// The state of every silo.
        states: String,
    },
    /// The members do not hold one chain, or an outcome on it does not follow from its manifest.
    #[error("seed {seed}, audit: {what}")]
    Audit {
        /// The seed.
        seed: u64,
        /// What is wrong.
        what: String,
    },
    /// A silo stopped because of a bug in this program.
    #[error("{silo} stopped because of a bug in this program: {why}")]
    Defect {
        /// Name of the silo.
        silo: String,
        /// What happened.
        why: String,
    },
}
