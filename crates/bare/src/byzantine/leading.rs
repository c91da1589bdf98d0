//! Leads that are silent, stall, contradict themselves, or decide wrongly.

use std::collections::BTreeSet;

use bytes::Bytes;
use protocol::Hash;
use protocol::envelope::Opened;
use protocol::message::{Body, Content, Kind, Proposal};

use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// Sends nothing while it leads.
pub(super) struct SilentLead {
    /// True if the lead still sends Progress messages.
    pub(super) stalling: bool,
}

impl Deviation for SilentLead {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let kind = outgoing.message.map(|message| message.body.kind());
        let passes = self.stalling && kind == Some(Kind::Progress);
        let silent = kind.is_some() && attacker.leads() && !passes;
        actions.misdeeds += u64::from(silent);
        silent
    }
}

/// As a lead, sends its messages to some members only, drawn for every view.
pub(super) struct PartialLead {
    view: u64,
    some: Vec<bool>,
}

impl PartialLead {
    pub(super) fn new(attacker: &mut Attacker) -> Self {
        Self {
            view: 0,
            some: attacker.random_members(),
        }
    }
}

impl Deviation for PartialLead {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        if outgoing.message.is_none() || !attacker.leads() {
            return false;
        }
        if self.view != attacker.view {
            self.view = attacker.view;
            self.some = attacker.random_members();
        }
        let readers = attacker.others().filter(|member| self.some[member.at()]);
        for to in readers.filter(|&member| outgoing.to.is_none_or(|to| to == member)) {
            actions.send(Some(to), outgoing.frame.clone());
        }
        actions.misdeeds += 1;
        true
    }
}

/// The view and a copy of a lead's own proposal of a learning block, if `outgoing` is one.
fn learning(outgoing: &OutgoingFrame<'_>) -> Option<(u64, Proposal)> {
    let message = outgoing.message?;
    let Body::Proposal(proposal) = &message.body else {
        return None;
    };
    proposal.block.learning()?;
    Some((message.view, (**proposal).clone()))
}

/// Sends a changed proposal instead of a lead's own proposal of a learning block. False, so that
/// the own one is sent, if `outgoing` is none or `change` refuses by `None`.
pub(super) fn replace_proposal(
    attacker: &mut Attacker,
    outgoing: &OutgoingFrame<'_>,
    actions: &mut Actions,
    change: impl FnOnce(&mut Attacker, &mut Proposal) -> Option<()>,
) -> bool {
    let Some((view, mut other)) = learning(outgoing) else {
        return false;
    };
    if change(attacker, &mut other).is_none() {
        return false;
    }
    let body = Body::Proposal(Box::new(other));
    actions.send(outgoing.to, attacker.sign(0, view, body));
    actions.misdeeds += 1;
    true
}

/// Sends two valid proposals: each to half of the members, or the second to members that voted for the
/// first.
pub(super) struct DoubleProposal {
    /// True if the second is sent to those who voted for the first.
    late: bool,
    second: Option<(u64, Bytes)>,
}

impl DoubleProposal {
    pub(super) fn new(attacker: &mut Attacker) -> Self {
        Self {
            late: attacker.random.chance(0.5),
            second: None,
        }
    }
}

impl Deviation for DoubleProposal {
    fn receive(&mut self, _: &mut Attacker, opened: &Opened, actions: &mut Actions) -> bool {
        if let (Opened::Message(message), Some((view, second))) = (opened, &self.second)
            && message.body.kind() == Kind::Notarize
            && message.view == *view
            && self.late
        {
            actions.send(Some(message.sender), second.clone());
            actions.misdeeds += 1;
        }
        false
    }

    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some((view, mut other)) = learning(outgoing) else {
            return false;
        };
        if let Content::Learning(learning) = &mut other.block.content {
            learning.decision.push(1);
        }
        let other = attacker.sign(0, view, Body::Proposal(Box::new(other)));
        self.second = Some((view, other.clone()));
        if self.late {
            return false;
        }
        let to = outgoing.to;
        for member in attacker
            .others()
            .filter(|&member| to.is_none_or(|to| to == member))
        {
            let half = if member.0 % 2 == 0 {
                outgoing.frame
            } else {
                &other
            };
            actions.send(Some(member), half.clone());
        }
        actions.misdeeds += 1;
        true
    }
}

/// Claims an outcome that does not follow from the manifest, and has its blobs.
#[derive(Default)]
pub(super) struct BadOutcome {
    claimed: BTreeSet<Hash>,
}

impl Deviation for BadOutcome {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        replace_proposal(attacker, outgoing, actions, |attacker, other| {
            if let Content::Learning(learning) = &mut other.block.content {
                learning.outcome = attacker.random_hash();
                self.claimed.insert(learning.outcome);
            }
            Some(())
        })
    }

    fn claims_blob(&self, blob: &Hash) -> bool {
        self.claimed.contains(blob)
    }
}

/// Makes a decision that no check accepts. A whole silo decides by its strategy; there the decision is
/// replaced in what it proposes.
pub(super) struct BadDecision;

impl Deviation for BadDecision {
    fn decide(&mut self, attacker: &mut Attacker, _: Vec<u8>) -> Vec<u8> {
        attacker.random.bytes().to_vec()
    }

    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        attacker.blobs.is_some()
            && replace_proposal(attacker, outgoing, actions, |attacker, other| {
                if let Content::Learning(learning) = &mut other.block.content {
                    learning.decision = attacker.random.bytes().to_vec();
                }
                Some(())
            })
    }
}
