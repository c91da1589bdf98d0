//! Reasons for which a node did not start, or stopped.

use std::io;
use std::path::PathBuf;

use mesh::MeshError;
use silo::{SpawnError, Stopped, StoreError};
use task::data::DataError;

use super::config::SetupError;
use super::config::consent::Unsigned;
use crate::audit::LogError;
use crate::identity::IdentityError;
use crate::model::ModelError;
use crate::status::http::HttpError;
use crate::store::StoreOpenError;

/// Reason for which a node did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node's configuration cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The silo's data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The node's journal or blobs cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// Models in the state folder.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The log of what it sends.
    #[error(transparent)]
    Audit(#[from] LogError),
    /// The node's key cannot be read.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The institution has not signed the agreement.
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    /// The changes of the agreement in its journal.
    #[error("the journal holds a change of the agreement that breaks a rule: {0}")]
    Change(#[from] protocol::change::ChangeError),
    /// The agreement in force has a message format that this program does not speak.
    #[error(
        "since change {change} of the agreement the federation uses message format {needed}; this \
         program, Rota {version}, speaks {spoken}: install a version that speaks format {needed} and \
         start it again with the same state folder; nothing is lost",
        version = env!("CARGO_PKG_VERSION"),
        spoken = protocol::Formats::SPOKEN
    )]
    Format {
        /// The format.
        needed: u8,
        /// Number of the epoch.
        change: u64,
    },
    /// The node's journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] StoreError),
    /// The node's key is in no agreement.
    #[error(
        "the key {key} in {} is not in the roster of {federation}: use the key file of a member, or ask \
         the members to admit it with `rota federation admit NAME {key} ADDRESS`, and start with \
         --wait-for-admission", identity.display()
    )]
    Outside {
        /// The public key.
        key: protocol::PublicKey,
        /// The key file.
        identity: PathBuf,
        /// Name of the federation.
        federation: String,
    },
    /// The node's network does not work.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The page and the metrics.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The silo itself.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The silo stopped by itself.
    #[error(transparent)]
    Stopped(Stopped),
    /// The operating system refused threads or signals.
    #[error("the node cannot start: {0}")]
    System(#[from] io::Error),
}

impl NodeError {
    /// Returns whether the files or the command line have to be changed.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Data(error) => {
                matches!(
                    error,
                    DataError::Config(_)
                        | DataError::Unanswered(_)
                        | DataError::TooManySilos { .. }
                )
            }
            Self::Store(error) => matches!(
                error,
                StoreOpenError::Federation { .. }
                    | StoreOpenError::Member { .. }
                    | StoreOpenError::Key { .. }
            ),
            Self::Mesh(error) => !matches!(error, MeshError::Listen { .. } | MeshError::Start(_)),
            Self::Spawn(error) => matches!(
                error,
                SpawnError::Identity(_)
                    | SpawnError::Names(_)
                    | SpawnError::Limit { .. }
                    | SpawnError::Start { .. }
                    | SpawnError::StartTooLarge(_)
                    | SpawnError::Sums(_)
            ),
            Self::Setup(_) | Self::Unsigned(_) | Self::Outside { .. } | Self::Format { .. } => true,
            Self::Http(error) => !matches!(error, HttpError::Listen { .. }),
            Self::Model(_)
            | Self::Audit(_)
            | Self::Identity(_)
            | Self::Stopped(_)
            | Self::Change(_)
            | Self::Journal(_)
            | Self::System(_) => false,
        }
    }
}
