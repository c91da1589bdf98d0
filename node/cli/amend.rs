//! The subcommands of `rota federation` that change the agreement of a running federation.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use protocol::PublicKey;

use super::{NodePlace, key, rows};

/// Changes of the agreement while the federation runs.
///
/// An institution proposes a change; it comes into force when the institutions of a quorum of
/// members have approved it. Each says so beside its own node, which tells the others; nobody edits
/// another institution's files.
#[derive(Debug, Subcommand)]
pub enum Amend {
    /// Propose an edited copy of the agreement in force
    Change {
        /// Edited copy; the agreement in force is `in-force.toml` in the state folder, or federation.toml
        /// before the first change
        file: PathBuf,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Propose to admit an institution to a running federation
    ///
    /// It comes last in the list of members.
    Admit {
        /// Line that the institution sends, as `rota federation join` prints it; or its name alone, which
        /// does not prove that it has signed the agreement and that its rows fit
        #[arg(value_name = "REQUEST|NAME")]
        name: String,
        /// With a name: public key, as `rota identity new` prints it
        #[arg(value_parser = key)]
        key: Option<PublicKey>,
        /// Address of its node, HOST:PORT or a libp2p multiaddress [default: none, it connects to the
        /// others]
        address: Vec<String>,
        /// Upper limit on the training rows that it may claim, which are its weight where models are averaged by
        /// rows [default: any number]
        #[arg(long, value_name = "N", value_parser = rows())]
        rows: Option<u64>,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Propose a question about the rows of all members
    ///
    /// Prints what each site would compute and what is opened. When the change is final, the institutions that
    /// approve it answer in rounds of the federation; `rota federation answers` prints the answer.
    Ask {
        /// Question: the file of `rota ask`, with a `reason`
        #[arg(value_name = "FILE.toml")]
        question: PathBuf,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Print the answers to the questions of the agreement
    ///
    /// Of the last round that the node has adopted. Needs no key and changes nothing; the node may run. Small
    /// cells are suppressed.
    Answers {
        /// Print one JSON document instead of text
        #[arg(long, conflicts_with = "csv")]
        json: bool,
        /// Print tables as CSV
        #[arg(long)]
        csv: bool,
        /// File for an HTML page of the answers, which is not overwritten [default: none]
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// File for the boosted trees of an answer, which is not overwritten: FILE.onnx, or FILE.json as a model of
        /// XGBoost [default: none]
        #[arg(long, value_name = "FILE")]
        export: Option<PathBuf>,
        /// Number of the question whose trees are exported, from 1 [default: the last that is answered by trees]
        #[arg(long, value_name = "N", requires = "export")]
        question: Option<usize>,
        /// The node.
        #[command(flatten)]
        node: NodePlace,
    },
    /// Propose to exclude a member
    Evict {
        /// Name of the member
        name: String,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Leave the federation
    ///
    /// Nobody has to approve it, unless the rest would then tolerate fewer faulty members (from 4 to 3 members,
    /// from 7 to 6 and so on).
    Leave {
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Propose another key for a member whose key was lost or stolen
    Rekey {
        /// Name of the member
        name: String,
        /// New public key, as `rota identity new` prints it
        #[arg(value_parser = key)]
        key: PublicKey,
        /// The old key was stolen: nodes answer its holder no longer, not even that it was replaced
        #[arg(long, required_unless_present = "lost")]
        stolen: bool,
        /// The old key was lost and nobody else has it: nodes inform a node that still uses it
        #[arg(long, conflicts_with = "stolen")]
        lost: bool,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Approve a proposed change, after showing what it changes
    Approve {
        /// Id of the amendment, as `rota federation changes` prints it: at least the first 32 digits
        id: String,
        /// Also print the whole new agreement
        #[arg(long)]
        text: bool,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Withdraw an approval of a change, or a proposal
    Withdraw {
        /// Id of the amendment, as `rota federation changes` prints it: at least the first 32 digits
        id: String,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Print proposed changes, what they change, and who approves them
    Changes {
        /// Also print the whole new agreements
        #[arg(long)]
        text: bool,
        /// The node.
        #[command(flatten)]
        node: NodePlace,
    },
}

/// Options of `rota recover`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["lost", "give_up"]).required(true)))]
pub struct Recover {
    /// Name of a member that is lost for good; may be repeated
    #[arg(long, value_name = "NAME")]
    pub lost: Vec<String>,
    /// Final round of secure aggregation to repeat, whose outcome no quorum certifies; nobody is lost
    #[arg(long = "abort-round", value_name = "ROUND", conflicts_with_all = ["lost", "abandon"])]
    pub give_up: Option<u64>,
    /// Revoke what this node has confirmed: all members whose confirmation it lacks are among the lost
    /// now, and will never come back
    #[arg(long)]
    pub abandon: bool,
    /// Where and how
    #[command(flatten)]
    pub here: Here,
}

/// The institution that says so.
#[derive(Debug, Args)]
pub struct Here {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Answer yes to the question
    #[arg(long)]
    pub yes: bool,
}
