//! Errors about a strategy's options, at their keys.

use methods::strategy::StrategyError;

use crate::source::{FileError, TomlText};

/// The error about the table `[strategy]` of a file, at the key that it is about.
pub fn strategy_error(source: TomlText<'_>, error: &StrategyError) -> FileError {
    match error {
        StrategyError::Option {
            option,
            allowed,
            got,
        } => {
            let span = source.span(&format!("strategy.{option}"));
            source.at(span, format!("`{option}` must be {allowed}, not {got}"))
        }
        StrategyError::Aggregation(error) => {
            source.key_of("strategy.aggregation", format!("is wrong: {error}"))
        }
        StrategyError::TooManyCoalitions { .. } => {
            source.key_of("strategy.coalitions", format!("is wrong: {error}"))
        }
        StrategyError::Unknown { .. } => {
            source.key_of("strategy.name", format!("is wrong: {error}"))
        }
    }
}
