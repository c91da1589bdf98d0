//! The subcommands of `rota federation` that change the agreement of a running federation.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use protocol::PublicKey;

use super::{key, rows};

/// Changes of the agreement while the federation runs.
///
/// An institution proposes a change; it comes into force when the institutions of a quorum of
/// members have approved it. Each says so beside its own node, which tells the others; nobody edits
/// another institution's files.
#[derive(Debug, Subcommand)]
pub enum Amend {
    /// Propose another agreement: an edited copy of the one in force
    Change {
        /// The edited agreement; `in-force.toml` in the state folder, or federation.toml before the
        /// first change, is the one in force
        file: PathBuf,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Propose to admit an institution
    ///
    /// It comes last in the list of members.
    Admit {
        /// The line that the institution sends, as `rota federation join` prints it; or its name, without
        /// which nobody sees that it has signed the agreement and that its rows fit
        #[arg(value_name = "REQUEST|NAME")]
        name: String,
        /// With a name: its public key, as `rota identity new` prints it
        #[arg(value_parser = key)]
        key: Option<PublicKey>,
        /// Where its node is reached: HOST:PORT, or as libp2p writes it; without one it connects to
        /// the others
        address: Vec<String>,
        /// Upper limit on the training rows that it may claim, which are its weight where models are averaged by
        /// rows [default: any number]
        #[arg(long, value_name = "N", value_parser = rows())]
        rows: Option<u64>,
        /// Where and how
        #[command(flatten)]
        here: Here,
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
        /// Its new public key, as `rota identity new` prints it
        #[arg(value_parser = key)]
        key: PublicKey,
        /// The old key was stolen: nodes tell whoever has it nothing any more, not even that it was
        /// replaced
        #[arg(long, required_unless_present = "lost")]
        stolen: bool,
        /// The old key was lost and nobody else has it: a node that still uses it is told that it was
        /// replaced
        #[arg(long, conflicts_with = "stolen")]
        lost: bool,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Approve a proposed change, after showing what it changes
    Approve {
        /// Id of the amendment, as `rota federation changes` prints it: at least the first 16 digits
        id: String,
        /// Print the whole new agreement, too
        #[arg(long)]
        text: bool,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Withdraw this institution's approval of a change, or its own proposal
    Withdraw {
        /// Id of the amendment, as `rota federation changes` prints it: at least the first 16 digits
        id: String,
        /// Where and how
        #[command(flatten)]
        here: Here,
    },
    /// Print proposed changes, what they change, and who approves them
    Changes {
        /// Print the whole new agreements, too
        #[arg(long)]
        text: bool,
        /// The node's configuration
        #[arg(long, value_name = "FILE", default_value = "silo.toml")]
        config: PathBuf,
    },
}

/// Options of `rota recover`.
///
/// For a federation in which so many members are gone for good that no quorum is left: two with one
/// gone, four with two. All members that remain sign for the same lost ones; their nodes then go on
/// from the newest round that one of them has. Call everybody before you sign: a member that was
/// declared lost and is not is left behind, and what it alone had is lost.
///
/// With masked rounds also where nobody is lost and yet no outcome of a final round is certified, because
/// too few machines compute the same or can still open the sums: `--give-up` does the round again, once all
/// members have signed. A member that has its outcome signs too, and then all go on from that.
#[derive(Debug, Args)]
pub struct Recover {
    /// Name of a member that is gone for good; may be repeated
    #[arg(long, value_name = "NAME", required_unless_present = "give_up")]
    pub lost: Vec<String>,
    /// Nobody is lost: do this final masked round again, whose outcome no quorum certifies
    #[arg(long, value_name = "ROUND", conflicts_with_all = ["lost", "abandon"])]
    pub give_up: Option<u64>,
    /// Go back on what this node has confirmed: all members whose confirmation it lacks are among the
    /// lost now, and will never come back
    #[arg(long)]
    pub abandon: bool,
    /// Where and how
    #[command(flatten)]
    pub here: Here,
}

/// The institution that says so.
#[derive(Debug, Args)]
pub struct Here {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
