//! The command line of one institution's node.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use agreement::{Span, public_key};
use clap::{Args, Subcommand};
use protocol::{Hash, PublicKey};

use super::{Amend, NumberMarks, rows};

/// Options of `rota run`.
#[derive(Debug, Args)]
pub struct RunNode {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// Print one JSON document per line instead of text
    #[arg(long)]
    pub json: bool,
    /// End when every member holds the last round, instead of serving others until a signal
    #[arg(long)]
    pub until_done: bool,
    /// Time that --until-done waits for a member that cannot be reached, such as 30s or 2m
    /// [default: 30s or 20 beats, whichever is longer]
    #[arg(long, value_name = "SPAN", requires = "until_done", value_parser = span)]
    pub grace: Option<Duration>,
    /// Begin a new journal after the old one was lost or damaged: what is left of it is kept under
    /// another name, and the node only listens until it is safe to vote. Needed once
    #[arg(long)]
    pub journal_lost: bool,
    /// Wait until the members admit this institution, if its key is in no agreement yet
    #[arg(long)]
    pub wait_for_admission: bool,
    /// Follow this recovery, by which other members went on without this institution; its id, of 64
    /// digits, stands in the line that says so
    #[arg(long, value_name = "ID", value_parser = recovery)]
    pub follow_recovery: Option<Hash>,
    /// Address for a page with the node's status and for metrics, such as 127.0.0.1:9600
    /// [default: `listen` of [http] in the configuration; none without it]
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub http: Option<SocketAddr>,
    /// Collector for traces of rounds, views and phases, such as http://127.0.0.1:4318; needs a
    /// program that was built with --features otlp
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}

/// Options of `rota status`.
///
/// Asks the node over a socket in its state folder, which only the user that runs it can open. Exits
/// with 1 if no node runs.
#[derive(Debug, Args)]
pub struct PrintStatus {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// All nodes of the federation, where the agreement lets its members see them
    #[arg(long)]
    pub federation: bool,
    /// Print one JSON document instead of text; `rota schema status` describes it, and `rota schema
    /// nodes` that of all nodes
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota watch`.
///
/// The screen stays when the node ends, and goes on when it is started again. The key q quits.
#[derive(Debug, Args)]
pub struct WatchNode {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// All nodes of the federation, where the agreement lets its members see them
    #[arg(long)]
    pub federation: bool,
}

/// Options of `rota chain`.
///
/// Needs no key and changes nothing; the node may run. Every block is shown with its round (or as
/// empty), view, lead, hash, parent's hash, outcome, the members that contributed, and those that its
/// lead left out; at the end, who was left out how often by whom. Whether a lead left a member out or
/// never heard of it, the chain does not tell. With --json two nodes of one federation print the same
/// text, as far as both have come.
#[derive(Debug, Args)]
pub struct PrintChain {
    /// State folder of the node: `state` in its silo.toml
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// The agreement, for names and for checking votes [default: the copy in the state folder]
    #[arg(long, value_name = "FILE")]
    pub federation: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota verify`.
///
/// Of a state folder: every block, signature and certificate, what the silo signed and adopted, and the
/// bytes of every model; then the rounds are computed again (plan, decision, outcome) as far back as
/// their models are kept. Needs no key and changes nothing; the node may run. The first thing that is
/// wrong is named, with exit code 1.
#[derive(Debug, Args)]
pub struct Verify {
    /// State folder of a node, or a file of evidence, as nodes write them into STATE/evidence
    #[arg(value_name = "STATE|FILE")]
    pub path: PathBuf,
    /// The agreement [default: the copy in the state folder]
    #[arg(long, value_name = "FILE")]
    pub federation: Option<PathBuf>,
    /// Folder of data sets, for the tasks of benchmarks [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota audit`.
///
/// Every line of the log holds the hash of the line before it, the silo signs the last, and the journal
/// names it too: a line that was changed, cut out or added is named, and so is an older copy of the log
/// beside a newer journal, with exit code 1. Prints every line as a sentence, and then how much of what went
/// to whom. Needs no key and changes nothing; the node may run.
#[derive(Debug, Args)]
pub struct Audit {
    /// State folder of the node: `state` in its silo.toml
    #[arg(value_name = "STATE")]
    pub state: PathBuf,
    /// The agreement [default: the copy in the state folder]
    #[arg(long, value_name = "FILE")]
    pub federation: Option<PathBuf>,
    /// Print the lines as they are, one JSON document each, instead of sentences
    #[arg(long)]
    pub json: bool,
    /// Print only how much of what went to whom
    #[arg(long, conflicts_with = "json")]
    pub summary: bool,
}

/// The subcommands of `rota identity`.
#[derive(Debug, Subcommand)]
pub enum Identity {
    /// Make a new key and print its public key
    New {
        /// New file for the key; must not exist
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// What it is called, and where its node is reached.
        #[command(flatten)]
        called: Called,
    },
    /// Print the public key of a key file
    Show {
        /// The key file
        file: PathBuf,
        /// What it is called, and where its node is reached.
        #[command(flatten)]
        called: Called,
    },
}

/// What an institution is called, and where its node is reached.
#[derive(Debug, Args)]
pub struct Called {
    /// Name of the institution: prints the line `NAME KEY ADDRESS` for `rota federation add`
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Address at which the others will reach its node: HOST:PORT, or as libp2p writes it; may be
    /// repeated
    #[arg(long, value_name = "ADDRESS", requires = "name")]
    pub address: Vec<String>,
    /// Upper limit on the training rows that this institution may claim; printed in the same line
    #[arg(long, value_name = "N", requires = "name", value_parser = rows())]
    pub rows: Option<u64>,
}

/// Options of `rota check`.
///
/// Changes nothing. Works while the institution's node runs, without disturbing it, and while it does
/// not. Exits with 0 if all is well, 3 if all is well here and other members' nodes do not answer yet, 1
/// if something is bad, 2 if silo.toml or the agreement is wrong.
#[derive(Debug, Args)]
pub struct CheckNode {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Try no other member
    #[arg(long)]
    pub offline: bool,
    /// In masked rounds, let each running node mask a known vector, and name the ones that do it otherwise
    #[arg(long, conflicts_with = "offline")]
    pub rehearse: bool,
    /// Longest wait for an answer at one address
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "6s")]
    pub timeout: Duration,
}

