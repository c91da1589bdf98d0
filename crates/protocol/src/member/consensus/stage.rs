//! What a member keeps while it leads a view: how far it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::certificate::Certificate;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::{ByMember, Inclusions};
use crate::message::{Content, Entry, MaskedSheet, Message, Phase, Sheet};
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::{Case, MaskedList};

/// What a member keeps while it leads a view.
pub(in crate::member) struct Lead {
    pub(in crate::member) stage: Stage,
    /// The entries of members that got a receipt, by their ids.
    pub(in crate::member) receipts: ByMember<Hash>,
    /// How often members were left out in this view.
    pub(in crate::member) reissues: usize,
    /// The counter of the next Progress message.
    pub(in crate::member) beats: u64,
    /// The phase that was reported last.
    pub(in crate::member) reported: Option<Phase>,
    /// How long the slowest answer to the first list of a masked round took.
    pub(in crate::member) slowest: Option<Duration>,
    /// The members that were reported to be missing in groups.
    pub(in crate::member) missing: Option<Vec<MemberIndex>>,
}

/// How far a lead is.
pub(in crate::member) enum Stage {
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
pub(in crate::member) struct Gathering {
    pub(in crate::member) list: Arc<MaskedList>,
    pub(in crate::member) since: Time,
    /// The signed vector of each author, its root as a sheet of one entry, and when it came.
    pub(in crate::member) vectors: ByMember<(Message, Hash, Time)>,
}

/// A sheet of masked vectors, and who has signed for it.
pub(in crate::member) struct Sealing {
    pub(in crate::member) list: Arc<MaskedList>,
    pub(in crate::member) sheet: Arc<MaskedSheet>,
    pub(in crate::member) root: Hash,
    pub(in crate::member) since: Time,
    pub(in crate::member) signed: ByMember<Signature>,
}

impl Lead {
    pub(in crate::member) fn new() -> Self {
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
    pub(in crate::member) fn phase(&self) -> Phase {
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
    pub(in crate::member) fn proposed(&self) -> bool {
        matches!(self.stage, Stage::Voting { .. })
    }

    /// The members whose entries these are.
    pub(in crate::member) fn authors(&self, entries: &[Entry]) -> Vec<MemberIndex> {
        let listed: BTreeSet<&Hash> = entries.iter().map(|entry| &entry.id).collect();
        self.receipts
            .iter()
            .filter(|(_, id)| listed.contains(id))
            .map(|(&member, _)| member)
            .collect()
    }
}

/// A block that a lead is about to propose.
pub(in crate::member) struct BlockDraft {
    pub(in crate::member) content: Content,
    pub(in crate::member) parent: Hash,
    /// The certificate of the parent.
    pub(in crate::member) proof: Option<Certificate>,
}
