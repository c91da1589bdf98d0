//! Errors of configuration files.

use std::path::PathBuf;

use crate::source::FileError;

/// Reason for which `federation.toml` or `node.toml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An error in the file.
    #[error(transparent)]
    At(#[from] FileError),
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: std::io::Error,
    },
}
