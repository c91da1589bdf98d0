//! The commands around an institution's node, and their errors.

mod added;
mod amend;
mod answered;
mod audit;
mod backup;
mod blame;
mod chain;
mod check;
mod continuing;
mod counted;
mod devices;
mod earlier;
pub mod federation;
mod identity;
mod init;
mod join;
mod joining;
mod learner;
mod ledger;
pub mod model;
mod more_columns;
mod names;
mod new;
mod newcomer;
#[cfg(test)]
mod pasted;
mod print;
pub mod program;
mod recover;
mod refused;
mod rows;
mod run;
mod scenario_rows;
mod settings;
mod status;
pub mod trees;
mod verify;

use std::fs;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::audit::CheckError;
use crate::backup::{BackupError, RestoreError};
use crate::blame::BlameError;
use crate::chain::ChainError;
use crate::draft::{BuiltInTexts, ComposeError, NewError};
use crate::federation::{ContinueError, JoinError};
use crate::identity::IdentityError;
use crate::institution::{NodeError, PresentError, SetupError, state_folder};
use crate::model::ModelError;
use crate::status::socket::SocketError;
use crate::store::has_journal;
use crate::verify::{EvidenceFileError, VerifyError};
use ::ledger::LedgerError;
use agreement::{AddError, ConfigError, TokenError};
use formatting::numbers;
use learn::export::ExportError;
use task::data::DataError;

use crate::cli::{NoNode, NodeCommand, NodeFederationCommand, StatePlace};
use crate::exit::Exit;
use crate::logging::{Started, say};

pub use self::scenario_rows::ask_about_scenario;

/// Carries out a command.
///
/// # Errors
/// [`NodeCommandError`]: one sentence, with what to try.
pub fn run(command: &NodeCommand) -> Result<(), NodeCommandError> {
    match command {
        NodeCommand::Init(init) => init::run(init),
        NodeCommand::Devices(devices) => devices::run(devices),
        NodeCommand::Run(run) => run::run(run),
        NodeCommand::Check(check) => check::run(check),
        NodeCommand::Status(status) => status::status(status),
        NodeCommand::Watch(watch) => status::watch(watch),
        NodeCommand::Chain(chain) => chain::run(chain),
        NodeCommand::Audit(audit) => audit::run(audit),
        NodeCommand::Blame(options) => blame::run(options),
        NodeCommand::Verify(verify) => verify::run(verify),
        NodeCommand::Model(model) => model::run(model),
        NodeCommand::Learner(learner) => learner::run(learner),
        NodeCommand::Identity(identity) => identity::run(identity),
        NodeCommand::Ledger(ledger) => ledger::run(ledger),
        NodeCommand::Backup(options) => backup::backup(options),
        NodeCommand::Restore(options) => backup::restore(options),
        NodeCommand::Recover(options) => recover::recover(options),
    }
}

/// Carries out a command of `federation`; a new one may learn what a scenario of `built_in` says.
///
/// # Errors
/// [`NodeCommandError`]: one sentence, with what to try.
pub fn run_federation(
    command: &NodeFederationCommand,
    built_in: BuiltInTexts,
) -> Result<(), NodeCommandError> {
    match command {
        NodeFederationCommand::New(options) => new::new(options, built_in),
        NodeFederationCommand::Continue(options) => continuing::continue_from(options),
        NodeFederationCommand::Add(options) => federation::add(options),
        NodeFederationCommand::Invite(options) => federation::invite(options),
        NodeFederationCommand::Join(options) => join::join(options),
        NodeFederationCommand::Sign(options) => join::sign(options),
        NodeFederationCommand::Show { file } => federation::show(file),
        NodeFederationCommand::Print(options) => print::run(options),
        NodeFederationCommand::Check(options) => federation::check(options),
        NodeFederationCommand::Questions(options) => settings::questions(options),
        NodeFederationCommand::Settings(options) => settings::settings(options),
        NodeFederationCommand::Amend(amend) => amend::amend(amend),
    }
}

/// Failure of a command of a program, as one sentence.
pub trait Failure: std::fmt::Display {
    /// Returns how the program ends.
    fn exit(&self) -> Exit;

    /// Returns whether the reader of standard output has closed it.
    fn is_broken_pipe(&self) -> bool;
}

impl<E: Failure> Failure for Box<E> {
    fn exit(&self) -> Exit {
        (**self).exit()
    }

    fn is_broken_pipe(&self) -> bool {
        (**self).is_broken_pipe()
    }
}

