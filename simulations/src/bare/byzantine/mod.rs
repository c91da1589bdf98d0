//! Members that do what they like: a member that keeps the rules, with a liar between it and the
//! world. What the liar feeds it is not checked by anybody, so it can be made to lead a round on
//! invented contributions.
//!
//! | file | ways to misbehave |
//! |---|---|
//! | `votes` | votes that contradict each other |
//! | `headers` | rounds, views and signatures that do not belong to what is said |
//! | `leading` | a lead that is silent, stalls, contradicts itself, or decides wrongly |
//! | `proposing` | proposals that stand where they must not, and leads that are none |
//! | `entries` | contributions, score rows and inclusions that are not what they should be |
//! | `blobs` | models that are not given to those who need them |
//! | `syncing` | forged, cut, replayed and unasked answers to members that catch up |
//! | `certificates` | proofs that are forged or kept back |
//! | `flooding` | more messages than anybody can remember |
//! | `accusing` | true evidence without end, and false evidence |

mod accusing;
mod behaviour;
mod blobs;
mod certificates;
mod entries;
mod flooding;
mod headers;
mod leading;
mod proposing;
mod syncing;
mod votes;

use std::sync::Arc;

use bytes::Bytes;
use protocol::charter::Epoch;
use protocol::envelope::{Opened, seal};
use protocol::message::{Body, Message};
use protocol::{Hash, MemberIndex, SecretKey, Time};

pub use behaviour::{Behaviour, Lies};

use super::oracle::Oracle;
use crate::invariants::{Spoken, read};
use crate::random::Random;

/// What a liar does at some moment: what it says to others, what its own member hears.
#[derive(Default)]
pub(super) struct Act {
    /// To one, or to all others.
    pub(super) out: Vec<(Option<MemberIndex>, Bytes)>,
    /// Fed to its own member.
    pub(super) inject: Vec<Opened>,
    /// Misdeeds.
    pub(super) bad: u64,
}

impl Act {
    /// Says something to one, or to all others.
    fn say(&mut self, to: Option<MemberIndex>, frame: Bytes) {
        self.out.push((to, frame));
    }
}

/// Who lies.
struct Who {
    epoch: Arc<Epoch>,
    me: MemberIndex,
    key: SecretKey,
    random: Random,
    oracle: Arc<Oracle>,
    now: Time,
    view: u64,
    /// The round that it heard of last.
    round: u64,
}

impl Who {
    /// Whether it leads the view that it is in.
    fn leads(&self) -> bool {
        self.epoch.lead(self.view) == self.me
    }

    /// Signs something, properly.
    fn seal(&self, round: u64, view: u64, body: Body) -> Bytes {
        let (_, frame) = seal(&self.epoch, &self.key, round, view, self.me, body);
        self.oracle.sealed(&self.epoch, self.me, &frame);
        frame
    }

    /// Whom it harms in a round.
    fn victim(&self, round: u64) -> MemberIndex {
        let n = self.epoch.roster.len();
        MemberIndex(((self.me.at() + 1 + round as usize % (n - 1).max(1)) % n) as u16)
    }

    fn others(&self) -> impl Iterator<Item = MemberIndex> + use<> {
        let me = self.me;
        let members = self.epoch.roster.members();
        members.filter(move |&member| member != me)
    }

    /// Anybody else.
    fn somebody(&mut self) -> MemberIndex {
        let n = self.epoch.roster.len();
        let step = 1 + self.random.below((n - 1).max(1));
        MemberIndex(((self.me.at() + step) % n) as u16)
    }

    /// Some of all members, by position.
    fn some(&mut self) -> Vec<bool> {
        let members = self.epoch.roster.members();
        members.map(|_| self.random.chance(0.5)).collect()
    }

    /// A hash of nothing.
    fn hash(&mut self) -> Hash {
        Hash(self.random.bytes())
    }
}

/// Something that its member says, on its way to the others.
struct Said<'a> {
    to: Option<MemberIndex>,
    frame: &'a Bytes,
    /// What it says, if it is the member's own message.
    message: Option<&'a Message>,
}

/// One way to misbehave, with what it remembers.
trait Lie: Send {
    /// Its member entered a view.
    fn entered(&mut self, _: &mut Who, _: &mut Act) {}

