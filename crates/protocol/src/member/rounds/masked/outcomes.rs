//! The votes of members for the outcome of a final masked round (M6).

use bytes::Bytes;

use crate::envelope;
use crate::hash::Hash;
use crate::member::ByMember;
use crate::message::{Body, Message};
use crate::parameters::Epoch;

/// Votes for the outcome of one masked round: the last one that is final here, or that this member voted
/// for before a restart.
#[derive(Default)]
pub(in crate::member) struct Outcomes {
    /// This member's own vote.
    pub(in crate::member) own: Option<(Message, Bytes)>,
    /// The first vote of every member.
    pub(in crate::member) votes: ByMember<Message>,
}

impl Outcomes {
    /// Takes back this member's own vote after a restart.
    pub(in crate::member) fn restore(&mut self, epoch: &Epoch, message: Message) {
        let frame = envelope::reseal(epoch, &message);
        self.remember(message, frame);
    }

    /// Keeps this member's own vote, with its bytes for the wire.
    pub(in crate::member) fn remember(&mut self, message: Message, frame: Bytes) {
        self.votes.insert(message.sender, message.clone());
        self.own = Some((message, frame));
    }

    /// Whether this member is known to have voted so.
    pub(in crate::member) fn remembers(&self, body: &Body) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|(signed, _)| signed.body == *body)
    }

    /// Drops the votes for outcomes of other blocks.
    pub(in crate::member) fn of_block(&mut self, of: Hash) {
        let other =
            |message: &Message| !matches!(message.body, Body::Outcome { block, .. } if block == of);
        self.own.take_if(|(message, _)| other(message));
        self.votes.retain(|_, message| !other(message));
    }
}
