//! How far a lead is with a round in clear, once the set is closed.

use std::sync::Arc;

use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::{ByMember, Inclusions};
use crate::message::{Entry, Phase, RoundManifest};
use crate::time::Time;
use crate::work::Case;

/// How far a lead is with a round in clear, once the set is closed.
pub(in crate::member) enum ClearStage {
    Scoring {
        entries: Vec<Entry>,
        since: Time,
    },
    Including {
        manifest: Arc<RoundManifest>,
        root: Hash,
        since: Time,
        signed: ByMember<Signature>,
    },
    Deciding {
        manifest: Arc<RoundManifest>,
        root: Hash,
        inclusions: Inclusions,
    },
    Settling {
        case: Case,
        id: Hash,
        root: Hash,
        inclusions: Inclusions,
    },
}

impl ClearStage {
    /// The phase that this stage is.
    pub(in crate::member) fn phase(&self) -> Phase {
        match self {
            Self::Scoring { .. } => Phase::Scoring,
            Self::Including { .. } => Phase::Including,
            Self::Deciding { .. } | Self::Settling { .. } => Phase::Deciding,
        }
    }
}
