//! Reasons for which a model cannot be taken out of a node's state.

use std::path::PathBuf;

use learn::export::ExportError;
use protocol::Hash;
use task::data::DataError;

use crate::store::StoreOpenError;

/// Reason for which a model cannot be taken out of a node's state.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No journal.
    #[error(
        "there is no journal in {}: the node of this configuration has not run yet (`rota run`)",
        .0.display()
    )]
    Nothing(PathBuf),
    /// The journal or a note beside it.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// The state of another federation.
    #[error(
        "the state in {} belongs to federation {journal}, and the agreement is that of federation \
         {agreed}: give the node.toml that the node ran with", folder.display()
    )]
    Federation {
        /// The state folder.
        folder: PathBuf,
        /// The federation of the agreement.
        agreed: Hash,
        /// The federation of the journal.
        journal: Hash,
    },
    /// No round adopted.
    #[error(
        "no round has been adopted yet, so there is no model: wait for the first round of the node"
    )]
    NoneYet,
    /// A round that the state does not hold.
    #[error(
        "the state does not hold the models of round {round}; it holds those of {}: a node keeps the \
         last `keep-rounds` rounds of the agreement", held.join(", ")
    )]
    NoRound {
        /// The round.
        round: u64,
        /// The rounds that it holds.
        held: Vec<String>,
    },
    /// A coalition that there is not.
    #[error("there is no coalition {coalition} in round {round}; there are {of}")]
    NoCoalition {
        /// The number asked for, from 1.
        coalition: u32,
        /// The round.
        round: u64,
        /// Number of coalitions.
        of: usize,
    },
    /// A blob that is missing.
    #[error(
        "{} of round {round} is missing or damaged: start the node, which fetches it from the others, or name \
         another round with --round", path.display()
    )]
    Gone {
        /// Its file.
        path: PathBuf,
        /// The round.
        round: u64,
    },
    /// The personal parts of an earlier round.
    #[error(
        "under this strategy a model has personal parts, which never leave the silo, and a node keeps \
         only those of the last round, not of round {round}: leave --round out"
    )]
    Personal {
        /// The round.
        round: u64,
    },
    /// The personal state of a backup is not as it was put back.
    #[error(
        "{}: {why}: put the backup back again (`rota restore`, into another folder), or remove this file and {hash} \
         beside it, so that the silo begins with the agreed personal parts", path.display()
    )]
    PutBack {
        /// The file.
        path: PathBuf,
        /// Name of the file with its hash.
        hash: &'static str,
        /// Fault of the file.
        why: String,
    },
    /// A blob that is something else.
    #[error("the blob {hash} of round {round} cannot be used: {why}")]
    Blob {
        /// The blob.
        hash: Hash,
        /// The round.
        round: u64,
        /// Fault of the blob.
        why: String,
    },
    /// A strategy whose silos predict with several models.
    #[error(
        "under the strategy {0:?} a silo does not predict with one model of the agreed family, so \
         there is none to take out"
    )]
    Several(&'static str),
    /// The served model, or the note about it, is not what the node wrote.
    #[error(
        "the served model cannot be used ({}: {why}): start the node, which chooses it again, or take the model of \
         its coalition in its place with --instead", path.display()
    )]
    Served {
        /// The file.
        path: PathBuf,
        /// Fault.
        why: String,
    },
    /// The federation is done, and no model was chosen.
    #[error(
        "after round {round}, the last one, a node chooses the model that it serves, and {} has no choice: wait \
         until the running node has compared them, or start it again, or take the model of its coalition in its \
         place with --instead", path.display()
    )]
    NotChosen {
        /// The round.
        round: u64,
        /// The state folder.
        path: PathBuf,
    },
    /// A note that is no such.
    #[error("{}: {why}; start the node, which writes it again", path.display())]
    Note {
        /// The file.
        path: PathBuf,
        /// Fault of the file.
        why: String,
    },
    /// The silo's rows, from which fills and scale would follow.
    #[error(
        "how this silo fills in and scales rows is not known: its node has noted nothing about it, and \
         its rows cannot be read: check [data] in its node.toml"
    )]
    Preparation,
    /// The task has no rows.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The agreed model.
    #[error(transparent)]
    Data(#[from] DataError),
}
