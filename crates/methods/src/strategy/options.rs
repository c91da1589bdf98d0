//! Settings that a method is built from, and the checks of its options' ranges.

use crate::aggregation::{Aggregation, AggregationError};
use crate::learner::Training;
use crate::strategy::Strategy;

/// Settings that a method is built from, besides its own options.
#[derive(Debug, Clone)]
pub(crate) struct MethodSetting {
    /// Training of a member in a round.
    pub(crate) training: Training,
    /// Rule by which the models of a coalition become one.
    pub(crate) rule: Aggregation,
    /// Members of the federation.
    pub(crate) members: usize,
}

/// A method that was built, and what belongs around it.
pub(crate) struct Built {
    /// The method.
    pub(crate) strategy: Box<dyn Strategy>,
    /// Tensors that stay with the silos under this method, as in the option `personal`.
    pub(crate) personal: Option<&'static str>,
    /// A wrapper around the method with its personal layers.
    pub(crate) outer: Option<Outer>,
}

/// A wrapper that is still to be put around a strategy.
type Outer = Box<dyn FnOnce(Box<dyn Strategy>) -> Box<dyn Strategy>>;

impl From<Box<dyn Strategy>> for Built {
    fn from(strategy: Box<dyn Strategy>) -> Self {
        Self {
            strategy,
            personal: None,
            outer: None,
        }
    }
}

impl Built {
    /// This method, under which these tensors stay with the silos.
    pub(crate) fn with_personal(self, tensors: &'static str) -> Self {
        Self {
            personal: Some(tensors),
            ..self
        }
    }

    /// This method within a wrapper, outside its personal layers.
    pub(crate) fn within(
        self,
        outer: impl FnOnce(Box<dyn Strategy>) -> Box<dyn Strategy> + 'static,
    ) -> Self {
        Self {
            outer: Some(Box::new(outer)),
            ..self
        }
    }
}

/// Reason for which a configuration is not a strategy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StrategyError {
    /// No strategy of that name.
    #[error("unknown strategy {name:?}: expected one of {known}{meant}")]
    Unknown {
        /// The name.
        name: String,
        /// A question about the name that is most like it, or nothing.
        meant: String,
        /// All names, separated by commas.
        known: String,
    },
    /// A number out of its range.
    #[error("strategy option {option} must be {allowed}, not {got}")]
    Option {
        /// The option, as written in a file.
        option: &'static str,
        /// The values that the option may have.
        allowed: &'static str,
        /// The value of the option.
        got: String,
    },
    /// An option of the rule that combines models.
    #[error("strategy option aggregation: {0}")]
    Aggregation(#[from] AggregationError),
    /// More coalitions than members.
    #[error("cannot form {coalitions} coalitions of {members} members: ask for at most {members}")]
    TooManyCoalitions {
        /// Coalitions asked for.
        coalitions: usize,
        /// Members of the federation.
        members: usize,
    },
}

/// For options that are left out of the agreement where they have their default, so that the ids
/// of federations that do not use them stay as they were.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(crate) fn at_least_one(option: &'static str, value: u64) -> Result<(), StrategyError> {
    require(value >= 1, option, "at least 1", value)
}

pub(crate) fn positive(option: &'static str, value: f64) -> Result<(), StrategyError> {
    let holds = value.is_finite() && value > 0.0;
    require(holds, option, "a number above 0", value)
}

pub(crate) fn not_negative(option: &'static str, value: f64) -> Result<(), StrategyError> {
    let holds = value.is_finite() && value >= 0.0;
    require(holds, option, "a number of at least 0", value)
}

/// At least 0 and below 1.
pub(crate) fn fraction(option: &'static str, value: f64) -> Result<(), StrategyError> {
    let holds = (0.0..1.0).contains(&value);
    require(holds, option, "at least 0 and below 1", value)
}

/// From 0 to 1, both included.
pub(crate) fn share(option: &'static str, value: f64) -> Result<(), StrategyError> {
    let holds = (0.0..=1.0).contains(&value);
    require(holds, option, "from 0 to 1", value)
}

/// [`StrategyError::Option`] unless `holds`.
pub(crate) fn require(
    holds: bool,
    option: &'static str,
    allowed: &'static str,
    got: impl ToString,
) -> Result<(), StrategyError> {
    if holds {
        return Ok(());
    }
    Err(StrategyError::Option {
        option,
        allowed,
        got: got.to_string(),
    })
}