/// The subcommands of `rota federation`.
#[derive(Debug, Subcommand)]
pub enum NodeFederationCommand {
    /// Write the agreement of a federation that goes on from a model of an earlier one
    Continue(ContinueFederation),
    /// Add a member to an agreement
    Add(AddMember),
    /// Print an agreement as one line of text, for a mail to the members
    Invite(Invite),
    /// Take part in a federation: read its agreement, sign it, and write the files of a node
    Join(JoinFederation),
    /// Sign an agreement that was changed, or was not signed when joining
    Sign(SignAgreement),
    /// Print an agreement in words, for those who sign it, and who has signed it
    Show {
        /// The agreement, federation.toml
        file: PathBuf,
    },
    /// Write the agreement in force as a page to print, with its signatures and what was decided
    Print(PrintAgreement),
    /// Check an agreement, and whether an institution's rows fit it
    Check(CheckAgreement),
    /// Changes of the agreement while the federation runs
    #[command(flatten)]
    Amend(Amend),
}

/// Options of `rota federation continue`.
///
/// The new federation has the task, the charter and the members of the earlier one, unless something
/// else is said, and an id of its own. The first round starts from a model that the earlier one agreed
/// on, which is written beside the agreement as `start.safetensors`: every member needs both files.
#[derive(Debug, Args)]
pub struct ContinueFederation {
    /// Configuration of a node that took part in the earlier federation
    #[arg(long, value_name = "FILE", required_unless_present = "model")]
    pub config: Option<PathBuf>,
    /// An exported model (.safetensors) to start from, instead of one of a node
    #[arg(long, value_name = "FILE", requires = "earlier", conflicts_with_all = ["config", "coalition", "global", "round"])]
    pub model: Option<PathBuf>,
    /// With --model: the agreement of the earlier federation
    #[arg(long, value_name = "FILE", requires = "model")]
    pub earlier: Option<PathBuf>,
    /// Coalition whose model to start from; needed where there are several
    #[arg(long, value_name = "N")]
    pub coalition: Option<u32>,
    /// Start from the mean of all coalitions' models
    #[arg(long, conflicts_with = "coalition")]
    pub global: bool,
    /// Round after which the model was adopted [default: the last]
    #[arg(long, value_name = "N")]
    pub round: Option<u64>,
    /// Number of rounds [default: as before]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
    /// Name of a strategy, as `rota strategies` lists them, with its defaults [default: as before]
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// Name of the federation [default: as before]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// A member that comes in: its name and its public key; repeat for each
    #[arg(long = "member", value_name = "NAME=KEY", value_parser = member)]
    pub members: Vec<(String, PublicKey)>,
    /// Name of a member that leaves; repeat for each
    #[arg(long, value_name = "NAME")]
    pub without: Vec<String>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "federation.toml")]
    pub out: PathBuf,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
}

