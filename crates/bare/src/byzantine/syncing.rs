//! Forged, shortened, replayed and unrequested answers to members that catch up.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use protocol::MemberIndex;
use protocol::certificate::Certificate;
use protocol::envelope::{Opened, reseal};
use protocol::message::{Body, Kind, Reminder, SyncResponse};

use super::certificates::forged;
use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// What is wrong with an answer.
#[derive(Clone, Copy)]
pub(super) enum Forgery {
    /// The votes of its certificates.
    Votes,
    /// The block that its proof belongs to.
    Proof,
    /// The links between its blocks.
    Links,
    /// The first or the last block is missing.
    Cut,
    /// The answer is empty.
    Nothing,
    /// The answer claims a view that will never be reached.
    Huge,
    /// The answer claims that no view is certified yet.
    Small,
    /// The answer's reminder of what the asker signed: something old, another member's message, or nothing.
    Reminder,
}

/// Forges its member's answers.
pub(super) struct ForgedAnswers {
    how: Forgery,
    /// An earlier answer, to take a wrong proof from.
    before: Option<SyncResponse>,
    /// Messages that others signed, for wrong reminders.
    received: BTreeMap<MemberIndex, Vec<Reminder>>,
}

impl ForgedAnswers {
    pub(super) fn new(how: Forgery) -> Self {
        Self {
            how,
            before: None,
            received: BTreeMap::new(),
        }
    }
}

/// A view that is never reached.
const FAR: u64 = 1 << 60;

/// The certificate for a view that is never reached, so with forged votes.
fn far(attacker: &mut Attacker, certificate: &Certificate) -> Certificate {
    Certificate {
        view: FAR,
        ..forged(attacker, certificate)
    }
}

impl Deviation for ForgedAnswers {
    fn receive(&mut self, _: &mut Attacker, opened: &Opened, _: &mut Actions) -> bool {
        if let Opened::Message(message) = opened
            && let Some(reminder) = Reminder::of(message)
        {
            let received = self.received.entry(message.sender).or_default();
            if received.len() < REMEMBERED {
                received.push(reminder);
            }
        }
        false
    }

    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message else {
            return false;
        };
        let Body::SyncResponse(response) = &message.body else {
            return false;
        };
        let mut other = (**response).clone();
        match self.how {
            Forgery::Votes => {
                let proofs = other.proof.iter_mut().chain(&mut other.certificates);
                proofs.for_each(|proof| *proof = forged(attacker, proof));
            }
            Forgery::Proof => {
                let before = self.before.as_ref().and_then(|before| before.proof.clone());
                other.proof = before.or_else(|| other.certificates.first().cloned());
            }
            Forgery::Links => match attacker.random.below(3) {
                0 => other.blocks.reverse(),
                1 => {
                    let invented = attacker.random_hash();
                    if let Some(first) = other.blocks.first_mut() {
                        first.parent = invented;
                    }
                }
                _ => {
                    if let Some(last) = other.blocks.last().cloned() {
                        let at = attacker.random.below(other.blocks.len());
                        other.blocks.insert(at, last);
                    }
                }
            },
            Forgery::Cut => {
                if attacker.random.chance(0.5) {
                    other.blocks.pop();
                } else if !other.blocks.is_empty() {
                    other.blocks.remove(0);
                }
                other.more = attacker.random.chance(0.5);
            }
            Forgery::Nothing => {
                other = SyncResponse::nothing(other.after, other.nonce);
            }
            Forgery::Huge => {
                other.highest = other.highest.map(|known| far(attacker, &known));
                other.more = true;
            }
            Forgery::Small => {
                other.highest = None;
                other.certificates.clear();
            }
            Forgery::Reminder => {
                let received = outgoing.to.and_then(|asker| self.received.get(&asker));
                let old = received.map(|received| &received[attacker.random.below(received.len())]);
                other.yours = old.cloned();
                if let Some(own) = other.yours.as_mut().filter(|_| attacker.random.chance(0.3)) {
                    own.member = attacker.random_other();
                }
            }
        }
        self.before = Some((**response).clone());
        if other == **response {
            return false;
        }
        let body = Body::SyncResponse(Box::new(other));
        actions.send(outgoing.to, attacker.sign(0, 0, body));
        actions.misdeeds += 1;
        true
    }
}

/// Most messages that are remembered of each member.
const REMEMBERED: usize = 12;

/// Replays messages that it received to any member. Above all old answers: it requests them early,
/// and sends them to members that catch up before others can answer.
#[derive(Default)]
pub(super) struct ReplayAttack {
    answers: Vec<Bytes>,
    received: VecDeque<Bytes>,
    heartbeats: u32,
}

impl Deviation for ReplayAttack {
    fn receive(&mut self, attacker: &mut Attacker, opened: &Opened, actions: &mut Actions) -> bool {
        if let Opened::Message(message) = opened {
            if message.body.kind() == Kind::SyncRequest {
                for frame in &self.answers {
                    actions.send(Some(message.sender), frame.clone());
                }
                actions.misdeeds += 1;
            }
            let answer = message.body.kind() == Kind::SyncResponse;
            if answer && self.answers.len() < REMEMBERED {
                self.answers.push(reseal(&attacker.epoch, message));
            } else if attacker.random.chance(0.2) {
                self.received.push_back(reseal(&attacker.epoch, message));
                self.received.truncate(REMEMBERED);
            }
        }
        false
    }

    fn send(&mut self, _: &mut Attacker, outgoing: &OutgoingFrame<'_>, _: &mut Actions) -> bool {
        let answer = |body: &Body| body.kind() == Kind::SyncResponse;
        let own = outgoing
            .message
            .is_some_and(|message| answer(&message.body));
        if own && self.answers.len() < REMEMBERED {
            self.answers.push(outgoing.frame.clone());
        }
        false
    }

    fn heartbeat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        self.heartbeats += 1;
        if self.heartbeats <= 3 {
            let nonce = self.heartbeats.into();
            let body = Body::SyncRequest {
                after: 0,
                from: 1,
                missing: None,
                nonce,
            };
            actions.send(None, attacker.sign(0, 0, body));
        }
        for frame in self.answers.iter().take(3) {
            let to = attacker.random_other();
            actions.send(Some(to), frame.clone());
        }
        for _ in 0..self.received.len().min(4) {
            let at = attacker.random.below(self.received.len());
            let to = attacker.random_other();
            actions.send(Some(to), self.received[at].clone());
        }
        actions.misdeeds += 1;
    }
}

/// Sends its last answer to all, although no member requested one.
#[derive(Default)]
pub(super) struct UnrequestedAnswers {
    last: Option<SyncResponse>,
}

impl Deviation for UnrequestedAnswers {
    fn send(&mut self, _: &mut Attacker, outgoing: &OutgoingFrame<'_>, _: &mut Actions) -> bool {
        if let Some(message) = outgoing.message
            && let Body::SyncResponse(response) = &message.body
        {
            self.last = Some((**response).clone());
        }
        false
    }

    fn heartbeat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        let mut answer = self.last.clone().unwrap_or(SyncResponse {
            after: 0,
            nonce: 0,
            highest: None,
            blocks: Vec::new(),
            proof: None,
            missing: Vec::new(),
            more: true,
            certificates: Vec::new(),
            yours: None,
        });
        answer.nonce += 1;
        let body = Body::SyncResponse(Box::new(answer));
        actions.send(None, attacker.sign(0, 0, body));
        actions.misdeeds += 1;
    }
}
