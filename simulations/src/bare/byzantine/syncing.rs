//! Forged, cut, replayed and unasked answers to members that catch up.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use protocol::MemberIndex;
use protocol::certificate::Certificate;
use protocol::envelope::{Opened, reseal};
use protocol::message::{Body, Kind, Reminder, SyncResponse};

use super::certificates::forged;
use super::{Act, Lie, Said, Who};

/// What is wrong with an answer.
#[derive(Clone, Copy)]
pub(super) enum Forgery {
    /// The votes of its certificates.
    Votes,
    /// Which block the proof is of.
    Proof,
    /// How the blocks follow on one another.
    Links,
    /// The first or the last blocks are missing.
    Cut,
    /// It says nothing at all.
    Nothing,
    /// Views are said to have come further than they ever will.
    Huge,
    /// Views are said to have come nowhere yet.
    Small,
    /// What the asker is said to have signed: something old, something of another, or nothing.
    Reminder,
}

/// Forges its member's answers.
pub(super) struct Forge {
    how: Forgery,
    /// An answer of before, to take a wrong proof from.
    before: Option<SyncResponse>,
    /// What others signed, to be reminded of it.
    heard: BTreeMap<MemberIndex, Vec<Reminder>>,
}

impl Forge {
    pub(super) fn new(how: Forgery) -> Self {
        Self {
            how,
            before: None,
            heard: BTreeMap::new(),
        }
    }
}

/// A view that nobody will ever reach.
const FAR: u64 = 1 << 60;

/// The same certificate of a view that nobody will ever reach; its votes are forged then.
fn far(who: &mut Who, certificate: &Certificate) -> Certificate {
    Certificate {
        view: FAR,
        ..forged(who, certificate)
    }
}

impl Lie for Forge {
    fn hear(&mut self, _: &mut Who, opened: &Opened, _: &mut Act) -> bool {
        if let Opened::Message(message) = opened
            && let Some(reminder) = Reminder::of(message)
        {
            let heard = self.heard.entry(message.sender).or_default();
            if heard.len() < HEARD {
                heard.push(reminder);
            }
        }
        false
    }

    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let Some(message) = said.message else {
            return false;
        };
        let Body::SyncResponse(response) = &message.body else {
            return false;
        };
        let mut other = (**response).clone();
        match self.how {
            Forgery::Votes => {
                let proofs = other.proof.iter_mut().chain(&mut other.certificates);
                proofs.for_each(|proof| *proof = forged(who, proof));
            }
            Forgery::Proof => {
                let before = self.before.as_ref().and_then(|before| before.proof.clone());
                other.proof = before.or_else(|| other.certificates.first().cloned());
            }
            Forgery::Links => match who.random.below(3) {
                0 => other.blocks.reverse(),
                1 => {
                    let invented = who.hash();
                    if let Some(first) = other.blocks.first_mut() {
                        first.parent = invented;
                    }
                }
                _ => {
                    if let Some(last) = other.blocks.last().cloned() {
                        let at = who.random.below(other.blocks.len());
                        other.blocks.insert(at, last);
                    }
                }
            },
            Forgery::Cut => {
                if who.random.chance(0.5) {
                    other.blocks.pop();
                } else if !other.blocks.is_empty() {
                    other.blocks.remove(0);
                }
                other.more = who.random.chance(0.5);
            }
            Forgery::Nothing => {
                other = SyncResponse::nothing(other.after, other.nonce);
            }
            Forgery::Huge => {
                other.highest = other.highest.map(|known| far(who, &known));
                other.more = true;
            }
            Forgery::Small => {
                other.highest = None;
                other.certificates.clear();
            }
            Forgery::Reminder => {
                let heard = said.to.and_then(|asker| self.heard.get(&asker));
                let old = heard.map(|heard| &heard[who.random.below(heard.len())]);
                other.yours = old.cloned();
                if let Some(own) = other.yours.as_mut().filter(|_| who.random.chance(0.3)) {
                    own.member = who.somebody();
                }
            }
        }
        self.before = Some((**response).clone());
        if other == **response {
            return false;
        }
        let body = Body::SyncResponse(Box::new(other));
        act.say(said.to, who.seal(0, 0, body));
        act.bad += 1;
        true
    }
}

/// How much it remembers of what others said.
const HEARD: usize = 12;

/// Repeats what it heard others say to anybody. Old answers before all: it asks for them early, and
/// hands them to whoever catches up before the others can answer.
#[derive(Default)]
pub(super) struct Replay {
    answers: Vec<Bytes>,
    heard: VecDeque<Bytes>,
    beats: u32,
}

impl Lie for Replay {
    fn hear(&mut self, who: &mut Who, opened: &Opened, act: &mut Act) -> bool {
        if let Opened::Message(message) = opened {
            if message.body.kind() == Kind::SyncRequest {
                for frame in &self.answers {
                    act.say(Some(message.sender), frame.clone());
                }
                act.bad += 1;
            }
            let answer = message.body.kind() == Kind::SyncResponse;
            if answer && self.answers.len() < HEARD {
                self.answers.push(reseal(&who.epoch, message));
            } else if who.random.chance(0.2) {
                self.heard.push_back(reseal(&who.epoch, message));
                self.heard.truncate(HEARD);
            }
        }
        false
    }

    fn say(&mut self, _: &mut Who, said: &Said<'_>, _: &mut Act) -> bool {
        let answer = |body: &Body| body.kind() == Kind::SyncResponse;
        let own = said.message.is_some_and(|message| answer(&message.body));
        if own && self.answers.len() < HEARD {
            self.answers.push(said.frame.clone());
        }
        false
    }

    fn beat(&mut self, who: &mut Who, act: &mut Act) {
        self.beats += 1;
        if self.beats <= 3 {
            let nonce = self.beats.into();
            let body = Body::SyncRequest {
                after: 0,
                from: 1,
                missing: None,
                nonce,
            };
            act.say(None, who.seal(0, 0, body));
        }
        for frame in self.answers.iter().take(3) {
            let to = who.somebody();
            act.say(Some(to), frame.clone());
        }
        for _ in 0..self.heard.len().min(4) {
            let at = who.random.below(self.heard.len());
            let to = who.somebody();
            act.say(Some(to), self.heard[at].clone());
        }
        act.bad += 1;
    }
}

/// Answers who did not ask, with whatever it answered last.
#[derive(Default)]
pub(super) struct Unasked {
    last: Option<SyncResponse>,
}

impl Lie for Unasked {
    fn say(&mut self, _: &mut Who, said: &Said<'_>, _: &mut Act) -> bool {
        if let Some(message) = said.message
            && let Body::SyncResponse(response) = &message.body
        {
            self.last = Some((**response).clone());
        }
        false
    }

    fn beat(&mut self, who: &mut Who, act: &mut Act) {
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
        act.say(None, who.seal(0, 0, body));
        act.bad += 1;
    }
}
