//! What a lead has gathered for the block of a round, and in which stage it is with that.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::{ByMember, Inclusions};
use crate::message::{Entry, MaskedSheet, Message, Phase, Sheet};
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::{Case, MaskedList};

/// What a lead has gathered for a block in a view.
#[derive(Default)]
pub(in crate::member) struct Gathered {
    pub(in crate::member) stage: RoundStage,
    /// The entries of members that got a receipt, by their ids.
    pub(in crate::member) receipts: ByMember<Hash>,
    /// How often members were left out in this view.
    pub(in crate::member) reissues: usize,
    /// How long the slowest answer to the first list of a masked round took.
    pub(in crate::member) slowest: Option<Duration>,
    /// The members that were reported to be missing in groups.
    pub(in crate::member) missing: Option<Vec<MemberIndex>>,
}

/// How far a lead is with the block of a round.
#[derive(Default)]
pub(in crate::member) enum RoundStage {
    #[default]
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

impl Gathered {
    /// Gathers anew, in the same view.
    pub(in crate::member) fn begin(&mut self) {
        self.stage = RoundStage::Collecting;
        self.receipts.clear();
    }

    /// Nothing more is gathered in this view.
    pub(in crate::member) fn end(&mut self) {
        self.stage = RoundStage::Collecting;
    }

    /// The phase that this stage is.
    pub(in crate::member) fn phase(&self) -> Phase {
        match self.stage {
            RoundStage::Collecting => Phase::Collecting,
            RoundStage::Scoring { .. } => Phase::Scoring,
            RoundStage::Masking(_) => Phase::Masking,
            RoundStage::Including { .. } | RoundStage::Sealing(_) => Phase::Including,
            RoundStage::Deciding { .. } | RoundStage::Settling { .. } => Phase::Deciding,
        }
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
