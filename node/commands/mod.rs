//! The subcommands, and their errors.

mod added;
pub(crate) mod advise;
pub(crate) mod amend;
pub(crate) mod attack;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod chain;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod continuing;
pub(crate) mod data;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod federation;
pub(crate) mod identity;
pub(crate) mod init;
pub(crate) mod join;
mod joining;
pub(crate) mod lab;
pub(crate) mod learner;
pub(crate) mod model;
mod newcomer;
pub(crate) mod print;
pub(crate) mod recover;
pub(crate) mod report;
mod rows;
pub(crate) mod run;
pub(crate) mod scenarios;
pub(crate) mod schema;
pub(crate) mod simulate;
pub(crate) mod solve;
pub(crate) mod status;
pub(crate) mod strategies;
pub(crate) mod verify;

use std::fs;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};

use rota::agreement::{AddError, ConfigError, TokenError};
use rota::audit::CheckError;
use rota::backup::{BackupError, RestoreError};
use rota::chain::ChainError;
use rota::datasets::{CatalogueError, DownloadError};
use rota::deploy::DeployError;
use rota::federation::{ContinueError, DemoError, JoinError};
use rota::identity::IdentityError;
use rota::init::{ComposeError, NewError};
use rota::institution::{NodeError, PresentError, SetupError};
use rota::learn::DataError;
use rota::learn::export::ExportError;
use rota::loopback;
use rota::model::ModelError;
use rota::report::numbers;
use rota::simulations::compare::ExperimentError;
use rota::simulations::{RunError, ScenarioError};
use rota::status::socket::SocketError;
use rota::verify::{EvidenceError, VerifyError};

use solve::SolveError;

