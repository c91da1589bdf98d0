//! This member's own votes and proposals, and the votes that it collects (R1–R3, R5).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::envelope;
use crate::member::ByMember;
use crate::message::{Body, Message};
use crate::parameters::Epoch;
use crate::roster::MemberIndex;

/// Votes and proposals of views after the last final block.
#[derive(Default)]
pub(in crate::member) struct Ballots {
    pub(in crate::member) own: BTreeMap<u64, OwnBallots>,
    pub(in crate::member) tallies: BTreeMap<u64, Tally>,
}

/// What this member signed in a view. Everything here is durable before it is sent.
#[derive(Default)]
pub(in crate::member) struct OwnBallots {
    pub(in crate::member) notarize: Option<(Message, Bytes)>,
    pub(in crate::member) finalize: Option<(Message, Bytes)>,
    pub(in crate::member) nullify: Option<(Message, Bytes)>,
    pub(in crate::member) proposal: Option<(Message, Bytes)>,
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
pub(in crate::member) struct Tally {
    pub(in crate::member) notarize: ByMember<Message>,
    pub(in crate::member) finalize: ByMember<Message>,
    pub(in crate::member) nullify: ByMember<Message>,
}

impl Ballots {
    /// Takes back an own vote or proposal after a restart.
    pub(in crate::member) fn restore(&mut self, epoch: &Epoch, message: Message) {
        let frame = envelope::reseal(epoch, &message);
        self.remember(message, frame);
    }

    /// Keeps an own vote or proposal, with its bytes for the wire.
    pub(in crate::member) fn remember(&mut self, message: Message, frame: Bytes) {
        let own = self.own.entry(message.view).or_default();
        if let Some(slot) = own.slot(&message.body) {
            *slot = Some((message, frame));
        }
    }

    /// Whether this vote or proposal of this view is among this member's own.
    pub(in crate::member) fn remembers(&mut self, view: u64, body: &Body) -> bool {
        let own = self.own.get_mut(&view);
        let signed = own.and_then(|own| own.slot(body)?.as_ref());
        signed.is_some_and(|(signed, _)| signed.body == *body)
    }

    /// The vote of a member in the highest view.
    pub(in crate::member) fn last_of(&self, member: MemberIndex) -> Option<&Message> {
        self.tallies.values().rev().find_map(|tally| {
            let kinds = [&tally.finalize, &tally.nullify, &tally.notarize];
            kinds.into_iter().find_map(|votes| votes.get(&member))
        })
    }

    /// The highest view in which this member voted or proposed.
    pub(in crate::member) fn highest(&self) -> u64 {
        self.own.keys().next_back().copied().unwrap_or(0)
    }

    /// This member's own proposal in a view.
    pub(in crate::member) fn proposal(&self, view: u64) -> Option<&(Message, Bytes)> {
        self.own.get(&view)?.proposal.as_ref()
    }

    pub(in crate::member) fn has_notarized(&self, view: u64) -> bool {
        self.own
            .get(&view)
            .is_some_and(|own| own.notarize.is_some())
    }

    pub(in crate::member) fn has_nullified(&self, view: u64) -> bool {
        self.own.get(&view).is_some_and(|own| own.nullify.is_some())
    }

    /// The members that are known to have voted Notarize or Nullify in a view.
    pub(in crate::member) fn voters(&self, view: u64) -> BTreeSet<MemberIndex> {
        let votes = self.tallies.get(&view).into_iter();
        let votes = votes.flat_map(|tally| tally.notarize.keys().chain(tally.nullify.keys()));
        votes.copied().collect()
    }

    /// Drops everything of views up to the tip.
    pub(in crate::member) fn forget(&mut self, tip: u64) {
        self.own.retain(|view, _| *view > tip);
        self.tallies.retain(|view, _| *view > tip);
    }
}
