//! Proposals with a wrong parent or view, and members that act as leads in views of others.

use bytes::Bytes;
use protocol::Hash;
use protocol::certificate::{Certificate, Verdict};
use protocol::envelope::Opened;
use protocol::message::{Block, Body, Content, Proposal};

use super::certificates::certificate;
use super::leading::replace_proposal;
use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// An empty block on a notarised one, for the current view.
fn empty(attacker: &Attacker, notarised: Certificate) -> Option<Bytes> {
    let block = Block {
        epoch: attacker.epoch.id,
        view: attacker.view,
        parent: notarised.verdict.block()?,
        content: Content::Empty,
    };
    let proposal = Proposal {
        block,
        parent: Some(notarised),
        skipped: Vec::new(),
    };
    let body = Body::Proposal(Box::new(proposal));
    Some(attacker.sign(0, attacker.view, body))
}

/// Proposes an empty block on an old notarised block.
#[derive(Default)]
pub(super) struct StaleParent {
    seen: Vec<Certificate>,
}

impl Deviation for StaleParent {
    fn receive(&mut self, _: &mut Attacker, opened: &Opened, _: &mut Actions) -> bool {
        if let Opened::Certificate(certificate) = opened
            && matches!(certificate.verdict, Verdict::Notarised(_))
        {
            self.seen.push(certificate.clone());
        }
        false
    }

    fn entered(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        let old = self.seen.iter().rev().nth(1).cloned();
        if attacker.leads()
            && let Some(frame) = old.and_then(|old| empty(attacker, old))
        {
            actions.send(None, frame);
            actions.misdeeds += 1;
        }
    }
}

/// Proposes an empty block on the newest notarised one at once, while its member proposes a round
/// in the same view: two proposals, each of them valid.
#[derive(Default)]
pub(super) struct EarlyEmptyBlock {
    newest: Option<Certificate>,
}

impl EarlyEmptyBlock {
    fn see(&mut self, certificate: &Certificate) {
        let newest = self.newest.as_ref().map_or(0, |newest| newest.view);
        if matches!(certificate.verdict, Verdict::Notarised(_)) && certificate.view > newest {
            self.newest = Some(certificate.clone());
        }
    }
}

impl Deviation for EarlyEmptyBlock {
    fn receive(&mut self, _: &mut Attacker, opened: &Opened, _: &mut Actions) -> bool {
        if let Opened::Certificate(known) = opened {
            self.see(known);
        }
        false
    }

    fn send(&mut self, _: &mut Attacker, outgoing: &OutgoingFrame<'_>, _: &mut Actions) -> bool {
        if let Some(own) = certificate(outgoing.frame) {
            self.see(&own);
        }
        false
    }

    fn heartbeat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        if attacker.leads()
            && let Some(frame) = self
                .newest
                .clone()
                .and_then(|newest| empty(attacker, newest))
        {
            actions.send(None, frame);
            actions.misdeeds += 1;
        }
    }

    fn entered(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        self.heartbeat(attacker, actions);
    }
}

/// Proposes a valid round on a block that is not the last final one: on a notarised one, an earlier
/// one, the epoch itself, or one that does not exist.
#[derive(Default)]
pub(super) struct WrongParent {
    seen: Vec<Certificate>,
}

impl Deviation for WrongParent {
    fn receive(&mut self, _: &mut Attacker, opened: &Opened, _: &mut Actions) -> bool {
        if let Opened::Certificate(certificate) = opened
            && certificate.verdict.block().is_some()
        {
            self.seen.push(certificate.clone());
        }
        false
    }

    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        replace_proposal(attacker, outgoing, actions, |attacker, other| {
            let seen = self.seen.len();
            let proof = match attacker.random.below(3) {
                0 => None,
                1 => self.seen.last().cloned(),
                _ if seen == 0 => None,
                _ => Some(self.seen[attacker.random.below(seen)].clone()),
            };
            let known = proof.as_ref().and_then(|proof| proof.verdict.block());
            let invented = [attacker.epoch.id, attacker.random_hash()][attacker.random.below(2)];
            let parent: Hash = known.unwrap_or(invented);
            if parent == other.block.parent {
                return None;
            }
            other.block.parent = parent;
            // Otherwise it keeps the proof of the right parent.
            if attacker.random.chance(0.7) {
                other.parent = proof;
            }
            Some(())
        })
    }
}

/// Proposes with inclusions that are duplicated, reordered, or assigned to another member.
pub(super) struct WrongInclusions;

impl Deviation for WrongInclusions {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        replace_proposal(attacker, outgoing, actions, |attacker, other| {
            let Content::Learning(learning) = &mut other.block.content else {
                return None;
            };
            let mut inclusions = learning.inclusions.to_vec();
            let &first = inclusions.first()?;
            match attacker.random.below(4) {
                0 => inclusions.insert(0, first),
                1 => inclusions.reverse(),
                2 => inclusions[0].0 = attacker.random_other(),
                _ => {
                    inclusions.pop();
                    inclusions.insert(0, first);
                }
            }
            learning.inclusions = inclusions.into();
            Some(())
        })
    }
}

/// Sends what the lead of a view sends, changed and under its own name.
pub(super) struct Impostor;

impl Deviation for Impostor {
    fn receive(&mut self, attacker: &mut Attacker, opened: &Opened, actions: &mut Actions) -> bool {
        let Opened::Message(message) = opened else {
            return false;
        };
        // Otherwise two impostors would repeat each other for ever.
        if (message.view, message.sender) != (attacker.view, attacker.lead) {
            return false;
        }
        let body = match &message.body {
            Body::ContributionList(contribution_list) => {
                let mut contribution_list = contribution_list.clone();
                contribution_list.entries.pop();
                Body::ContributionList(contribution_list)
            }
            Body::Manifest(manifest) => {
                let mut manifest = manifest.clone();
                manifest.entries.reverse();
                Body::Manifest(manifest)
            }
            Body::Proposal(proposal) => {
                let mut proposal = proposal.clone();
                if let Content::Learning(learning) = &mut proposal.block.content {
                    learning.outcome = attacker.random_hash();
                }
                Body::Proposal(proposal)
            }
            Body::Receipt { .. } | Body::Progress { .. } => message.body.clone(),
            _ => return false,
        };
        actions.send(None, attacker.sign(message.round, message.view, body));
        actions.misdeeds += 1;
        false
    }
}