/// Why a command failed: one sentence, with what to try.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The scenario, or a change to it, is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A fault of the scenario cannot be carried out on real sockets.
    #[error(transparent)]
    Loopback(#[from] loopback::Refused),
    /// A transport was given for the simulated network.
    #[error("--transport is for real sockets, and --mesh is virtual: add --mesh loopback")]
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
        /// One of these silos.
        silo: String,
        /// Why.
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
    /// A key file cannot be read or made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The files of a demo cannot be written.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The configuration of a node is wrong.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The agreement in force cannot be told.
    #[error(transparent)]
    Present(#[from] PresentError),
    /// A node did not start, or it stopped because of an error.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The log cannot be started as asked.
    #[error("{0}")]
    Log(String),
    /// A node cannot be asked for its status.
    #[error(transparent)]
    Status(#[from] SocketError),
    /// A backup was not written.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A backup was not put back.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// A screen was asked for where there is no terminal.
    #[error("rota watch needs a terminal: use rota status")]
    NoTerminal,
    /// A chain cannot be shown.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A state folder that was not verified, or in which something is wrong.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A file that is no evidence, or that proves nothing.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// An audit log that was not checked, or in which something is wrong.
    #[error(transparent)]
    Audit(#[from] CheckError),
    /// A file of numbers, or an option about it, is wrong.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// Data that cannot be read or described.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A catalogue of public data sets cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A public data set cannot be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// A model cannot be taken out, or does not fit the rows.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A federation cannot be continued so.
    #[error(transparent)]
    Continue(#[from] ContinueError),
    /// Several models, of which none was chosen.
    #[error(
        "after round {round} there are the models of {count} coalitions: choose one with \
         --coalition N, as `rota model list` prints them, or their mean with --global"
    )]
    Several {
        /// The round.
        round: u64,
        /// Number of coalitions.
        count: usize,
    },
    /// An exported model of another federation than the given agreement.
    #[error(
        "the model is of the federation {model}, and {} is the agreement of {agreed}", file.display()
    )]
    Earlier {
        /// The federation of the model.
        model: String,
        /// The agreement's file.
        file: PathBuf,
        /// Its federation.
        agreed: String,
    },
    /// The agreement of a new federation cannot be made.
    #[error(transparent)]
    New(#[from] NewError),
    /// Something that TOML cannot express.
    #[error("this agreement cannot be written: {0}")]
    Toml(String),
    /// What a new federation learns.
    #[error(transparent)]
    Compose(#[from] ComposeError),
    /// An agreement or a consent that cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A member that cannot be added.
    #[error(transparent)]
    Add(#[from] AddError),
    /// An invitation that cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The files of a new member cannot be written.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// An option that is wrong or missing.
    #[error("{0}")]
    Usage(String),
    /// Something that was looked at is not as it has to be.
    #[error("{0}")]
    Failed(String),
    /// A file that is not to be overwritten.
    #[error("{} exists: choose another file with --out, or overwrite it with --force", .0.display())]
    Exists(PathBuf),
    /// A file that cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Predictions were written, and some rows have none because they do not fit.
    #[error(
        "{} not fit and {no} prediction: the column `note` of {} says which line and why",
        if *rows == 1 { "1 row does".to_owned() } else { format!("{rows} rows do") }, out.display(),
        no = if *rows == 1 { "has no" } else { "have no" }
    )]
    Skipped {
        /// Rows that were skipped.
        rows: usize,
        /// The file of predictions.
        out: PathBuf,
    },
    /// All is well here, and other members' nodes do not answer yet.
    #[error("this node is ready; other members' nodes do not answer yet")]
    Waiting,
    /// Standard output cannot be written to.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl CommandError {
    /// 2 for wrong options and wrong configuration files, 1 for any other failure.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            CommandError::Scenario(_)
            | CommandError::Setup(_)
            | CommandError::Loopback(_)
            | CommandError::Transport
            | CommandError::New(_)
            | CommandError::Toml(_)
            | CommandError::Continue(_)
            | CommandError::Several { .. }
            | CommandError::Earlier { .. }
            | CommandError::Config(_)
            | CommandError::Add(_)
            | CommandError::Token(_)
            | CommandError::Catalogue(_)
            | CommandError::Usage(_)
            | CommandError::NoTerminal
            | CommandError::Log(_)
            | CommandError::Exists(_) => 2,
            CommandError::Present(PresentError::Setup(_)) => 2,
            CommandError::Present(_) => 1,
            CommandError::Experiment(ExperimentError::Run(RunError::Data(error))) => data(error),
            CommandError::Experiment(ExperimentError::Run(RunError::Setup(_))) => 2,
            CommandError::Experiment(ExperimentError::Run(_) | ExperimentError::Result { .. }) => 1,
            CommandError::Experiment(_) => 2,
            CommandError::Compose(ComposeError::Data(error)) => data(error),
            CommandError::Compose(ComposeError::Terminal(_)) => 1,
            CommandError::Compose(_) => 2,
            CommandError::Join(JoinError::Exists(_)) => 2,
            CommandError::Join(_) | CommandError::Download(_) | CommandError::Failed(_) => 1,
            CommandError::Data(error) => data(error),
            CommandError::Model(error) => match error {
                ModelError::Data(error) | ModelError::Export(ExportError::Data(error)) => {
                    data(error)
                }
                ModelError::Nothing(_)
                | ModelError::Federation { .. }
                | ModelError::NoRound { .. }
                | ModelError::NoCoalition { .. } => 2,
                _ => 1,
            },
            CommandError::Run(error) | CommandError::Demo(DemoError::Run(error)) => match error {
                RunError::Setup(_) => 2,
                RunError::Data(error) => data(error),
                _ => 1,
            },
            CommandError::Demo(error) => match error {
                DemoError::Data(error) => data(error),
                DemoError::NotEmpty(_) | DemoError::Port(_) | DemoError::Toml(_) => 2,
                _ => 1,
            },
            CommandError::Deploy(error) => 1 + u8::from(error.is_usage()),
            CommandError::Node(error) => 1 + u8::from(error.is_configuration()),
            CommandError::Chain(
                ChainError::Nothing(_) | ChainError::Agreement(_) | ChainError::Federation { .. },
            ) => 2,
            CommandError::Chain(_) => 1,
            CommandError::Verify(
                VerifyError::Nothing(_)
                | VerifyError::Agreement(_)
                | VerifyError::Federation { .. },
            )
            | CommandError::Evidence(
                EvidenceError::Unreadable { .. } | EvidenceError::Malformed { .. },
            )
            | CommandError::Audit(CheckError::Nothing(_)) => 2,
            CommandError::Verify(_) | CommandError::Evidence(_) | CommandError::Audit(_) => 1,
            CommandError::Solve(error) => error.exit_code(),
            CommandError::Waiting => 3,
            CommandError::Skipped { .. } => 4,
            CommandError::Backup(BackupError::Setup(_) | BackupError::Exists(_)) => 2,
            CommandError::Backup(_) | CommandError::Restore(_) => 1,
            CommandError::Identity(_)
            | CommandError::NoUse { .. }
            | CommandError::Status(_)
            | CommandError::Report { .. }
            | CommandError::Write { .. }
            | CommandError::Output(_) => 1,
        }
    }

    /// Whether the reader of standard output has closed it.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let (CommandError::Output(error) | CommandError::Audit(CheckError::Output(error))) = self
        else {
            return false;
        };
        error.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Runs this without the message of a panic. A copy of a journal that is taken while its node writes can
