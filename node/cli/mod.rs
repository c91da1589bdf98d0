//! The command line of an institution: the commands around its node. The program `rota-node` has these
//! alone; the program `rota` adds those of the laboratory.

// The comments are what `--help` prints.
#![allow(rustdoc::broken_intra_doc_links)]

mod amend;
mod backup;
mod blame;
mod institution;
mod learner;
mod ledger;
mod model;
mod typed;

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use mesh::Transport;

use crate::logging::LogFormat;
pub use amend::{Amend, Here, Recover};
pub use backup::{Backup, Restore};
pub use blame::BlameRound;
pub use institution::{
    AddMember, Audit, Called, CheckAgreement, CheckNode, ContinueFederation, Identity, Invite,
    JoinFederation, NodeFederationCommand, PrintAgreement, PrintChain, PrintStatus, RunNode,
    SignAgreement, Verify, WatchNode, member,
};
pub use learner::{DescribeLearner, LearnerCommand, program};
pub use ledger::{ExportLedger, LedgerCommand, NewLedger, ShowLedger};
pub use model::{
    ExportModel, ModelCommand, ModelFormat, ModelSelection, PredictRows, ShowModel, ThresholdAt,
};
pub use typed::{quoted, typed};

/// How the log is written, the same for all commands.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// Log level on standard error: -v for events, -vv for every step; RUST_LOG overrides it
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Format of the log on standard error
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    pub log_format: LogFormat,
}

/// The commands around an institution's node, without those of `rota federation`.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// List the devices on which this program can train here, and why not on others
    Devices(Devices),
    /// Run one institution's node
    Run(RunNode),
    /// Look at everything that a node needs: agreement, key, rows, machine, and the other members
    Check(CheckNode),
    /// Print what a running node says of itself: round, lead, members, own metrics
    Status(PrintStatus),
    /// Show the same on a screen of the terminal that follows the node
    Watch(WatchNode),
    /// Print the agreed chain in a node's journal: leads, contributors, who was left out, outcomes
    Chain(PrintChain),
    /// Verify the state folder of a node and compute its rounds again, or verify evidence
    Verify(Verify),
    /// Check the log of everything that a node sent, and print it
    Audit(Audit),
    /// Find out who spoiled the sum of a masked round, with the consent of those who are examined
    Blame(BlameRound),
    /// Take models out of a node: list, show, export, predict
    #[command(subcommand)]
    Model(ModelCommand),
    /// Look at programs that train models in place of Rota
    #[command(subcommand)]
    Learner(LearnerCommand),
    /// Make an institution's key, or show its public key
    #[command(subcommand)]
    Identity(Identity),
    /// Make, show or export the ledger of what was told about the rows of a source
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Save what an institution cannot get back from the others: key, agreement, personal state, model
    Backup(Backup),
    /// Put a backup back; the node then only listens until it is safe to vote
    Restore(Restore),
    /// Go on without members that are gone for good, where no quorum is left
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

/// The marks in numbers, for files that leave them open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct NumberMarks {
    /// The mark before decimals, where a file leaves it open: "." or ","
    #[arg(long, value_name = "MARK")]
    pub decimal: Option<char>,
    /// The mark between thousands, where a file leaves it open, such as "," or "."
    #[arg(long, value_name = "MARK")]
    pub thousands: Option<char>,
}

impl From<NumberMarks> for task::propose::Marks {
    fn from(marks: NumberMarks) -> Self {
        Self {
            decimal: marks.decimal,
            thousands: marks.thousands,
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
