//! Errors of learners.

use super::capability::MissingCapability;

/// Reason for which a learner did not do what it was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LearnError {
    /// The given model does not have this learner's layout.
    #[error("the model does not fit: expected {expected}, got {got}")]
    Layout {
        /// The learner's layout, in words.
        expected: String,
        /// The offered layout, in words.
        got: String,
    },
    /// The silo has no rows for this.
    #[error("no rows in the {0} part of this silo's data")]
    NoRows(&'static str),
    /// Training left the finite numbers.
    #[error("training diverged at step {step}: try a smaller learning rate (now {rate})")]
    Diverged {
        /// The step at which a weight or the loss stopped being finite.
        step: u64,
        /// The learning rate in force.
        rate: f64,
    },
    /// The progress callback asked to stop.
    #[error("training was stopped")]
    Stopped,
    /// The learner lacks a capability. [`Strategy::equip`](crate::Strategy::equip) refuses a
    /// learner that lacks what its strategy needs, so no equipped learner gives this in a round.
    #[error(transparent)]
    Missing(#[from] MissingCapability),
    /// A metric is asked for that this task does not measure.
    #[error("the metric {0:?} is needed, and this task does not measure it")]
    Metric(String),
    /// The numbers at hand have no result: a fit that does not exist, weights that are not finite,
    /// a state without the model that is asked for.
    #[error("{0}")]
    Failed(String),
}
