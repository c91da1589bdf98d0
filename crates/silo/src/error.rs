//! Errors: why a silo did not start, why it stopped, why something could not be stored.

use protocol::Hash;

use crate::outcome::FORMAT;

/// Reason for which a silo did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// Outside an actix system.
    #[error("a silo needs a running actix system: call `silo::spawn` inside `silo::block_on`")]
    NoSystem,
    /// The key is not the one that the roster has for this member.
    #[error("the key differs from that of member {0} in the roster: check the identity file")]
    Identity(protocol::MemberIndex),
    /// The strategy and the parameter set disagree on names.
    #[error(
        "strategy {0:?} keeps state per member, but the agreement removes names: \
         set names = \"shown\" in the agreement, or choose another strategy"
    )]
    Names(&'static str),
    /// The agreed model is larger than the agreed limit.
    #[error(
        "a contribution of this model has {size} bytes, the agreement allows {limit}: raise \
         blob-limit in the agreement, or agree on a smaller model"
    )]
    Limit {
        /// Bytes of a contribution.
        size: u64,
        /// The parameter set's `blob_limit`.
        limit: u64,
    },
    /// The initial model is not the agreed one.
    #[error(
        "the federation starts from {agreed}, this silo's model family and seed give {ours}: \
         the task, the model or the version of the program differs from what was agreed"
    )]
    Start {
        /// The parameter set's `start`.
        agreed: Hash,
        /// The hash of the initial state that this silo computed.
        ours: Hash,
    },
    /// The first model has numbers that secure-aggregation rounds do not begin with.
    #[error(
        "the federation cannot begin with secure-aggregation rounds: {0}; a smaller first model can be agreed on"
    )]
    StartTooLarge(String),
    /// Nothing can be added up as agreed: these models with the agreed noise, or statistics of too many numbers.
    #[error(
        "the federation cannot begin with rounds that open sums: {0}; other terms can be agreed on"
    )]
    Sums(String),
    /// The journal cannot be read or begun.
    #[error("the journal cannot be read or begun: {0}")]
    Journal(#[from] StoreError),
    /// A blob that the journal names is missing, and no other member has it.
    #[error(
        "the journal is at round {round}, but its blob {hash} is missing or damaged, and there is no \
         other member to fetch it from: restore the blobs from a backup"
    )]
    Missing {
        /// The round.
        round: u64,
        /// The blob.
        hash: Hash,
    },
    /// A newer version of the program wrote the adopted outcome.
    #[error(
        "the outcome of round {round} has document format {found}, this program reads format \
         {FORMAT}: use the program that wrote it, or a newer one"
    )]
    Newer {
        /// The round.
        round: u64,
        /// Format of the outcome's document.
        found: u32,
    },
    /// The journal and the blobs contradict each other.
    #[error(
        "journal and blobs of round {round} contradict each other ({why}): start once with \
         --journal-lost, which keeps the journal under another name, begins a new one and listens \
         until it is safe to vote again"
    )]
    Damaged {
        /// The round.
        round: u64,
        /// The contradiction.
        why: String,
    },
}

/// Reason for which a silo stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// [`SiloHandle::stop`](crate::SiloHandle::stop).
    #[error("the silo was stopped")]
    Asked,
    /// The agreement has changed, durably: a silo of the next epoch takes its place.
    #[error("the agreement has changed")]
    EpochOver,
    /// [`SiloHandle::kill`](crate::SiloHandle::kill).
    #[error("the silo was killed")]
    Killed,
    /// The journal refused a record. Going on could break a promise made to other members.
    #[error("the silo stopped because its journal cannot be written: {0}")]
    Journal(#[from] StoreError),
    /// The network ended.
    #[error("the silo stopped because its network ended")]
    Network,
    /// A defect of this program.
    #[error("the silo stopped because of a defect: {0}")]
    Defect(String),
}

/// Error of storing or reading something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct StoreError {
    /// The store or the thing.
    pub what: String,
    /// The reason.
    pub why: String,
}
