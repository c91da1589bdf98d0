//! This member's own votes and proposals, and the votes that it collects (R1–R3, R5).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::ByMember;
use crate::charter::Epoch;
use crate::envelope;
use crate::hash::Hash;
use crate::message::{Body, Message};
use crate::roster::MemberIndex;

/// Votes and proposals of views after the last final block.
#[derive(Default)]
pub(super) struct Ballots {
    pub(super) own: BTreeMap<u64, OwnBallots>,
    pub(super) tallies: BTreeMap<u64, Tally>,
    pub(super) outcomes: Outcomes,
}

/// Votes for the outcome of one masked round: the last one that is final here, or that this member voted
/// for before a restart.
#[derive(Default)]
pub(super) struct Outcomes {
    /// This member's own vote.
    pub(super) own: Option<(Message, Bytes)>,
    /// The first vote of every member.
    pub(super) votes: ByMember<Message>,
}

impl Outcomes {
    /// Drops the votes for outcomes of other blocks.
    pub(super) fn of_block(&mut self, of: Hash) {
        let other =
            |message: &Message| !matches!(message.body, Body::Outcome { block, .. } if block == of);
        self.own.take_if(|(message, _)| other(message));
        self.votes.retain(|_, message| !other(message));
    }
}

/// What this member signed in a view. Everything here is durable before it is sent.
#[derive(Default)]
pub(super) struct OwnBallots {
    pub(super) notarize: Option<(Message, Bytes)>,
    pub(super) finalize: Option<(Message, Bytes)>,
    pub(super) nullify: Option<(Message, Bytes)>,
    pub(super) proposal: Option<(Message, Bytes)>,
}

impl OwnBallots {
    /// The field in which a vote or a proposal is kept.
    fn slot(&mut self, body: &Body) -> Option<&mut Option<(Message, Bytes)>> {
        match body {
            Body::Notarize { .. } => Some(&mut self.notarize),
            Body::Finalize { .. } => Some(&mut self.finalize),
            Body::Nullify => Some(&mut self.nullify),
            Body::Proposal(_) => Some(&mut self.proposal),
            _ => None,
        }
    }
}

/// The first vote of each kind that every member cast in a view.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) notarize: ByMember<Message>,
    pub(super) finalize: ByMember<Message>,
    pub(super) nullify: ByMember<Message>,
}

impl Ballots {
    /// Takes back an own vote or proposal after a restart.
    pub(super) fn restore(&mut self, epoch: &Epoch, message: Message) {
        let frame = envelope::reseal(epoch, &message);
        self.remember(message, frame);
    }

    /// Keeps an own vote or proposal, with its bytes for the wire.
    pub(super) fn remember(&mut self, message: Message, frame: Bytes) {
        if let Body::Outcome { .. } = message.body {
            self.outcomes.votes.insert(message.sender, message.clone());
            self.outcomes.own = Some((message, frame));
            return;
        }
        let own = self.own.entry(message.view).or_default();
        if let Some(slot) = own.slot(&message.body) {
            *slot = Some((message, frame));
        }
    }

    /// Whether this vote or proposal of this view is among this member's own.
    pub(super) fn remembers(&mut self, view: u64, body: &Body) -> bool {
        if let Body::Outcome { .. } = body {
            let own = self.outcomes.own.as_ref();
            return own.is_some_and(|(signed, _)| signed.body == *body);
        }
        let own = self.own.get_mut(&view);
        let signed = own.and_then(|own| own.slot(body)?.as_ref());
        signed.is_some_and(|(signed, _)| signed.body == *body)
    }

    /// The vote of a member in the highest view.
    pub(super) fn last_of(&self, member: MemberIndex) -> Option<&Message> {
        self.tallies.values().rev().find_map(|tally| {
            let kinds = [&tally.finalize, &tally.nullify, &tally.notarize];
            kinds.into_iter().find_map(|votes| votes.get(&member))
        })
    }

    /// The highest view in which this member voted or proposed.
    pub(super) fn highest(&self) -> u64 {
        self.own.keys().next_back().copied().unwrap_or(0)
    }

    /// This member's own proposal in a view.
    pub(super) fn proposal(&self, view: u64) -> Option<&(Message, Bytes)> {
        self.own.get(&view)?.proposal.as_ref()
    }

    pub(super) fn has_notarized(&self, view: u64) -> bool {
        self.own
            .get(&view)
            .is_some_and(|own| own.notarize.is_some())
    }

    pub(super) fn has_nullified(&self, view: u64) -> bool {
        self.own.get(&view).is_some_and(|own| own.nullify.is_some())
    }

    /// The members that are known to have voted Notarize or Nullify in a view.
    pub(super) fn voters(&self, view: u64) -> BTreeSet<MemberIndex> {
        let votes = self.tallies.get(&view).into_iter();
        let votes = votes.flat_map(|tally| tally.notarize.keys().chain(tally.nullify.keys()));
        votes.copied().collect()
    }

    /// Drops everything of views up to the tip.
    pub(super) fn forget(&mut self, tip: u64) {
        self.own.retain(|view, _| *view > tip);
        self.tallies.retain(|view, _| *view > tip);
    }
}
