//! The outcome of a round, which every member computes and adopts.

use super::{DecideError, State};
use crate::aggregation::AggregationError;
use crate::params::MeanError;

/// The outcome of a round that all members adopt, the same bits on every member.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Coalition of every entry, in the order of the contribution list.
    pub assignment: Vec<u32>,
    /// The models by coalition and what the strategy remembers.
    pub state: State,
}

/// Reason for which an outcome could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettleError {
    /// The decision does not fit the manifest.
    #[error("the decision assigns {assigned} entries, the manifest has {entries}")]
    Mismatch {
        /// Length of the assignment.
        assigned: usize,
        /// Entries of the manifest.
        entries: usize,
    },
    /// The decision names a coalition that cannot be.
    #[error("the decision breaks the strategy's rules: {0}")]
    Infeasible(String),
    /// The models could not be averaged.
    #[error(transparent)]
    Mean(#[from] MeanError),
    /// The models could not be combined by another rule than the mean.
    #[error(transparent)]
    Aggregation(#[from] AggregationError),
    /// An entry lacks what the plan asked for.
    #[error(transparent)]
    Manifest(#[from] DecideError),
    /// A summary does not describe usable columns.
    #[error("{0}")]
    Summary(String),
}