/// make redb panic, which is caught where the copy is read.
fn quietly<T>(read: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let done = read();
    panic::set_hook(hook);
    done
}

/// Refuses to overwrite a file, unless that is wanted.
fn vacant(file: &Path, overwrite: bool) -> Result<(), CommandError> {
    match file.exists() && !overwrite {
        true => Err(CommandError::Exists(file.into())),
        false => Ok(()),
    }
}

/// A line for people, in as many of at most 100 characters as it needs. What follows the first is
/// indented below its text.
fn wrapped(line: &str) -> String {
    let line = numbers::plain(line);
    let indent = line.len() - line.trim_start().len();
    // Findings begin with a level and a topic.
    let indent = match ["good ", "note ", "BAD ", "     "]
        .iter()
        .any(|mark| line.starts_with(mark))
    {
        true => 18.max(indent),
        false => indent + 2,
    };
    let indent = " ".repeat(indent);
    let options = textwrap::Options::new(100)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&line, options)
}

/// A name for a file or folder, of letters, digits, `-` and `_`: what else is in `name` becomes `-`.
/// `otherwise` where it is empty.
fn file_name(name: &str, otherwise: &str) -> String {
    let harmless = |c: char| match c.is_alphanumeric() || "-_".contains(c) {
        true => c,
        false => '-',
    };
    match name.is_empty() {
        true => otherwise.to_owned(),
        false => name.chars().map(harmless).take(64).collect(),
    }
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(file, text).map_err(|reason| CommandError::Write {
        path: file.into(),
        reason,
    })
}

fn data(error: &DataError) -> u8 {
    match error {
        DataError::Config(_) | DataError::TooManySilos { .. } => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_exits_with_2_and_failure_with_1() {
        let usage: [CommandError; 3] = [
            ScenarioError::Override("--silos must be at least 1".into()).into(),
            RunError::Setup("too many coalitions".into()).into(),
            RunError::Data(DataError::Config("no layers".into())).into(),
        ];
        assert!(usage.iter().all(|error| error.exit_code() == 2));
        let missing = DataError::NoFolder {
            source_name: "heart",
            hint: "get them",
        };
        let failures: [CommandError; 3] = [
            RunError::Data(missing).into(),
            io::Error::from(io::ErrorKind::StorageFull).into(),
            CommandError::Report {
                path: "x".into(),
                reason: io::ErrorKind::NotADirectory.into(),
            },
        ];
        assert!(
            failures
                .iter()
                .all(|error| error.exit_code() == 1 && !error.is_broken_pipe())
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
