//! Completion: the last round is adopted, here and at other members.

use std::collections::BTreeSet;

use super::Member;
use super::adoption::Adopting;
use crate::effects::{Effect, Report};
use crate::message::Body;
use crate::roster::MemberIndex;

/// Which members have adopted the last round.
#[derive(Default)]
pub(super) struct Completion {
    /// This member has.
    pub(super) reached: bool,
    /// Complete has not been sent to the others yet.
    pub(super) unsent: bool,
    /// Others that have.
    others: BTreeSet<MemberIndex>,
}

impl Member {
    /// Whether nothing is left to agree on: the last round is adopted, and no approved change waits.
    pub(super) fn at_rest(&self) -> bool {
        self.completion.reached && !self.amendments.pending()
    }

    /// Whether the last round is adopted, no block of the chain is missing, and no approved change
    /// waits to be proposed.
    pub(super) fn finished(&self) -> bool {
        self.at_rest() && self.chain.unresolved.is_none()
    }

    /// Whether no timer runs: everything is finished, and Complete was sent to all others.
    pub(super) fn timers_off(&self) -> bool {
        let rests = self.finished() && !self.completion.unsent;
        self.over || rests && !self.amendments.repeats(self.config.me) && !self.recoveries.runs()
    }
}

impl Adopting<'_> {
    /// The last round is final and adopted here.
    pub(super) fn all_rounds_applied(&mut self) {
        self.completion.reached = true;
        *self.lead = None;
        self.completion.unsent = true;
        let last = self.config.last_round();
        self.out.push(Effect::Report(Report::Complete { last }));
    }

    /// Tells the others that the last round is adopted here, with the first beat after it. Not at
    /// once, because all members are busy with that round then.
    pub(super) fn send_complete_to_all(&mut self) {
        if std::mem::take(&mut self.completion.unsent) {
            // To each directly: messages of this kind are not passed on by gossip.
            self.send_complete(self.config.others());
        }
    }

    /// A member can be reached: Complete is sent to it too, if the last round is adopted here.
    pub(super) fn send_complete_to(&mut self, peer: MemberIndex) {
        if self.completion.reached && peer != self.config.me {
            self.send_complete(vec![peer]);
        }
    }

    fn send_complete(&mut self, members: Vec<MemberIndex>) {
        let (_, frame) = self
            .config
            .seal(self.config.last_round(), 0, Body::Complete);
        let send = |to| Effect::Send {
            to,
            frame: frame.clone(),
        };
        self.out.extend(members.into_iter().map(send));
    }

    /// Another member has adopted `round` as the last one, so it has everything that is missing here.
    /// Where the strategy ends the federation, this member knows which round that is once it has
    /// adopted it too. Gives whether something is missing here.
    pub(super) fn receive_complete(&mut self, member: MemberIndex, round: u64) -> bool {
        let possible = 1..=self.config.epoch.charter.rounds;
        if !possible.contains(&round)
            || member == self.config.me
            || !self.completion.others.insert(member)
        {
            return false;
        }
        self.out
            .push(Effect::Report(Report::MemberComplete { member }));
        self.chain.learned.round < round
    }
}
