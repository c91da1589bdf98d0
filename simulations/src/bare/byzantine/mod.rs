//! Byzantine members: each is an honest member with a [`ByzantineMember`] between it and the
//! network, which changes what the member sends and receives. What it injects into its own member
//! is not verified, so the member can be made to lead a round on invented contributions.
//!
//! | file | what its behaviours do |
//! |---|---|
//! | `votes` | votes that contradict each other |
//! | `headers` | wrong rounds, views and keys in the headers of messages |
//! | `leading` | leads that are silent, stall, contradict themselves, or decide wrongly |
//! | `proposing` | proposals with a wrong parent or view, and members that act as leads |
//! | `entries` | wrong contributions, score rows and inclusions |
//! | `blobs` | models that are withheld |
//! | `syncing` | forged, shortened, replayed and unrequested answers to members that catch up |
//! | `certificates` | certificates that are forged or withheld |
//! | `flooding` | floods of messages |
//! | `accusing` | floods of true evidence, and false evidence |

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

pub use behaviour::{Behaviour, Byzantine};

use super::signatures::SignatureCache;
use crate::invariants::{Frame, read_frame};
use crate::random::Random;

/// What a Byzantine member does in response to an event.
#[derive(Default)]
pub(super) struct Actions {
    /// Frames that it sends, each to one member or to all others.
    pub(super) out: Vec<(Option<MemberIndex>, Bytes)>,
    /// Messages that are given to its own member.
    pub(super) inject: Vec<Opened>,
    /// How many times it misbehaved, for statistics.
    pub(super) misdeeds: u64,
}

impl Actions {
    /// Sends a frame to one member, or to all others.
    fn send(&mut self, to: Option<MemberIndex>, frame: Bytes) {
        self.out.push((to, frame));
    }
}

/// A Byzantine member's identity and what it knows: the context of its deviations.
struct Attacker {
    epoch: Arc<Epoch>,
    me: MemberIndex,
    key: SecretKey,
    random: Random,
    signatures: Arc<SignatureCache>,
    now: Time,
    view: u64,
    /// The round that its member works on.
    round: u64,
}

impl Attacker {
    /// Whether it leads the current view.
    fn leads(&self) -> bool {
        self.epoch.lead(self.view) == self.me
    }

    /// Signs a body with its own key.
    fn seal(&self, round: u64, view: u64, body: Body) -> Bytes {
        let (_, frame) = seal(&self.epoch, &self.key, round, view, self.me, body);
        self.signatures.sealed(&self.epoch, self.me, &frame);
        frame
    }

    /// The member that it harms in a round.
    fn victim(&self, round: u64) -> MemberIndex {
        let n = self.epoch.roster.len();
        MemberIndex(((self.me.at() + 1 + round as usize % (n - 1).max(1)) % n) as u16)
    }

    fn others(&self) -> impl Iterator<Item = MemberIndex> + use<> {
        let me = self.me;
        let members = self.epoch.roster.members();
        members.filter(move |&member| member != me)
    }

    /// Another member, drawn at random.
    fn random_other(&mut self) -> MemberIndex {
        let n = self.epoch.roster.len();
        let step = 1 + self.random.below((n - 1).max(1));
        MemberIndex(((self.me.at() + step) % n) as u16)
    }

    /// A random set of members, as a flag for each position.
    fn random_members(&mut self) -> Vec<bool> {
        let members = self.epoch.roster.members();
        members.map(|_| self.random.chance(0.5)).collect()
    }

    /// A random hash.
    fn random_hash(&mut self) -> Hash {
        Hash(self.random.bytes())
    }
}

/// A frame that its member sends.
struct Outgoing<'a> {
    to: Option<MemberIndex>,
    frame: &'a Bytes,
    /// The decoded message, if it is the member's own.
    message: Option<&'a Message>,
}

/// One way to misbehave, with its state.
trait Deviation: Send {
    /// Its member entered a view.
    fn entered(&mut self, _: &mut Attacker, _: &mut Actions) {}

    /// A beat has passed.
    fn beat(&mut self, _: &mut Attacker, _: &mut Actions) {}

    /// A message was delivered. True: it is kept from its member.
    fn receive(&mut self, _: &mut Attacker, _: &Opened, _: &mut Actions) -> bool {
        false
    }

    /// Its member sends a frame. True: that frame is not sent.
    fn send(&mut self, _: &mut Attacker, _: &Outgoing<'_>, _: &mut Actions) -> bool {
        false
    }

