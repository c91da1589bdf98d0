//! Notes for the operator about problems that were found and handled when a folder was opened.

use std::fmt;
use std::path::PathBuf;

/// A note for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Other users could read the file; their permissions were removed.
    Closed(PathBuf),
    /// The file could not be used and was renamed.
    SetAside {
        /// Old name of the file.
        from: PathBuf,
        /// New name of the file.
        to: PathBuf,
        /// Reason, in a sentence.
        why: String,
    },
    /// The journal is missing, although the folder was used before. A new one was started, declared
    /// lost.
    Gone(PathBuf),
}

/// Notes in the order in which the problems were found.
pub(super) type Notes = Vec<Note>;

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(path) => write!(
                f,
                "{} could be read by other users of this machine: their permissions were removed",
                path.display()
            ),
            Self::SetAside { from, to, why } => write!(
                f,
                "{} was renamed to {} and a new one was started: {why}",
                from.display(),
                to.display()
            ),
            Self::Gone(path) => write!(
                f,
                "{} is missing, although this folder was used before: the journal counts as lost",
                path.display()
            ),
        }
    }
}
