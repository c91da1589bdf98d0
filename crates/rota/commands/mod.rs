//! The laboratory's subcommands, and their errors.

pub(crate) mod advise;
pub(crate) mod ask;
pub(crate) mod attack;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod demo;
pub(crate) mod lab;
mod own_rows;
pub(crate) mod report;
pub(crate) mod scenarios;
pub(crate) mod schema;
pub(crate) mod simulate;
pub(crate) mod solve;
pub(crate) mod strategies;

use std::io;
use std::path::{Path, PathBuf};

use ::lab::compare::ExperimentError;
use ::lab::datasets::{CatalogueError, DownloadError};
use ::lab::demo::DemoError;
use ::lab::deploy::DeployError;
use ::lab::loopback;
use node::cli::NoNode;
use node::commands::Failure;
use node::commands::{self, data as end_of_data};
use node::exit::Exit;
use simulations::{RunError, ScenarioError};
use task::data::DataError;

pub(crate) use node::commands::{NodeCommandError as NodeError, wrapped};
use solve::SolveError;

/// Error of a command: one sentence, with what to try.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// A command around an institution's node failed, or something that all commands share.
    #[error(transparent)]
    Node(Box<NodeError>),
    /// The scenario, or a change to it, is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A fault of the scenario cannot be carried out on real sockets.
    #[error(transparent)]
    Loopback(#[from] loopback::LoopbackRefusal),
    /// A transport was given without sockets.
    #[error("--transport is for real sockets: add --mesh loopback")]
    Transport,
    /// The experiment is wrong, or cannot be run.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The federation failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The federation ended, with models that are of no use.
    #[error(
        "the federation's model is of no use at {silos} of {members} silos, of which {silo}: {reason}; \
         if training diverged, try a smaller learning rate"
    )]
    NoUse {
        /// Silos at which it is of no use.
        silos: usize,
        /// Members of the federation.
        members: usize,
        /// The name of a silo where the model is of no use.
        silo: String,
        /// Reason for which the model is of no use there.
        reason: String,
    },
    /// The report cannot be written.
    #[error("cannot write the report to {}: {reason}; choose another folder with --out", path.display())]
    Report {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// An experiment with real processes failed.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// The files of a demo cannot be written.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// A file of numbers, or an option about it, is wrong.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A catalogue of public data sets cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A public data set cannot be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
}

impl From<NodeError> for CommandError {
    fn from(error: NodeError) -> Self {
        Self::Node(Box::new(error))
    }
}

/// Converts errors that the commands of a node and of the laboratory share.
macro_rules! shared {
    ($($error:ty),*) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                NodeError::from(error).into()
            }
        })*
    };
}
shared!(io::Error, DataError, NoNode);

impl CommandError {
    /// An option that is wrong or missing.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        NodeError::Usage(what.into()).into()
    }

    /// Something that was looked at is not as it has to be.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        NodeError::Failed(what.into()).into()
    }
}

impl Failure for CommandError {
    fn exit(&self) -> Exit {
        match self {
            Self::Node(error) => error.exit(),
            Self::Solve(error) => error.exit(),
            Self::Scenario(_) | Self::Loopback(_) | Self::Transport | Self::Catalogue(_) => {
                Exit::Input
            }
            Self::Run(error)
            | Self::Demo(DemoError::Run(error))
            | Self::Experiment(ExperimentError::Run(error)) => match error {
                RunError::Setup(_) => Exit::Input,
                RunError::Data(error) => end_of_data(error),
                _ => Exit::Failure,
            },
            Self::Experiment(ExperimentError::Result { .. }) => Exit::Failure,
            Self::Experiment(_) => Exit::Input,
            Self::Demo(error) => match error {
                DemoError::Data(error) => end_of_data(error),
                DemoError::NotEmpty(_) | DemoError::Port(_) | DemoError::Toml(_) => Exit::Input,
                _ => Exit::Failure,
            },
            Self::Deploy(error) if error.is_usage() => Exit::Input,
            Self::Deploy(_) | Self::Download(_) | Self::NoUse { .. } | Self::Report { .. } => {
                Exit::Failure
            }
        }
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Node(error) if error.is_broken_pipe())
    }
}

/// Refuses to overwrite a file, unless that is wanted.
fn vacant(file: &Path, overwrite: bool) -> Result<(), CommandError> {
    Ok(commands::vacant(file, overwrite)?)
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    Ok(commands::write(file, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_exits_with_2_and_failure_with_1() {
        let missing = DataError::NoFolder {
            source_name: "heart",
            hint: "get them",
        };
        let usage: [CommandError; 4] = [
            RunError::Data(missing).into(),
            ScenarioError::Override("--silos must be at least 1".into()).into(),
            RunError::Setup("too many coalitions".into()).into(),
            RunError::Data(DataError::Config("no layers".into())).into(),
        ];
        assert!(usage.iter().all(|error| error.exit() == Exit::Input));
        let failures: [CommandError; 2] = [
            io::Error::from(io::ErrorKind::StorageFull).into(),
            CommandError::Report {
                path: "x".into(),
                reason: io::ErrorKind::NotADirectory.into(),
            },
        ];
        assert!(
            failures
                .iter()
                .all(|error| error.exit() == Exit::Failure && !error.is_broken_pipe())
        );
    }

    #[test]
    fn a_closed_pipe_is_recognised_on_standard_output_only() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(CommandError::from(broken()).is_broken_pipe());
        let report = CommandError::Report {
            path: "x".into(),
            reason: broken(),
        };
        assert!(!report.is_broken_pipe());
    }
}
