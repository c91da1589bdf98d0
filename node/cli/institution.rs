//! The command line of one institution's node.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use agreement::{Span, public_key};
use clap::{Args, Subcommand};
use protocol::{Hash, PublicKey};

use super::members::member;
use super::{
    Amend, NewFederation, NodePlace, NumberMarks, OwnNames, ProposeSettings, StatePlace,
    WriteQuestions, rows,
};

/// Options of `rota run`.
#[derive(Debug, Args)]
pub struct RunNode {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Print events as JSON, one document a line
    #[arg(long)]
    pub json: bool,
    /// Exit when every member holds the last round, instead of serving others until a signal
    #[arg(long)]
    pub until_done: bool,
    /// Time that --until-done waits for an unreachable member, such as 30s or 2m [default: 30s or 20
    /// heartbeats, whichever is longer]
    #[arg(long, value_name = "SPAN", requires = "until_done", value_parser = span)]
    pub grace: Option<Duration>,
    /// Begin a new journal after the old one was lost or damaged, once: what is left of it is kept under
    /// another name, and the node only listens until it is safe to vote
    #[arg(long)]
    pub journal_lost: bool,
    /// Wait until the members admit this institution, if its key is in no agreement yet
    #[arg(long)]
    pub wait_for_admission: bool,
    /// Recovery to follow, by which other members resumed without this one: its id of 64 digits, as the
    /// node prints it
    #[arg(long, value_name = "ID", value_parser = recovery)]
    pub follow_recovery: Option<Hash>,
    /// Address of the status page and of metrics, such as 127.0.0.1:9600 [default: `listen` of [http] in
    /// node.toml, or none]
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub http: Option<SocketAddr>,
    /// Collector for traces of rounds, views and phases, such as http://127.0.0.1:4318; needs a
    /// build with --features otlp
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}