    /// A beat has passed.
    fn beat(&mut self, _: &mut Who, _: &mut Act) {}

    /// Something reached it. True: its member does not hear it.
    fn hear(&mut self, _: &mut Who, _: &Opened, _: &mut Act) -> bool {
        false
    }

    /// Its member says something. True: that itself does not go out.
    fn say(&mut self, _: &mut Who, _: &Said<'_>, _: &mut Act) -> bool {
        false
    }

    /// What it decides in place of what its member decides.
    fn decide(&mut self, _: &mut Who, honest: Vec<u8>) -> Vec<u8> {
        honest
    }

    /// Whether its member believes that every plan names it.
    fn invites(&self) -> bool {
        false
    }

    /// Whether it claims to have a blob that does not exist.
    fn invents(&self, _: &Hash) -> bool {
        false
    }

    /// Whether it gives a blob to a member.
    fn gives(&self, _: &Who, _: MemberIndex, _: &Hash) -> bool {
        true
    }
}

/// The liar.
pub(super) struct Liar {
    who: Who,
    lies: Vec<Box<dyn Lie>>,
}

impl Liar {
    pub(super) fn new(
        epoch: Arc<Epoch>,
        oracle: Arc<Oracle>,
        me: MemberIndex,
        key: SecretKey,
        behaviours: &[Behaviour],
        seed: u64,
    ) -> Self {
        let mut who = Who {
            epoch,
            me,
            key,
            random: Random::new(seed, &format!("liar {me}")),
            oracle,
            now: Time::ZERO,
            view: 1,
            round: 1,
        };
        let lies = behaviours.iter().map(|behaviour| behaviour.lie(&mut who));
        Self {
            lies: lies.collect(),
            who,
        }
    }

    /// Its member entered a view, and works on this round.
    pub(super) fn entered(&mut self, now: Time, view: u64, round: u64) -> Act {
        (self.who.now, self.who.view, self.who.round) = (now, view, round);
        let mut act = Act::default();
        for lie in &mut self.lies {
            lie.entered(&mut self.who, &mut act);
        }
        act
    }

    /// A beat has passed, and its member works on this round.
    pub(super) fn beat(&mut self, now: Time, round: u64) -> Act {
        (self.who.now, self.who.round) = (now, round);
        let mut act = Act::default();
        for lie in &mut self.lies {
            lie.beat(&mut self.who, &mut act);
        }
        act
    }

    /// Something reached it: what its member hears instead.
    pub(super) fn incoming(&mut self, now: Time, opened: Opened) -> Act {
        self.who.now = now;
        let mut act = Act::default();
        let mut heard = true;
        for lie in &mut self.lies {
            heard &= !lie.hear(&mut self.who, &opened, &mut act);
        }
        if heard {
            act.inject.push(opened);
        }
        act
    }

    /// Its member says something: what goes out instead.
    pub(super) fn outgoing(&mut self, now: Time, to: Option<MemberIndex>, frame: Bytes) -> Act {
        self.who.now = now;
        let spoken = read(&frame);
        let message = match &spoken {
            Spoken::Message(message) if message.sender == self.who.me => Some(&**message),
            _ => None,
        };
        let said = Said {
            to,
            frame: &frame,
            message,
        };
        let mut act = Act::default();
        let mut passes = true;
        for lie in &mut self.lies {
            passes = passes && !lie.say(&mut self.who, &said, &mut act);
        }
        if passes {
            act.say(to, frame);
        }
        act
    }

    /// The decision of a lead.
    pub(super) fn decide(&mut self, honest: Vec<u8>) -> Vec<u8> {
        let lies = self.lies.iter_mut();
        lies.fold(honest, |decision, lie| lie.decide(&mut self.who, decision))
    }

    /// Whether its member believes that every plan names it.
    pub(super) fn invites(&self) -> bool {
        self.lies.iter().any(|lie| lie.invites())
    }

    /// Whether it claims to have a blob that does not exist.
    pub(super) fn invents(&self, blob: &Hash) -> bool {
        self.lies.iter().any(|lie| lie.invents(blob))
    }

    /// Whether it gives a blob to a member.
    pub(super) fn gives(&self, to: MemberIndex, blob: &Hash) -> bool {
        let mut lies = self.lies.iter();
        lies.all(|lie| lie.gives(&self.who, to, blob))
    }
}
