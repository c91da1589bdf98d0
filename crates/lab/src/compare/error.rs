//! Errors by which an experiment is refused or stops.

use std::io;
use std::path::PathBuf;

use agreement::FileError;

use simulations::ScenarioError;

/// Error of an experiment that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Something wrong in the file.
    #[error(transparent)]
    At(#[from] FileError),
    /// A scenario that is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Something wrong with the experiment as a whole.
    #[error("{file}: {what}")]
    Experiment {
        /// The file.
        file: String,
        /// Description of the fault.
        what: String,
    },
    /// A run of the experiment has wrong settings.
    #[error("{file}, {of}: {what}")]
    Settings {
        /// The file.
        file: String,
        /// The run, in words.
        of: String,
        /// Description of the fault, with the key.
        what: String,
    },
    /// A file that cannot be read.
    #[error(
        "cannot read the experiment {file}: {why}; the built-in experiments are {built_in}, and the built-in \
         scenarios {scenarios}{near}"
    )]
    File {
        /// The file.
        file: String,
        /// The system's error.
        why: String,
        /// "Did you mean …?" with a built-in name, if one is like it.
        near: String,
        /// Names of the built-in experiments.
        built_in: String,
        /// Names of the built-in scenarios, which are compared with the references.
        scenarios: String,
    },
    /// A result that cannot be read or written.
    #[error("cannot {what} {}: {reason}", path.display())]
    Result {
        /// Read or write.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Results of another experiment, or of other settings, in the folder.
    #[error(
        "{} holds results of another experiment or of other settings: choose another folder with \
         --out, or remove it", .0.display()
    )]
    Other(PathBuf),
    /// Results in the folder, but they are not to be continued.
    #[error(
        "{} holds results already: continue with --resume, or choose another folder with --out",
        .0.display()
    )]
    There(PathBuf),
    /// A run that fails for a reason which is not the strategy's.
    #[error(transparent)]
    Run(#[from] simulations::RunError),
}