/// Options of `rota status`.
#[derive(Debug, Args)]
pub struct PrintStatus {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Show all nodes of the federation, where the agreement lets its members see them
    #[arg(long)]
    pub federation: bool,
    /// Print one JSON document instead of text; `rota schema status` describes it, or with --federation
    /// `rota schema nodes`
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota watch`.
#[derive(Debug, Args)]
pub struct WatchNode {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Show all nodes of the federation, where the agreement lets its members see them
    #[arg(long)]
    pub federation: bool,
}

/// Options of `rota chain`.
#[derive(Debug, Args)]
pub struct PrintChain {
    /// The state folder.
    #[command(flatten)]
    pub of: StatePlace,
    /// Agreement, for names and for checking votes [default: the copy in the state folder]
    #[arg(long, value_name = "FILE")]
    pub federation: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// File of evidence to verify instead of a node, as nodes write them into the folder evidence of
    /// their state
    #[arg(value_name = "EVIDENCE", conflicts_with_all = ["config", "state"])]
    pub evidence: Option<PathBuf>,
    /// The state folder.
    #[command(flatten)]
    pub of: StatePlace,
    /// Agreement [default: the copy in the state folder]
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
#[derive(Debug, Args)]
pub struct Audit {
    /// The state folder.
    #[command(flatten)]
    pub of: StatePlace,
    /// Agreement [default: the copy in the state folder]
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
    /// Generate a key and print its public part
    New {
        /// New file for the key; must not exist
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// What it is called, and where its node is reached.
        #[command(flatten)]
        called: Called,
    },
    /// Print the public part of a key file
    Show {
        /// Key file
        file: PathBuf,
        /// What it is called, and where its node is reached.
        #[command(flatten)]
        called: Called,
    },
}

/// What an institution is called, and where its node is reached.
#[derive(Debug, Args)]
pub struct Called {
    /// Name of the member; prints the line `NAME KEY ADDRESS` for `rota federation add`
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Address at which others reach its node: HOST:PORT, or a libp2p multiaddress; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "name")]
    pub address: Vec<String>,
    /// Upper limit on the training rows that this institution may claim; printed in the same line
    #[arg(long, value_name = "N", requires = "name", value_parser = rows())]
    pub rows: Option<u64>,
}

/// Options of `rota check`.
#[derive(Debug, Args)]
pub struct CheckNode {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Contact no other member
    #[arg(long)]
    pub offline: bool,
    /// With secure aggregation, let each running node mask a known vector, and name those that do not
    /// compute it alike
    #[arg(long = "dry-run", conflicts_with = "offline")]
    pub rehearse: bool,
    /// Timeout for an answer at one address
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "6s")]
    pub timeout: Duration,
}

/// The subcommands of `rota federation`.
#[derive(Debug, Subcommand)]
pub enum NodeFederationCommand {
    /// Write the agreement of a new federation
    ///
    /// The task comes from a scenario with a schema, or from the columns of a table; options replace parts of
    /// it, and a terminal asks for what is missing. Nobody's rows become part of the agreement. Members may be
    /// added later, with `rota federation add`.
    New(Box<NewFederation>),
    /// Write the agreement of a federation that starts from the model of an earlier one
    ///
    /// The new federation has the task, the protocol parameters and the members of the earlier one, unless
    /// options change them, and an id of its own. The first round starts from a model that the earlier one
    /// agreed on, which is written beside the agreement as `start.safetensors`: every member needs both files.
    Continue(ContinueFederation),
    /// Add a member to a draft
    ///
    /// A member sends the line that `rota identity new` prints; files with such lines add several members at
    /// once, in their order. The order of members is part of the agreement. A signed consent holds for the
    /// members that were there when it was signed.
    Add(AddMember),
    /// Print an agreement as one line of text, for a mail to the members
    Invite(Invite),
    /// Join a federation: read its agreement, sign it, and write the files of a node
    ///
    /// A running federation is joined with an invitation of `rota federation invite --config`: the institution
    /// signs the agreement in force with itself in it, and sends back the line that is printed. Prints the
    /// agreement as text and asks for consent, which is signed with the institution's key. Writes
    /// federation.toml, node.toml and consent.toml. The rows stay where they are.
    Join(Box<JoinFederation>),
    /// Sign an agreement that was changed, or was not signed when joining
    Sign(SignAgreement),
    /// Print an agreement as text, and who has signed it
    Show {
        /// Agreement, federation.toml
        file: PathBuf,
    },
    /// Write the agreement in force as a page to print, with signatures and decisions
    ///
    /// The page is for the files of the owner of the data and of the data protection officer: what is learned,
    /// who is in, what leaves, what was decided when and approved by whom, how to leave. A browser prints it,
    /// also as PDF.
    Print(PrintAgreement),
    /// Check an agreement, and whether an institution's rows fit it
    Check(CheckAgreement),
    /// Write the questions whose answers settle a schema
    ///
    /// Quantiles of columns of numbers and counts of levels, over the rows of all institutions, in place of the table
    /// of the one that drafts. A file for each question, to read and to ask.
    Questions(WriteQuestions),
    /// Propose ranges, fillings and levels of a schema by answers
    ///
    /// Prints the schema as TOML, with the reason of each value: which answer, of how many rows and sites, and what
    /// may lie beyond. Nothing is in force by that: an agreement with it is read and signed as any other.
    Settings(ProposeSettings),
    /// Changes of the agreement while the federation runs
    #[command(flatten)]
    Amend(Amend),
}

/// Options of `rota federation continue`.
#[derive(Debug, Args)]
pub struct ContinueFederation {
    /// The node that took part in the earlier federation.
    #[command(flatten)]
    pub node: NodePlace,
    /// Exported model (.safetensors) to start from, in place of one of a node
    #[arg(long, value_name = "FILE", requires = "earlier", conflicts_with_all = ["config", "coalition", "global", "round"])]
    pub model: Option<PathBuf>,
    /// With --model: agreement of the earlier federation
    #[arg(long, value_name = "FILE", requires = "model")]
    pub earlier: Option<PathBuf>,
    /// Coalition whose model to start from, by its number; required if there are several
    #[arg(long, value_name = "N")]
    pub coalition: Option<u32>,
    /// Start from the mean of the models of all coalitions
    #[arg(long, conflicts_with = "coalition")]
    pub global: bool,
    /// Round after which the model was adopted [default: the last]
    #[arg(long, value_name = "N")]
    pub round: Option<u64>,
    /// Number of rounds [default: that of the earlier federation]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
    /// Strategy with its defaults, as `rota strategies` lists them [default: that of the earlier
    /// federation]
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// Name of the federation [default: that of the earlier federation]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Joining member, by name, public key and the most training rows that its models may claim, which rounds with
    /// noise need; repeat for each
    #[arg(long = "member", value_name = "NAME=KEY[=ROWS]", value_parser = member)]
    pub members: Vec<(String, PublicKey, Option<u64>)>,
    /// Leaving member, by name; repeat for each
    #[arg(long, value_name = "NAME")]
    pub without: Vec<String>,
    /// Give up secure aggregation, and noise with it: every member sees every model from now on. Otherwise the
    /// federation protects contributions as the earlier one does
    #[arg(long, conflicts_with = "give_up_noise")]
    pub give_up_masks: bool,
    /// Give up the noise and keep the masks: nothing bounds any more what sums tell about a row or person
    #[arg(long)]
    pub give_up_noise: bool,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "federation.toml")]
    pub out: PathBuf,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
}

/// Options of `rota federation add`.
#[derive(Debug, Args)]
pub struct AddMember {
    /// Name, public key and addresses (HOST:PORT, or libp2p multiaddresses) of a member, where one
    /// without an address connects to the others; or files with the lines of members
    #[arg(required = true, value_names = ["NAME", "KEY", "ADDRESS"], num_args = 1..)]
    pub member: Vec<String>,
    /// Upper limit on the training rows that it may claim, which are its weight where models are averaged by
    /// rows [default: any number]
    #[arg(long, value_name = "N", value_parser = rows())]
    pub rows: Option<u64>,
    /// Agreement
    #[arg(long, value_name = "FILE", default_value = "federation.toml")]
    pub file: PathBuf,
}

/// Options of `rota federation invite`.
#[derive(Debug, Args)]
pub struct Invite {
    /// Member that the invitation is for [default: all]
    pub name: Option<String>,
    /// Agreement of a federation that has not begun [default: federation.toml, where there is no node]
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub file: Option<PathBuf>,
    /// The node of a running federation, whose agreement in force it invites to.
    #[command(flatten)]
    pub node: NodePlace,
}

/// Options of `rota federation join`.
#[derive(Debug, Args)]
pub struct JoinFederation {
    /// Invitation, or a file with it, or federation.toml itself; - for standard input
    #[arg(value_name = "TOKEN|FILE")]
    pub invitation: String,
    /// Key file of the institution
    #[arg(long, value_name = "FILE")]
    pub identity: PathBuf,
    /// File of own rows: CSV, .csv.gz, .xlsx, .ods or .parquet; may be repeated
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,
    /// Column that is not in the agreement and not read; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub ignore: Vec<String>,
    /// What the files call what is agreed, which goes into node.toml.
    #[command(flatten)]
    pub names: OwnNames,
    /// What the files leave open.
    #[command(flatten)]
    pub marks: NumberMarks,
    /// Number that looks as if it stood for a missing value and was measured; or column that behaves like a person's
    /// number and is right to learn from; may be repeated
    #[arg(long, value_name = "COLUMN[=VALUE]", value_parser = kept)]
    pub keep: Vec<(String, Option<String>)>,
    /// Address to listen at, a libp2p multiaddress; may be repeated [default: the ports of this
    /// member's addresses in the agreement, on all interfaces]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// Folder of the node, for the new files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Where the ledger of these rows is.
    #[command(flatten)]
    pub counted: CountedIn,
    /// Sign without asking
    #[arg(long)]
    pub yes: bool,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
    /// Name of the member, for the line to send back if its key is not in the agreement
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Its address, for that line
    #[arg(long, value_name = "ADDRESS")]
    pub address: Vec<String>,
    /// Upper limit on the training rows that this institution may claim; printed in the same line
    #[arg(long, value_name = "N", value_parser = rows())]
    pub rows: Option<u64>,
}

/// The ledger that counts what rounds with noise tell about the rows of an institution.
#[derive(Debug, Clone, Default, Args)]
pub struct CountedIn {
    /// Where rounds have noise: the ledger that these rows have already, because of another federation
    #[arg(long, value_name = "FILE", conflicts_with = "new_ledger")]
    pub ledger: Option<PathBuf>,
    /// Where rounds have noise: create the ledger of these rows, under this name for reports. Only if they have
    /// none: two ledgers of the same rows do not know of each other, so that each counts too little
    #[arg(long, value_name = "NAME")]
    pub new_ledger: Option<String>,
}

/// Options of `rota federation sign`.
#[derive(Debug, Args)]
pub struct SignAgreement {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Column that is not in the agreement and not read; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub ignore: Vec<String>,
    /// What the files call what is agreed, which goes into node.toml.
    #[command(flatten)]
    pub names: OwnNames,
    /// Number that looks as if it stood for a missing value and was measured; or column that behaves like a person's
    /// number and is right to learn from; goes into node.toml; may be repeated
    #[arg(long, value_name = "COLUMN[=VALUE]", value_parser = kept)]
    pub keep: Vec<(String, Option<String>)>,
    /// Where the ledger of these rows is.
    #[command(flatten)]
    pub counted: CountedIn,
    /// Sign without asking
    #[arg(long)]
    pub yes: bool,
}

/// Options of `rota federation print`.
#[derive(Debug, Args)]
pub struct PrintAgreement {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Page to write
    #[arg(long, value_name = "FILE", default_value = "agreement.html")]
    pub out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}

/// Options of `rota federation check`.
#[derive(Debug, Args)]
pub struct CheckAgreement {
    /// Agreement, federation.toml
    pub file: PathBuf,
    /// Node whose rows are checked, by its node.toml or the folder that has it [default: no rows]
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// File of rows to check: CSV, .csv.gz, .xlsx, .ods or .parquet; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub data: Vec<PathBuf>,
    /// With --data: column that is not in the agreement and not read; may be repeated
    #[arg(
        long,
        value_name = "COLUMN",
        requires = "data",
        allow_hyphen_values = true
    )]
    pub ignore: Vec<String>,
    /// What the files call what is agreed.
    #[command(flatten)]
    pub names: OwnNames,
    /// Number that looks as if it stood for a missing value and was measured; or column that behaves like a person's
    /// number and is right to learn from; may be repeated
    #[arg(long, value_name = "COLUMN[=VALUE]", value_parser = kept)]
    pub keep: Vec<(String, Option<String>)>,
    /// What the files leave open.
    #[command(flatten)]
    pub marks: NumberMarks,
}

/// `COLUMN` or `COLUMN=VALUE`; the name of the column may contain equals signs.
fn kept(text: &str) -> Result<(String, Option<String>), String> {
    Ok(match text.rsplit_once('=') {
        Some((column, value)) if value.parse::<f64>().is_ok() => {
            (column.to_owned(), Some(value.to_owned()))
        }
        _ => (text.to_owned(), None),
    })
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
