//! Reasons for which no federation could be put together.

use std::io;

use task::data::DataError;

use crate::draft::plan::PlanError;

/// Reason for which no federation could be put together.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// Something was not given, and nobody could be asked.
    #[error("{what} is missing: give {option}, or run this in a terminal to be asked")]
    Missing {
        /// Name of the missing part.
        what: &'static str,
        /// The option.
        option: &'static str,
    },
    /// An option that cannot be read.
    #[error("{0}")]
    Option(String),
    /// The tables.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The scenario.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The terminal.
    #[error("cannot ask: {0}")]
    Terminal(#[from] io::Error),
}
