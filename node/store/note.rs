//! What was found when a folder was opened, and what was done about it, for its operator.

use std::fmt;
use std::path::PathBuf;

/// Something that the operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Others could read it; they cannot any more.
    Closed(PathBuf),
    /// It could not be used and has another name now.
    SetAside {
        /// Its name.
        from: PathBuf,
        /// Its name now.
        to: PathBuf,
        /// Why, in a sentence.
        why: String,
    },
    /// There is no journal where one was; another one was begun, declared lost.
    Gone(PathBuf),
}

/// In the order in which they were found.
pub(super) type Notes = Vec<Note>;

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(path) => write!(
                f,
                "{} was open to others on this machine; it is its owner's alone from now on",
                path.display()
            ),
            Self::SetAside { from, to, why } => write!(
                f,
                "{} is kept as {} and a new one is begun: {why}",
                from.display(),
                to.display()
            ),
            Self::Gone(path) => write!(
                f,
                "{} is gone, although this folder was used before: the journal counts as lost",
                path.display()
            ),
        }
    }
}
