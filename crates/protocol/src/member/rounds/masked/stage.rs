//! How far a lead is with a masked round, once the set is closed.

use std::sync::Arc;

use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::ByMember;
use crate::message::{MaskedManifest, Message, Phase};
use crate::time::Time;
use crate::work::MaskedList;

/// How far a lead is with a masked round, once the set is closed.
pub(in crate::member) enum MaskedStage {
    /// The list is sent; waiting for vectors.
    Masking(Gathering),
    /// The manifest is sent; waiting for inclusions.
    SigningSum(SigningSum),
}

/// The vectors that are masked for a list.
pub(in crate::member) struct Gathering {
    pub(in crate::member) list: Arc<MaskedList>,
    pub(in crate::member) since: Time,
    /// The signed vector of each author, its root as a manifest of one entry, and when it came.
    pub(in crate::member) vectors: ByMember<(Message, Hash, Time)>,
}

/// A manifest of masked vectors, and who has signed for it.
pub(in crate::member) struct SigningSum {
    pub(in crate::member) list: Arc<MaskedList>,
    pub(in crate::member) manifest: Arc<MaskedManifest>,
    pub(in crate::member) root: Hash,
    pub(in crate::member) since: Time,
    pub(in crate::member) signed: ByMember<Signature>,
}

impl MaskedStage {
    /// The phase that this stage is.
    pub(in crate::member) fn phase(&self) -> Phase {
        match self {
            Self::Masking(_) => Phase::Masking,
            Self::SigningSum(_) => Phase::Including,
        }
    }
}