/// Carries out a command of a program while its log is open, and prints its error.
pub fn end<E: Failure + From<NodeCommandError>>(
    log: Result<Started, String>,
    command: impl FnOnce() -> Result<(), E>,
) -> ExitCode {
    let done = match log {
        Ok(log) => {
            let done = command();
            // The last lines of the log come before the error.
            drop(log);
            done
        }
        Err(why) => Err(NodeCommandError::Log(why).into()),
    };
    match done {
        Ok(()) => Exit::Success.into(),
        // The reader closed the pipe, as in `rota chain | head`.
        Err(error) if error.is_broken_pipe() => Exit::Success.into(),
        Err(error) => {
            // If standard error is closed, the exit code still reports the failure.
            let _ = say(&format!("error: {}", numbers::message(&error.to_string())));
            error.exit().into()
        }
    }
}

/// Failure of a command, as one sentence, with what to try.
#[derive(Debug, thiserror::Error)]
pub enum NodeCommandError {
    /// No node where one was looked for.
    #[error(transparent)]
    NoNode(#[from] NoNode),
    /// No journal in the state folder of a node.
    #[error(
        "there is no journal in {}: the node has not run yet{}", state.display(),
        if *named {
            ", or --state names another folder than the node's node.toml"
        } else {
            " (`rota run`)"
        }
    )]
    NotRun {
        /// The state folder.
        state: PathBuf,
        /// True if an option named it, and not the node's node.toml.
        named: bool,
    },
    /// A key file cannot be read or made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
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
    /// A ledger was not made or read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
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
    /// Nobody is blamed for a round.
    #[error(transparent)]
    Blame(#[from] BlameError),
    /// A file that is no evidence, or that proves nothing.
    #[error(transparent)]
    Evidence(#[from] EvidenceFileError),
    /// An audit log that was not checked, or in which something is wrong.
    #[error(transparent)]
    Audit(#[from] CheckError),
    /// Data that cannot be read or described.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A model cannot be taken out, or does not fit the rows.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The agreement of a new federation cannot be made.
    #[error(transparent)]
    New(#[from] NewError),
    /// Task of a new federation.
    #[error(transparent)]
    Compose(#[from] ComposeError),
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
        /// The federation of the agreement.
        agreed: String,
    },
    /// Something that TOML cannot express.
    #[error("this agreement cannot be written: {0}")]
    Toml(String),
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
    #[error("this node is ready; the nodes of other members do not answer yet")]
    Waiting,
    /// Standard output cannot be written to.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl Failure for NodeCommandError {
    fn exit(&self) -> Exit {
        match self {
            Self::Waiting => Exit::Waiting,
            Self::Skipped { .. } => Exit::Partial,
            Self::NoNode(_)
            | Self::Setup(_)
            | Self::Present(PresentError::Setup(_))
            | Self::Toml(_)
            | Self::New(_)
            | Self::Continue(_)
            | Self::Several { .. }
            | Self::Earlier { .. }
            | Self::Config(_)
            | Self::Add(_)
            | Self::Token(_)
            | Self::Usage(_)
            | Self::NoTerminal
            | Self::Log(_)
            | Self::Exists(_)
            | Self::Identity(
                IdentityError::Exists(_)
                | IdentityError::Form(_)
                | IdentityError::File { what: "read", .. },
            )
            | Self::Join(JoinError::Exists(_))
            | Self::Ledger(LedgerError::Exists { .. })
            | Self::Backup(BackupError::Setup(_) | BackupError::Exists(_))
            | Self::Restore(
                RestoreError::Archive(_)
                | RestoreError::Config(_)
                | RestoreError::Mixed(_)
                | RestoreError::Unsigned(_)
                | RestoreError::Signature(_)
                | RestoreError::Outside { .. }
                | RestoreError::InTheWay(_)
                | RestoreError::Used { .. },
            )
            | Self::Chain(ChainError::Agreement(_) | ChainError::Federation { .. })
            | Self::Blame(BlameError::File(_))
            | Self::Evidence(
                EvidenceFileError::Unreadable { .. } | EvidenceFileError::Malformed { .. },
            ) => Exit::Input,
            Self::Verify(error) | Self::Blame(BlameError::Verify(error)) => match error {
                VerifyError::Agreement(_) | VerifyError::Federation { .. } => Exit::Input,
                _ => Exit::Failure,
            },
            Self::Model(error) => match error {
                ModelError::Data(error) | ModelError::Export(ExportError::Data(error)) => {
                    data(error)
                }
                ModelError::Federation { .. }
                | ModelError::NoRound { .. }
                | ModelError::NoCoalition { .. } => Exit::Input,
                _ => Exit::Failure,
            },
            Self::Data(error) | Self::Compose(ComposeError::Data(error)) => data(error),
            Self::Compose(ComposeError::Terminal(_)) => Exit::Failure,
            Self::Compose(_) => Exit::Input,
            Self::Node(error) if error.is_configuration() => Exit::Input,
            Self::NotRun { .. }
            | Self::Node(_)
            | Self::Identity(_)
            | Self::Present(_)
            | Self::Join(_)
            | Self::Failed(_)
            | Self::Chain(_)
            | Self::Blame(_)
            | Self::Evidence(_)
            | Self::Audit(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Ledger(_)
            | Self::Status(_)
            | Self::Write { .. }
            | Self::Output(_) => Exit::Failure,
        }
    }

    fn is_broken_pipe(&self) -> bool {
        let (NodeCommandError::Output(error) | NodeCommandError::Audit(CheckError::Output(error))) =
            self
        else {
            return false;
        };
        error.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Runs this without the message of a panic. A copy of a journal that is taken while its node writes can
/// make redb panic, which is caught where the copy is read.
pub fn quietly<T>(read: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let done = read();
    panic::set_hook(hook);
    done
}

/// The state folder that a command reads.
///
/// # Errors
/// [`NodeCommandError`]: there is no such node, or its node.toml cannot be read.
pub fn state_of(place: &StatePlace) -> Result<PathBuf, NodeCommandError> {
    match &place.state {
        Some(folder) => Ok(folder.clone()),
        None => Ok(state_folder(&place.node.file()?)?),
    }
}

/// The state folder that a command reads, of a node that has run.
///
/// # Errors
/// [`NodeCommandError`]: as [`state_of`], or there is no journal in it.
pub fn journal_of(place: &StatePlace) -> Result<PathBuf, NodeCommandError> {
    let state = state_of(place)?;
    if has_journal(&state) {
        return Ok(state);
    }
    let named = place.state.is_some();
    Err(NodeCommandError::NotRun { state, named })
}

/// Refuses to overwrite a file, unless that is wanted.
///
/// # Errors
/// [`NodeCommandError::Exists`].
pub fn vacant(file: &Path, overwrite: bool) -> Result<(), NodeCommandError> {
    if file.exists() && !overwrite {
        Err(NodeCommandError::Exists(file.into()))
    } else {
        Ok(())
    }
}

/// A line for people, in as many of at most 100 characters as it needs. What follows the first is
/// indented below its text. What is to be pasted stays in one line.
pub fn wrapped(line: &str) -> String {
    let line = numbers::plain(line);
    if is_pasted(line.trim()) {
        return line;
    }
    let indent = line.len() - line.trim_start().len();
    // Findings begin with a level and a topic.
    let indent = if ["good ", "note ", "BAD ", "     "]
        .iter()
        .any(|mark| line.starts_with(mark))
    {
        18.max(indent)
    } else {
        indent + 2
    };
    let indent = " ".repeat(indent);
    let options = textwrap::Options::new(100)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&line, options)
}

/// Returns whether a line is for a file or a command line: TOML, a command, or its options.
fn is_pasted(line: &str) -> bool {
    let command = ["rota ", "--"].iter().any(|start| line.starts_with(start));
    command || (!line.is_empty() && line.parse::<toml::Table>().is_ok())
}

/// A name for a file or folder, of letters, digits, `-` and `_`: what else is in `name` becomes `-`.
/// `otherwise` where it is empty.
pub fn file_name(name: &str, otherwise: &str) -> String {
    let harmless = |c: char| {
        if c.is_alphanumeric() || "-_".contains(c) {
            c
        } else {
            '-'
        }
    };
    if name.is_empty() {
        otherwise.to_owned()
    } else {
        name.chars().map(harmless).take(64).collect()
    }
}

/// Writes a text file.
///
/// # Errors
/// [`NodeCommandError::Write`].
pub fn write(file: &Path, text: &str) -> Result<(), NodeCommandError> {
    fs::write(file, text).map_err(|reason| NodeCommandError::Write {
        path: file.into(),
        reason,
    })
}

/// Returns how a program ends with an error of data.
pub fn data(error: &DataError) -> Exit {
    match error {
        DataError::Config(_)
        | DataError::Unanswered(_)
        | DataError::TooManySilos { .. }
        | DataError::NoFolder { .. }
        | DataError::Question { .. }
        | DataError::File { .. } => Exit::Input,
        _ => Exit::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_recognised_on_standard_output_only() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(NodeCommandError::from(broken()).is_broken_pipe());
        let written = NodeCommandError::Write {
            path: "x".into(),
            reason: broken(),
        };
        assert!(!written.is_broken_pipe());
    }
}
