//! Proposals that stand where they must not, and leads that are none.

use bytes::Bytes;
use protocol::Hash;
use protocol::certificate::{Certificate, Verdict};
use protocol::envelope::Opened;
use protocol::message::{Block, Body, Content, Proposal};

use super::certificates::certificate;
use super::leading::learning;
use super::{Act, Lie, Said, Who};

/// An empty block on a notarised one, for the view that the liar is in.
fn empty(who: &Who, notarised: Certificate) -> Option<Bytes> {
    let block = Block {
        epoch: who.epoch.id,
        view: who.view,
        parent: notarised.verdict.block()?,
        content: Content::Empty,
    };
    let proposal = Proposal {
        block,
        parent: Some(notarised),
        skipped: Vec::new(),
    };
    let body = Body::Proposal(Box::new(proposal));
    Some(who.seal(0, who.view, body))
}

/// Proposes to go on from long ago.
#[derive(Default)]
pub(super) struct Stale {
    seen: Vec<Certificate>,
}

impl Lie for Stale {
    fn hear(&mut self, _: &mut Who, opened: &Opened, _: &mut Act) -> bool {
        if let Opened::Certificate(certificate) = opened
            && matches!(certificate.verdict, Verdict::Notarised(_))
        {
            self.seen.push(certificate.clone());
        }
        false
    }

    fn entered(&mut self, who: &mut Who, act: &mut Act) {
        let old = self.seen.iter().rev().nth(1).cloned();
        if who.leads()
            && let Some(frame) = old.and_then(|old| empty(who, old))
        {
            act.say(None, frame);
            act.bad += 1;
        }
    }
}

/// Proposes an empty block on the newest notarised one at once, and leaves it to its member to
/// propose a round in the same view: two proposals, and each of them is good.
#[derive(Default)]
pub(super) struct Hasty {
    newest: Option<Certificate>,
}

impl Hasty {
    fn see(&mut self, certificate: &Certificate) {
        let newest = self.newest.as_ref().map_or(0, |newest| newest.view);
        if matches!(certificate.verdict, Verdict::Notarised(_)) && certificate.view > newest {
            self.newest = Some(certificate.clone());
        }
    }
}

impl Lie for Hasty {
    fn hear(&mut self, _: &mut Who, opened: &Opened, _: &mut Act) -> bool {
        if let Opened::Certificate(known) = opened {
            self.see(known);
        }
        false
    }

    fn say(&mut self, _: &mut Who, said: &Said<'_>, _: &mut Act) -> bool {
        if let Some(own) = certificate(said.frame) {
            self.see(&own);
        }
        false
    }

    fn beat(&mut self, who: &mut Who, act: &mut Act) {
        if who.leads()
            && let Some(frame) = self.newest.clone().and_then(|newest| empty(who, newest))
        {
            act.say(None, frame);
            act.bad += 1;
        }
    }

    fn entered(&mut self, who: &mut Who, act: &mut Act) {
        self.beat(who, act);
    }
}

/// Proposes a good round on a block that is not the last final one: on one that is notarised, on
/// an earlier one, on the beginning, or on one that does not exist.
#[derive(Default)]
pub(super) struct WrongParent {
    seen: Vec<Certificate>,
}

impl Lie for WrongParent {
    fn hear(&mut self, _: &mut Who, opened: &Opened, _: &mut Act) -> bool {
        if let Opened::Certificate(certificate) = opened
            && certificate.verdict.block().is_some()
        {
            self.seen.push(certificate.clone());
        }
        false
    }

    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some((view, mut other)) = learning(said) else {
            return false;
        };
        let seen = self.seen.len();
        let proof = match who.random.below(3) {
            0 => None,
            1 => self.seen.last().cloned(),
            _ if seen == 0 => None,
            _ => Some(self.seen[who.random.below(seen)].clone()),
        };
        let known = proof.as_ref().and_then(|proof| proof.verdict.block());
        let invented = [who.epoch.id, who.hash()][who.random.below(2)];
        let parent: Hash = known.unwrap_or(invented);
        if parent == other.block.parent {
            return false;
        }
        other.block.parent = parent;
        // Sometimes with the proof of the right one.
        if who.random.chance(0.7) {
            other.parent = proof;
        }
        let body = Body::Proposal(Box::new(other));
        act.say(said.to, who.seal(0, view, body));
        act.bad += 1;
        true
    }
}

/// Proposes with inclusions that are doubled, in another order, or another member's.
pub(super) struct WrongInclusions;

impl Lie for WrongInclusions {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some((view, mut other)) = learning(said) else {
            return false;
        };
        if let Content::Learning(learning) = &mut other.block.content {
            let mut inclusions = learning.inclusions.to_vec();
            let Some(&first) = inclusions.first() else {
                return false;
            };
            match who.random.below(4) {
                0 => inclusions.insert(0, first),
                1 => inclusions.reverse(),
                2 => inclusions[0].0 = who.somebody(),
                _ => {
                    inclusions.pop();
                    inclusions.insert(0, first);
                }
            }
            learning.inclusions = inclusions.into();
        }
        let body = Body::Proposal(Box::new(other));
        act.say(said.to, who.seal(0, view, body));
        act.bad += 1;
        true
    }
}

/// Says in views that others lead what only a lead may say: what the lead says, under its own name.
pub(super) struct Impostor;

impl Lie for Impostor {
    fn hear(&mut self, who: &mut Who, opened: &Opened, act: &mut Act) -> bool {
        let Opened::Message(message) = opened else {
            return false;
        };
        // Two impostors do not repeat each other.
        if message.sender != who.epoch.lead(message.view) {
            return false;
        }
        let body = match &message.body {
            Body::Bundle(bundle) => {
                let mut bundle = bundle.clone();
                bundle.entries.pop();
                Body::Bundle(bundle)
            }
            Body::Sheet(sheet) => {
                let mut sheet = sheet.clone();
                sheet.entries.reverse();
                Body::Sheet(sheet)
            }
            Body::Proposal(proposal) => {
                let mut proposal = proposal.clone();
                if let Content::Learning(learning) = &mut proposal.block.content {
                    learning.outcome = who.hash();
                }
                Body::Proposal(proposal)
            }
            Body::Receipt { .. } | Body::Progress { .. } => message.body.clone(),
            _ => return false,
        };
        act.say(None, who.seal(message.round, message.view, body));
        act.bad += 1;
        false
    }
}
