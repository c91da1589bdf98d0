//! Contributions and scores that other members sent for a round, kept in case this member leads it.

use std::collections::BTreeSet;

use super::ByMember;
use super::own::Contributing;
use crate::effects::{Effect, Report};
use crate::evidence::Evidence;
use crate::message::{Body, Message, Scores};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;

/// What other members sent for a round.
#[derive(Default)]
pub(super) struct Inbox {
    /// The first contribution of each member to this round.
    pub(super) contributions: ByMember<Message>,
    /// The same to the next round.
    early: ByMember<Message>,
    /// Members that said that they contribute nothing to this round, and to the next.
    nothing: [BTreeSet<MemberIndex>; 2],
    /// Members that sent a contribution to an earlier round.
    stale: BTreeSet<MemberIndex>,
    /// How far the contributions are that this member, as lead, looked at.
    pub(super) admissions: ByMember<Admission>,
    /// The last scores of each member.
    pub(super) scores: ByMember<Scores>,
}

/// What became of a contribution.
#[derive(Clone, PartialEq)]
pub(super) enum Admission {
    /// The model is being fetched and checked.
    Pending,
    /// The model could not be fetched; tried again after a beat.
    Retry,
    /// The model is here and has passed the checks.
    Usable,
    /// The contribution is not what the plan asks for, or its model did not pass the checks.
    Refused,
}

impl Inbox {
    /// The inbox of the next round, with what came early.
    pub(super) fn of_next_round(&mut self) -> Self {
        let [_, nothing] = std::mem::take(&mut self.nothing);
        Self {
            contributions: std::mem::take(&mut self.early),
            nothing: [nothing, BTreeSet::new()],
            ..Self::default()
        }
    }

    /// The newest contribution of a member that is kept.
    pub(super) fn contribution_of(&self, member: MemberIndex) -> Option<&Message> {
        self.early
            .get(&member)
            .or_else(|| self.contributions.get(&member))
    }

    /// Whether a member said that it contributes nothing to this round.
    pub(super) fn has_nothing_of(&self, member: MemberIndex) -> bool {
        self.nothing[0].contains(&member)
    }

    /// A beat has passed: models that could not be fetched may be requested again.
    pub(super) fn retry(&mut self) {
        self.admissions
            .retain(|_, admission| *admission != Admission::Retry);
    }
}

/// What follows from a contribution that came again.
pub(super) enum Again {
    /// Its sender signed two different ones for a round.
    Contradiction(Box<Evidence>),
    /// Its sender seems to lack the receipt.
    WithoutReceipt(MemberIndex),
}

impl Contributing<'_> {
    /// A member contributes nothing to this round or the next: nobody waits for it.
    pub(super) fn has_nothing(&mut self, member: MemberIndex, round: u64) {
        let ahead = round.checked_sub(self.round.number);
        let of_round = ahead.and_then(|ahead| self.round.inbox.nothing.get_mut(ahead as usize));
        let new = of_round.is_some_and(|members| members.insert(member));
        if new && member != self.config.me {
            let report = Report::Nothing { member, round };
            self.out.push(Effect::Report(report));
        }
    }

    /// Keeps a contribution to this round or the next.
    pub(super) fn take(&mut self, message: Message) -> Option<Again> {
        let sender = message.sender;
        if matches!(&message.body, Body::Contribution(own) if !own.has_sane_metrics()) {
            self.out.refuse(sender, message.round, Refusal::Metrics);
            return None;
        }
        let inbox = &mut self.round.inbox;
        let (kept, current) = match message.round.checked_sub(self.round.number) {
            Some(0) => (&mut inbox.contributions, true),
            Some(1) => (&mut inbox.early, false),
            _ => {
                let (round, now) = (message.round, self.round.number);
                if round < now && inbox.stale.insert(sender) {
                    let reason = Refusal::StaleContribution { got: round, now };
                    self.out.refuse(sender, now, reason);
                }
                return None;
            }
        };
        match kept.get(&sender) {
            None => {
                kept.insert(sender, message);
                None
            }
            // Equal content has an equal signature.
            Some(earlier) if earlier.signature != message.signature => {
                let evidence = Evidence::of(earlier, &message)?;
                let reason = Refusal::Contradiction(evidence.charge());
                self.out.refuse(sender, message.round, reason);
                Some(Again::Contradiction(Box::new(evidence)))
            }
            Some(_) => current.then_some(Again::WithoutReceipt(sender)),
        }
    }
}
