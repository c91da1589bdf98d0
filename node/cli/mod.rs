//! The command line around a node. The program `rota-node` has these
//! alone; the program `rota` adds those of the laboratory.

// The comments are what `--help` prints.
#![allow(rustdoc::broken_intra_doc_links)]

mod amend;
mod backup;
mod blame;
mod columns;
mod draft;
mod help;
mod institution;
mod learner;
mod ledger;
mod members;
mod model;
mod names;
mod place;
mod program;
mod settings;
mod typed;

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use mesh::Transport;
use task::data::Charset;
use task::schema::DateForm;

use crate::logging::LogFormat;
pub use amend::{Amend, Here, Recover};
pub use backup::{Backup, Restore};
pub use blame::BlameRound;
pub use columns::Columns;
pub use draft::{Init, MissingKind, NewFederation, ProtectionOptions};
pub use help::{GROUPS, grouped, parse, refused, ungrouped};
pub use institution::{
    AddMember, Audit, Called, CheckAgreement, CheckNode, ContinueFederation, CountedIn, Identity,
    Invite, JoinFederation, NodeFederationCommand, PrintAgreement, PrintChain, PrintStatus,
    RunNode, SignAgreement, Verify, WatchNode,
};
pub use learner::{DescribeLearner, LearnerCommand, program};
pub use ledger::{ExportLedger, LedgerCommand, NewLedger, ReconcileLedger, ShowLedger};
pub use model::{
    ExportModel, ModelCommand, ModelFormat, ModelSelection, PredictRows, ShowModel, ThresholdAt,
};
pub use names::OwnNames;
pub use place::{NoNode, NodePlace, StatePlace, config_in};
pub use program::{PrintMan, ProgramCommand};
pub use settings::{ProposeSettings, WriteQuestions};
pub use typed::{quoted, typed};

/// How the log is written, by all commands.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// Log level on standard error, -v for events or -vv for every step [default: warnings, or RUST_LOG]
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Format of the log on standard error: text or json [default: text]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub log_format: LogFormat,
}

/// The commands around a node, without those of `rota federation`.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Draft a scenario from data files
    Init(Box<Init>),
    /// List devices for training, and why others are unavailable
    Devices(Devices),
    /// Run a node
    Run(RunNode),
    /// Check what a node needs: agreement, key, rows, machine, members
    ///
    /// Changes nothing. Works while the node runs, without disturbing it, and while it does not. Exits with 0
    /// if all is well, 3 if all is well here and other members' nodes do not answer yet, 1 if something has
    /// to be mended, 2 if node.toml or the agreement is wrong.
    Check(CheckNode),
    /// Print the status of a running node
    ///
    /// Round, lead, members and own metrics. Asks the node over a socket in its state folder, which only the
    /// user that runs it can open. Exits with 1 if no node runs.
    Status(PrintStatus),
    /// Show a live dashboard of a node
    ///
    /// Stays when the node ends, and resumes when it is started again. The key q quits.
    Watch(WatchNode),
    /// Print the final rounds in a node's journal
    ///
    /// Needs no key and changes nothing; the node may run. Prints every block with its round (or as empty),
    /// view, lead, hash, parent's hash, outcome, contributors, and the members that its lead left out; at the
    /// end, who was left out how often by whom. The chain does not state whether a lead left a member out or
    /// never heard of it. With --json two nodes of one federation print equal text, as far as both have come.
    Chain(PrintChain),
    /// Verify the state of a node by recomputing it, or verify evidence
    ///
    /// Of a state folder: every block, signature and certificate, what the silo signed and adopted, and the
    /// bytes of every model; then the rounds are recomputed (plan, decision, outcome) as far back as their
    /// models are kept. Needs no key and changes nothing; the node may run. Names the first error, and exits
    /// with 1.
    Verify(Verify),
    /// Check and print the log of everything that a node sent
    ///
    /// Every line of the log holds the hash of the line before it, the silo signs the last, and the journal
    /// names it too: a line that was changed, removed or added is named, and so is an older copy of the log
    /// beside a newer journal, with exit code 1. Prints every line as a sentence, and then how much of what
    /// went to whom. Needs no key and changes nothing; the node may run.
    Audit(Audit),
    /// Identify authors who corrupted a sum, with their consent
    ///
    /// For a round of secure aggregation with a void sum. Each author may disclose its secret of that round,
    /// and whoever has kept the round finds from the secrets who sent something wrong. Refused for a round
    /// whose sum was adopted, and with differential privacy. Reads a state folder, needs no key, and works
    /// while the node runs. Without --disclose and --with it prints which sums of the round are void, and
    /// whose they are.
    Blame(BlameRound),
    /// List, show and export models, and predict with them
    #[command(subcommand)]
    Model(ModelCommand),
    /// Describe external training programs
    #[command(subcommand)]
    Learner(LearnerCommand),
    /// Generate a key or print its public part
    #[command(subcommand)]
    Identity(Identity),
    /// Create, print or export a privacy budget ledger
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Save what other members cannot give back
    ///
    /// Key, agreement, personal state and model. The file is for its owner alone, because the secret key is
    /// in it: whoever has the file can sign in the institution's name. The node may run meanwhile. Not in the
    /// backup are what the node has signed, its rows, and the program of `learner`.
    Backup(Backup),
    /// Restore a node from a backup
    ///
    /// Puts everything where the node.toml in the backup states, and overwrites nothing. Refuses a state
    /// folder that a node has used, because what it has signed since the backup would be forgotten. The
    /// journal begins as one that was lost: the node only listens until none of its earlier votes counts any
    /// more.
    Restore(Restore),
    /// Exclude lost members when no quorum is left
    ///
    /// For a federation that lost so many members for good that no quorum is left: one of two, two of four.
    /// All members that remain sign for the same lost ones; their nodes then resume from the newest round
    /// that one of them has. Call everybody before you sign: a member that was declared lost and is not is
    /// left behind, and what it alone had is lost.
    ///
    /// With secure aggregation also where nobody is lost and yet no outcome of a final round is certified,
    /// because too few machines compute equal outcomes or can still open the sums: `--abort-round` repeats the
    /// round, once all members have signed. A member that has its outcome signs too, and then all resume from
    /// that.
    Recover(Recover),
}

