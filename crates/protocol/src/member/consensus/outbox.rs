//! Messages, records and reports of a member in a step, and its messages to itself.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::effects::{Effect, Report};
use crate::member::ByMember;
use crate::message::Message;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;

/// Most refusals of one member that are reported in a view.
const REFUSALS: usize = 8;

/// The effects of the present step, and what this member sent to itself.
pub(in crate::member) struct Outbox {
    me: MemberIndex,
    effects: Vec<Effect>,
    /// Messages to this member itself: a lead contributes to itself and votes like any other.
    own: VecDeque<Message>,
    /// Number of refused messages of each member in the current view.
    refused: ByMember<usize>,
}

impl Outbox {
    /// The empty outbox of a member.
    pub(in crate::member) fn new(me: MemberIndex) -> Self {
        Self {
            me,
            effects: Vec::new(),
            own: VecDeque::new(),
            refused: ByMember::new(),
        }
    }

    /// Adds an effect.
    pub(in crate::member) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Adds effects.
    pub(in crate::member) fn extend(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.effects.extend(effects);
    }

    /// Sends a message to a member; this one takes its own when the step ends.
    pub(in crate::member) fn send(&mut self, to: MemberIndex, message: &Message, frame: &Bytes) {
        if to == self.me {
            self.own.push_back(message.clone());
        } else {
            self.effects.push(Effect::Send {
                to,
                frame: frame.clone(),
            });
        }
    }

    /// Sends a message to all members, this one included.
    pub(in crate::member) fn publish(&mut self, message: Message, frame: Bytes) {
        self.effects.push(Effect::Publish { frame });
        self.own.push_back(message);
    }

    /// Reports that a message is not accepted: at most [`REFUSALS`] of one member in a view, so that
    /// it cannot fill logs.
    pub(in crate::member) fn refuse(&mut self, member: MemberIndex, round: u64, reason: Refusal) {
        let count = self.refused.entry(member).or_default();
        *count += 1;
        if *count > REFUSALS {
            return;
        }
        self.effects.push(Effect::Report(Report::Refused {
            member,
            round,
            reason,
        }));
    }

    /// Another view begins: refusals are counted anew.
    pub(in crate::member) fn view_begins(&mut self) {
        self.refused.clear();
    }

    /// Takes a message again when the step ends.
    pub(in crate::member) fn deliver_to_self(&mut self, message: Message) {
        self.own.push_back(message);
    }

    /// The next message to this member itself.
    pub(in crate::member) fn next_own(&mut self) -> Option<Message> {
        self.own.pop_front()
    }

    /// Drops the messages to this member itself.
    pub(in crate::member) fn drop_own(&mut self) {
        self.own.clear();
    }

    /// Moves the effects out.
    pub(in crate::member) fn move_to(&mut self, effects: &mut Vec<Effect>) {
        effects.append(&mut self.effects);
    }

    /// For tests: whether there are no effects.
    #[cfg(test)]
    pub(in crate::member) fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }
}
