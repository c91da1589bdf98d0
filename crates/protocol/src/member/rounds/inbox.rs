//! Contributions and scores that other members sent for a round, kept in case this member leads it.

use std::collections::BTreeSet;

use crate::member::ByMember;
use crate::message::{MemberScores, Message};
use crate::roster::MemberIndex;

/// What other members sent for a round.
#[derive(Default)]
pub(in crate::member) struct Inbox {
    /// The first contribution of each member to this round.
    pub(in crate::member) contributions: ByMember<Message>,
    /// The first contribution of each member to the next round.
    pub(in crate::member) early: ByMember<Message>,
    /// Members that said that they contribute nothing to this round, and to the next.
    pub(in crate::member) nothing: [BTreeSet<MemberIndex>; 2],
    /// Members that sent a contribution to an earlier round.
    pub(in crate::member) stale: BTreeSet<MemberIndex>,
    /// How far the contributions are that this member, as lead, looked at.
    pub(in crate::member) admissions: ByMember<AdmissionState>,
    /// The last scores of each member.
    pub(in crate::member) scores: ByMember<MemberScores>,
}

/// What became of a contribution.
#[derive(Clone, PartialEq)]
pub(in crate::member) enum AdmissionState {
    /// The model is being fetched and checked.
    Pending,
    /// The model could not be fetched; tried again after a heartbeat.
    Retry,
    /// The model is here and has passed the checks.
    Usable,
    /// The contribution is not what the plan asks for, or its model did not pass the checks.
    Refused,
}

impl Inbox {
    /// The inbox of the next round, with what came early.
    pub(in crate::member) fn of_next_round(&mut self) -> Self {
        let [_, nothing] = std::mem::take(&mut self.nothing);
        Self {
            contributions: std::mem::take(&mut self.early),
            nothing: [nothing, BTreeSet::new()],
            ..Self::default()
        }
    }

    /// The newest contribution of a member that is kept.
    pub(in crate::member) fn contribution_of(&self, member: MemberIndex) -> Option<&Message> {
        self.early
            .get(&member)
            .or_else(|| self.contributions.get(&member))
    }

    /// Whether a member said that it contributes nothing to this round.
    pub(in crate::member) fn has_nothing_of(&self, member: MemberIndex) -> bool {
        self.nothing[0].contains(&member)
    }

    /// A heartbeat has passed: models that could not be fetched may be requested again.
    pub(in crate::member) fn retry(&mut self) {
        self.admissions
            .retain(|_, admission| *admission != AdmissionState::Retry);
    }
}
