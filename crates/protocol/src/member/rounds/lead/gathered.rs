//! What a lead has gathered for the block of a round, and in which stage it is with that.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::hash::Hash;
use crate::member::ByMember;
use crate::member::rounds::clear::lead::stage::ClearStage;
use crate::member::rounds::masked::stage::MaskedStage;
use crate::message::{Entry, Phase};
use crate::roster::MemberIndex;

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
    /// What follows of a round in clear.
    Clear(ClearStage),
    /// What follows of a masked round.
    Masked(MaskedStage),
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
        match &self.stage {
            RoundStage::Collecting => Phase::Collecting,
            RoundStage::Clear(stage) => stage.phase(),
            RoundStage::Masked(stage) => stage.phase(),
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
