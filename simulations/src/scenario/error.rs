//! Errors by which a scenario is refused.

use agreement::FileError;

/// Reason for which a scenario cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// Something wrong in the file.
    #[error(transparent)]
    At(#[from] FileError),
    /// An option of the command line.
    #[error("{0}")]
    Override(String),
    /// A file that cannot be read.
    #[error("cannot read the scenario {file}: {why}; the built-in scenarios are {built_in}{near}")]
    File {
        /// The file.
        file: String,
        /// The system's error.
        why: String,
        /// "Did you mean …?" with a built-in scenario, if one is like it.
        near: String,
        /// Names of the built-in scenarios.
        built_in: String,
    },
}