/// Options of `rota federation add`.
///
/// A member sends the line that `rota identity new` prints; files with such lines add several members at
/// once, in their order. The order in which members are added is part of the agreement. A signed consent holds for the
/// members that were there when it was signed.
#[derive(Debug, Args)]
pub struct AddMember {
    /// Name, public key and addresses (HOST:PORT, or as libp2p writes them) of an institution, where one
    /// without an address connects to the others; or files with the lines of members
    #[arg(required = true, value_names = ["NAME", "KEY", "ADDRESS"], num_args = 1..)]
    pub member: Vec<String>,
    /// Upper limit on the training rows that it may claim, which are its weight where models are averaged by
    /// rows [default: any number]
    #[arg(long, value_name = "N", value_parser = rows())]
    pub rows: Option<u64>,
    /// The agreement
    #[arg(long, value_name = "FILE", default_value = "federation.toml")]
    pub file: PathBuf,
}

/// Options of `rota federation invite`.
#[derive(Debug, Args)]
pub struct Invite {
    /// The member that it is for [default: all]
    pub name: Option<String>,
    /// The agreement, of a federation that has not begun [default: federation.toml]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The node's configuration, of a federation that runs: invites to its agreement in force [default:
    /// silo.toml, if its node has run]
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub config: Option<PathBuf>,
}

/// Options of `rota federation join`.
///
/// A federation that runs is joined with an invitation of `rota federation invite --config`: the
/// institution signs the agreement in force with itself in it, and sends back the line that is printed.
/// Prints the agreement in words and asks for consent, which is signed with the institution's key.
/// Writes federation.toml, silo.toml and consent.toml. The rows stay where they are.
#[derive(Debug, Args)]
pub struct JoinFederation {
    /// The invitation, or a file with it, or federation.toml itself; - for standard input
    #[arg(value_name = "TOKEN|FILE")]
    pub invitation: String,
    /// The institution's key file
    #[arg(long, value_name = "FILE")]
    pub identity: PathBuf,
    /// File of the institution's rows: CSV, .csv.gz or .parquet; may be repeated
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,
    /// Column of the files that is not in the agreement and not read; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub ignore: Vec<String>,
    /// What the files leave open.
    #[command(flatten)]
    pub marks: NumberMarks,
    /// Address to listen at, as libp2p writes it; may be repeated [default: the ports of this
    /// member's addresses in the agreement, on all interfaces]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// Folder for the new files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Sign without asking
    #[arg(long)]
    pub yes: bool,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
    /// Name of the institution, for the line to send back if its key is not in the agreement
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Its address, for the same line
    #[arg(long, value_name = "ADDRESS")]
    pub address: Vec<String>,
    /// Upper limit on the training rows that this institution may claim; printed in the same line
    #[arg(long, value_name = "N", value_parser = rows())]
    pub rows: Option<u64>,
}

/// Options of `rota federation sign`.
#[derive(Debug, Args)]
pub struct SignAgreement {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// Sign without asking
    #[arg(long)]
    pub yes: bool,
}

/// Options of `rota federation print`.
///
/// The page is for the files of the owner of the data and of the data protection officer: what is learned,
/// who is in, what leaves, what was decided when and approved by whom, how to leave. A browser prints it,
/// also as PDF.
#[derive(Debug, Args)]
pub struct PrintAgreement {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "agreement.html")]
    pub out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}

/// Options of `rota federation check`.
#[derive(Debug, Args)]
pub struct CheckAgreement {
    /// The agreement, federation.toml
    pub file: PathBuf,
    /// Read the rows that this silo.toml names
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Read the rows in this file: CSV, .csv.gz or .parquet; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub data: Vec<PathBuf>,
    /// With --data: column that is not in the agreement and not read; may be repeated
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub ignore: Vec<String>,
    /// What the files leave open.
    #[command(flatten)]
    pub marks: NumberMarks,
}

/// `NAME=KEY`, the key as 64 hexadecimal digits.
///
/// # Errors
/// A sentence: what it must look like.
pub fn member(text: &str) -> Result<(String, PublicKey), String> {
    let wrong = || {
        format!(
            "{text:?} must be NAME=KEY, with the 64 hexadecimal digits that `rota identity` prints"
        )
    };
    let (name, key) = text.rsplit_once('=').ok_or_else(wrong)?;
    let key = agreement::public_key(key.trim()).ok_or_else(wrong)?;
    match name.trim() {
        "" => Err(wrong()),
        name => Ok((name.to_owned(), key)),
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    crate::status::http::address(text).map_err(|error| error.to_string())
}

/// The whole id of a recovery: what only begins alike may be another one, which the node has not met.
fn recovery(text: &str) -> Result<Hash, String> {
    match public_key(text) {
        Some(PublicKey(id)) => Ok(Hash(id)),
        None => Err("expected the whole id of the recovery, 64 hexadecimal digits".into()),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    Span::try_from(text.to_owned()).map(|span| span.0)
}
