//! What a member keeps while it leads a view: how far it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{ByMember, Inclusions};
use crate::certificate::Certificate;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::message::{Content, Entry, MaskedSheet, Message, Phase, Sheet};
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::{Case, MaskedList};

/// What a member keeps while it leads a view.
pub(super) struct Lead {
    pub(super) stage: Stage,
    /// The entries of members that got a receipt, by their ids.
    pub(super) receipts: ByMember<Hash>,
    /// How often members were left out in this view.
    pub(super) reissues: usize,
    /// The counter of the next Progress message.
    pub(super) beats: u64,
    /// The phase that was reported last.
    pub(super) reported: Option<Phase>,
    /// How long the slowest answer to the first list of a masked round took.
    pub(super) slowest: Option<Duration>,
    /// The members that were reported to be missing in groups.
    pub(super) missing: Option<Vec<MemberIndex>>,
}

/// How far a lead is.
pub(super) enum Stage {
    /// A notarised block has to become final first.
    Waiting,
    Collecting,
    Scoring {
        entries: Vec<Entry>,
        since: Time,
    },
    Including {
        sheet: Arc<Sheet>,
        root: Hash,
        since: Time,
        signed: ByMember<Signature>,
    },
    Deciding {
        sheet: Arc<Sheet>,
        root: Hash,
        inclusions: Inclusions,
    },
    Settling {
        case: Case,
        id: Hash,
        root: Hash,
        inclusions: Inclusions,
    },
    /// Masked: the list is sent; waiting for vectors.
    Masking(Gathering),
    /// Masked: the sheet is sent; waiting for inclusions.
    Sealing(Sealing),
    Voting {
        message: Message,
        frame: Bytes,
    },
    /// This lead has voted against its own view.
    Over,
}

/// The vectors that are masked for a list.
pub(super) struct Gathering {
    pub(super) list: Arc<MaskedList>,
    pub(super) since: Time,
    /// The signed vector of each author, its root as a sheet of one entry, and when it came.
    pub(super) vectors: ByMember<(Message, Hash, Time)>,
}

/// A sheet of masked vectors, and who has signed for it.
pub(super) struct Sealing {
    pub(super) list: Arc<MaskedList>,
    pub(super) sheet: Arc<MaskedSheet>,
    pub(super) root: Hash,
    pub(super) since: Time,
    pub(super) signed: ByMember<Signature>,
}

impl Lead {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Collecting,
            receipts: BTreeMap::new(),
            reissues: 0,
            beats: 0,
            reported: None,
            slowest: None,
            missing: None,
        }
    }

    /// The phase that this lead is in.
    pub(super) fn phase(&self) -> Phase {
        match self.stage {
            Stage::Waiting => Phase::Waiting,
            Stage::Collecting => Phase::Collecting,
            Stage::Scoring { .. } => Phase::Scoring,
            Stage::Masking(_) => Phase::Masking,
            Stage::Including { .. } | Stage::Sealing(_) => Phase::Including,
            Stage::Deciding { .. } | Stage::Settling { .. } => Phase::Deciding,
            // In `Over` nothing more is sent, so the phase does not matter.
            Stage::Voting { .. } | Stage::Over => Phase::Voting,
        }
    }

    /// Whether this lead has proposed a block.
    pub(super) fn proposed(&self) -> bool {
        matches!(self.stage, Stage::Voting { .. })
    }

    /// The members whose entries these are.
    pub(super) fn authors(&self, entries: &[Entry]) -> Vec<MemberIndex> {
        let listed: BTreeSet<&Hash> = entries.iter().map(|entry| &entry.id).collect();
        self.receipts
            .iter()
            .filter(|(_, id)| listed.contains(id))
            .map(|(&member, _)| member)
            .collect()
    }
}

/// A block that a lead is about to propose.
pub(super) struct BlockDraft {
    pub(super) content: Content,
    pub(super) parent: Hash,
    /// The certificate of the parent.
    pub(super) proof: Option<Certificate>,
}
