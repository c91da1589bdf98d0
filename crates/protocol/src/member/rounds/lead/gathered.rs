//! Content that a lead has gathered for the block of a round, and its stage.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::hash::Hash;
use crate::member::ByMember;
use crate::member::rounds::clear::lead::stage::ClearStage;
use crate::member::rounds::masked::stage::MaskedStage;
use crate::message::{Entry, Phase};
use crate::roster::MemberIndex;

/// Content that a lead has gathered for a block in a view.
#[derive(Default)]
pub(in crate::member) struct Gathered {
    pub(in crate::member) stage: RoundStage,
    /// The entries of members that got a receipt, by their ids.
    pub(in crate::member) receipts: ByMember<Hash>,
    /// Number of times that members were left out in this view.
    pub(in crate::member) reissues: usize,
    /// Time of the slowest answer to the first list of a secure-aggregation round.
    pub(in crate::member) slowest: Option<Duration>,
    /// The members that were reported to be missing in groups.
    pub(in crate::member) missing: Option<Vec<MemberIndex>>,
}

/// Stage of a lead with the block of a round.
#[derive(Default)]
pub(in crate::member) enum RoundStage {
    #[default]
    Collecting,
    /// Later stages of a round in clear.
    Clear(ClearStage),
    /// Later stages of a secure-aggregation round.
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
