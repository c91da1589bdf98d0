//! Errors of combining models.

use crate::params::MeanError;

/// Reason for which models could not be combined.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AggregationError {
    /// Nothing to combine.
    #[error("there is no model to combine")]
    Empty,
    /// Models, or a reference, of another layout.
    #[error("models of different shapes cannot be combined")]
    Layout,
    /// Weights that are negative or not finite, all zero, or absurdly small or large.
    #[error("the weights of models must be at least 0 and sum to between 1e-100 and 1e100")]
    Weights,
    /// A value that is NaN or infinite.
    #[error("model {model} (counted from 0) holds a value that is not finite")]
    NotFinite {
        /// Number of the model, from 0.
        model: usize,
    },
    /// The start or the trusted model has a value that is NaN or infinite.
    #[error("the {which} model holds a value that is not finite")]
    BadReference {
        /// `start` or `trusted`.
        which: &'static str,
    },
    /// A rule that needs a start or a trusted model has none.
    #[error("{rule} needs the {which} model to compare the others with")]
    NoReference {
        /// The rule.
        rule: &'static str,
        /// `start` or `trusted`.
        which: &'static str,
    },
    /// Too few models for the assumed number of arbitrary ones.
    #[error(
        "{rule} with {byzantine} arbitrary models needs at least {needed} models, not {got}: \
         lower `byzantine`, or form larger coalitions"
    )]
    TooFew {
        /// The rule.
        rule: &'static str,
        /// Number of models that may be arbitrary.
        byzantine: usize,
        /// Models needed.
        needed: usize,
        /// Models with a weight above 0 at hand.
        got: usize,
    },
    /// An option out of its range.
    #[error("option {option} of {rule} must be {allowed}, not {got}")]
    Option {
        /// The rule.
        rule: &'static str,
        /// The option, as written in a file.
        option: &'static str,
        /// The values that the option may have.
        allowed: &'static str,
        /// The value of the option.
        got: String,
    },
    /// The result is not finite.
    #[error("the combined model is not finite: lower the step size")]
    Diverged,
}

impl From<MeanError> for AggregationError {
    fn from(error: MeanError) -> Self {
        match error {
            MeanError::Empty => Self::Empty,
            MeanError::Layout => Self::Layout,
            MeanError::Weights => Self::Weights,
        }
    }
}