    /// Replaces its member's decision as a lead.
    fn decide(&mut self, _: &mut Attacker, honest: Vec<u8>) -> Vec<u8> {
        honest
    }

    /// Whether its member takes part in every round, as if every plan named it.
    fn claims_invitation(&self) -> bool {
        false
    }

    /// Whether it claims to hold a blob that does not exist.
    fn claims_blob(&self, _: &Hash) -> bool {
        false
    }

    /// Whether it serves a blob to a member.
    fn serves(&self, _: &Attacker, _: MemberIndex, _: &Hash) -> bool {
        true
    }
}

/// Changes what one member sends and receives.
pub(super) struct ByzantineMember {
    attacker: Attacker,
    deviations: Vec<Box<dyn Deviation>>,
}

impl ByzantineMember {
    pub(super) fn new(
        epoch: Arc<Epoch>,
        signatures: Arc<SignatureCache>,
        me: MemberIndex,
        key: SecretKey,
        behaviours: &[Behaviour],
        seed: u64,
    ) -> Self {
        let mut attacker = Attacker {
            epoch,
            me,
            key,
            random: Random::new(seed, &format!("liar {me}")),
            signatures,
            now: Time::ZERO,
            view: 1,
            round: 1,
        };
        let deviations = behaviours
            .iter()
            .map(|behaviour| behaviour.deviation(&mut attacker));
        Self {
            deviations: deviations.collect(),
            attacker,
        }
    }

    /// Its member entered a view and works on this round.
    pub(super) fn entered(&mut self, now: Time, view: u64, round: u64) -> Actions {
        (self.attacker.now, self.attacker.view, self.attacker.round) = (now, view, round);
        let mut actions = Actions::default();
        for deviation in &mut self.deviations {
            deviation.entered(&mut self.attacker, &mut actions);
        }
        actions
    }

    /// A beat has passed; its member works on this round.
    pub(super) fn beat(&mut self, now: Time, round: u64) -> Actions {
        (self.attacker.now, self.attacker.round) = (now, round);
        let mut actions = Actions::default();
        for deviation in &mut self.deviations {
            deviation.beat(&mut self.attacker, &mut actions);
        }
        actions
    }

    /// A message was delivered: what its member receives instead.
    pub(super) fn incoming(&mut self, now: Time, opened: Opened) -> Actions {
        self.attacker.now = now;
        let mut actions = Actions::default();
        let mut received = true;
        for deviation in &mut self.deviations {
            received &= !deviation.receive(&mut self.attacker, &opened, &mut actions);
        }
        if received {
            actions.inject.push(opened);
        }
        actions
    }

    /// Its member sends a frame: what is sent instead.
    pub(super) fn outgoing(&mut self, now: Time, to: Option<MemberIndex>, frame: Bytes) -> Actions {
        self.attacker.now = now;
        let spoken = read_frame(&frame);
        let message = match &spoken {
            Frame::Message(message) if message.sender == self.attacker.me => Some(&**message),
            _ => None,
        };
        let outgoing = Outgoing {
            to,
            frame: &frame,
            message,
        };
        let mut actions = Actions::default();
        let mut passes = true;
        for deviation in &mut self.deviations {
            passes = passes && !deviation.send(&mut self.attacker, &outgoing, &mut actions);
        }
        if passes {
            actions.send(to, frame);
        }
        actions
    }

    /// The decision of a lead.
    pub(super) fn decide(&mut self, honest: Vec<u8>) -> Vec<u8> {
        let deviations = self.deviations.iter_mut();
        deviations.fold(honest, |decision, deviation| {
            deviation.decide(&mut self.attacker, decision)
        })
    }

    /// Whether its member takes part in every round, as if every plan named it.
    pub(super) fn claims_invitation(&self) -> bool {
        self.deviations
            .iter()
            .any(|deviation| deviation.claims_invitation())
    }

    /// Whether it claims to hold a blob that does not exist.
    pub(super) fn claims_blob(&self, blob: &Hash) -> bool {
        self.deviations
            .iter()
            .any(|deviation| deviation.claims_blob(blob))
    }

    /// Whether it serves a blob to a member.
    pub(super) fn serves(&self, to: MemberIndex, blob: &Hash) -> bool {
        let mut deviations = self.deviations.iter();
        deviations.all(|deviation| deviation.serves(&self.attacker, to, blob))
    }
}