/// 64 hexadecimal digits.
pub fn key(text: &str) -> Result<protocol::PublicKey, String> {
    agreement::public_key(text.trim())
        .ok_or_else(|| "a key has the 64 hexadecimal digits that `rota identity` prints".to_owned())
}

/// A number of training rows that a member can declare.
pub fn rows() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=protocol::roster::MOST_ROWS)
}

/// The folder of data: as given, or from the environment, or `./data` if that exists.
pub fn data_folder(given: Option<&Path>) -> Option<PathBuf> {
    let environment = std::env::var_os("ROTA_DATA").filter(|folder| !folder.is_empty());
    let beside = PathBuf::from("data");
    given
        .map(Path::to_owned)
        .or_else(|| environment.map(PathBuf::from))
        .or_else(|| beside.is_dir().then_some(beside))
}

/// How files are written, where they leave it open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct NumberMarks {
    /// Decimal mark, "." or ",", of files that leave it open
    #[arg(long, value_name = "MARK")]
    pub decimal: Option<char>,
    /// Thousands mark, such as "," or ".", of files that leave it open
    #[arg(long, value_name = "MARK")]
    pub thousands: Option<char>,
    /// Encoding of files that are not UTF-8, such as windows-1252, cp850 or shift_jis, where they leave it open
    #[arg(long, value_name = "NAME", value_parser = charset)]
    pub encoding: Option<Charset>,
    /// Sheet of spreadsheets (.xlsx, .ods) [default: the first]
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
}

/// An encoding by its name.
fn charset(name: &str) -> Result<Charset, String> {
    Charset::of(name).ok_or_else(|| {
        format!("there is no encoding {name:?}; usual ones are windows-1252, cp850, shift_jis, gb18030, koi8-r")
    })
}

/// COLUMN=TEXT; the name of the column may contain further equals signs.
///
/// # Errors
/// There is no equals sign, or nothing on one side of it.
pub fn column_text(text: &str) -> Result<(String, String), String> {
    let pair = text
        .rsplit_once('=')
        .filter(|(column, text)| !column.is_empty() && !text.is_empty());
    let (column, text) = pair.ok_or("COLUMN=TEXT is needed")?;
    Ok((column.to_owned(), text.to_owned()))
}

/// COLUMN=FORM: a column, and how its dates are written.
///
/// # Errors
/// Not that, or no form of dates.
pub fn date_form(text: &str) -> Result<(String, DateForm), String> {
    let (column, form) = column_text(text)?;
    Ok((column, form.parse()?))
}

impl From<NumberMarks> for task::propose::Marks {
    fn from(marks: NumberMarks) -> Self {
        Self {
            decimal: marks.decimal,
            thousands: marks.thousands,
            encoding: marks.encoding,
            sheet: marks.sheet,
        }
    }
}

/// Options of `rota devices`.
#[derive(Debug, Args)]
pub struct Devices {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// A transport of real sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportKind {
    /// QUIC over UDP
    Quic,
    /// TCP with Noise and Yamux
    Tcp,
}

impl From<TransportKind> for Transport {
    fn from(kind: TransportKind) -> Self {
        match kind {
            TransportKind::Quic => Transport::Quic,
            TransportKind::Tcp => Transport::Tcp,
        }
    }
}
