//! Byzantine members: each is an honest member with a [`ByzantineMember`] between it and the
//! network, which changes what the member sends and receives.
//!
//! Both simulators use them. The [bare one](crate) calls every hook of a `Deviation`. What
//! is injected into the member is not verified there, so the member can be made to lead a round on
//! synthetic contributions. A whole silo verifies what it receives; its
//! `Tamper` keeps messages from it, and changes what it sends and serves.
//!
//! | file | what its behaviours do |
//! |---|---|
//! | `votes` | votes that contradict each other |
//! | `headers` | wrong rounds, views and keys in the headers of messages |
//! | `leading` | leads that are silent, stall, contradict themselves, or decide wrongly |
//! | `proposing` | proposals with a wrong parent or view, and members that act as leads |
//! | `entries` | wrong contributions, score rows and inclusions |
//! | `models` | contributions of corrupted models |
//! | `blobs` | models that are withheld |
//! | `masking` | false lists, masked vectors, shares and outcome votes |
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
mod masking;
mod models;
mod proposing;
mod syncing;
mod votes;

use std::sync::Arc;

use bytes::Bytes;
use protocol::envelope::{Opened, sign};
use protocol::message::{Body, Message};
use protocol::parameters::Epoch;
use protocol::{Hash, MemberIndex, SecretKey, Time};

use crate::invariants::{DecodedFrame, read_frame};
use crate::random::Random;
use crate::signatures::KnownSignatures;

pub use behaviour::Behaviour;
pub use certificates::certificate;

/// Gives the blob of a hash, if the silo of a Byzantine member has it.
pub type BlobSource = Arc<dyn Fn(&Hash) -> Option<Bytes> + Send + Sync>;

/// Response of a Byzantine member to an event.
#[derive(Default)]
pub struct Actions {
    /// Frames that it sends, each to one member or to all others.
    pub out: Vec<(Option<MemberIndex>, Bytes)>,
    /// Messages that are given to its own member.
    pub inject: Vec<Opened>,
    /// Number of times that it misbehaved, for statistics.
    pub misdeeds: u64,
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
    /// The cache that every signature is reported to, if the simulator has one.
    signatures: Option<Arc<KnownSignatures>>,
    /// The blobs of its silo, if it has one.
    blobs: Option<BlobSource>,
    now: Time,
    view: u64,
    /// The lead of that view.
    lead: MemberIndex,
    /// The round that its member works on.
    round: u64,
}

impl Attacker {
    /// Returns whether this attacker leads the current view.
    fn leads(&self) -> bool {
        self.lead == self.me
    }

    /// Signs a body with its own key.
    fn sign(&self, round: u64, view: u64, body: Body) -> Bytes {
        self.sign(round, view, body).1
    }

    /// Signs a body with its own key; gives the message and its frame.
    fn sign(&self, round: u64, view: u64, body: Body) -> (Message, Bytes) {
        let (message, frame) = sign(&self.epoch, &self.key, round, view, self.me, body);
        if let Some(signatures) = &self.signatures {
            signatures.sealed(&self.epoch, self.me, &frame);
        }
        (message, frame)
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
struct OutgoingFrame<'a> {
    to: Option<MemberIndex>,
    frame: &'a Bytes,
    /// The decoded message, if it is the member's own.
    message: Option<&'a Message>,
}

/// One way to misbehave, with its state.
trait Deviation: Send {
    /// The member entered a view.
    fn entered(&mut self, _: &mut Attacker, _: &mut Actions) {}

    /// A heartbeat has passed.
    fn heartbeat(&mut self, _: &mut Attacker, _: &mut Actions) {}

    /// A message was delivered. True: it is kept from its member.
    fn receive(&mut self, _: &mut Attacker, _: &Opened, _: &mut Actions) -> bool {
        false
    }

    /// The member sends a frame. True: that frame is not sent.
    fn send(&mut self, _: &mut Attacker, _: &OutgoingFrame<'_>, _: &mut Actions) -> bool {
        false
    }

    /// Replaces its member's decision as a lead.
    fn decide(&mut self, _: &mut Attacker, honest: Vec<u8>) -> Vec<u8> {
        honest
    }

    /// Returns whether its member takes part in every round, as if every plan named it.
    fn claims_invitation(&self) -> bool {
        false
    }

    /// Returns whether the member claims to hold a blob that does not exist.
    fn claims_blob(&self, _: &Hash) -> bool {
        false
    }

    /// Returns whether the member adds wrong streams to the vectors that it masks in this round.
    fn corrupts_masks(&self, _: u64) -> bool {
        false
    }

    /// Returns whether the member serves a blob to another one.
    fn serves(&self, _: &Attacker, _: MemberIndex, _: &Hash) -> bool {
        true
    }

    /// The blob of that hash, if this deviation made it.
    fn blob(&self, _: &Hash) -> Option<Bytes> {
        None
    }
}

/// Changes what one member sends and receives.
pub struct ByzantineMember {
    attacker: Attacker,
    deviations: Vec<Box<dyn Deviation>>,
}

impl ByzantineMember {
    /// The member `me` with this key and these behaviours, whose free parameters are drawn from
    /// `seed`.
    pub fn new(
        epoch: Arc<Epoch>,
        me: MemberIndex,
        key: SecretKey,
        behaviours: &[Behaviour],
        seed: u64,
    ) -> Self {
        let lead = epoch.lead(1);
        let mut attacker = Attacker {
            epoch,
            me,
            key,
            random: Random::new(seed, &format!("liar {me}")),
            signatures: None,
            blobs: None,
            now: Time::ZERO,
            view: 1,
            lead,
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

    /// This member, reporting every signature that it makes to a cache.
    pub(crate) fn with_signatures(mut self, signatures: Arc<KnownSignatures>) -> Self {
        self.attacker.signatures = Some(signatures);
        self
    }

    /// This member with the blobs of its silo.
    pub fn with_blobs(mut self, blobs: BlobSource) -> Self {
        self.attacker.blobs = Some(blobs);
        self
    }

    /// The member entered a view with this lead, and works on this round.
    pub fn entered(&mut self, now: Time, (view, lead): (u64, MemberIndex), round: u64) -> Actions {
        (self.attacker.now, self.attacker.round) = (now, round);
        (self.attacker.view, self.attacker.lead) = (view, lead);
        let mut actions = Actions::default();
        for deviation in &mut self.deviations {
            deviation.entered(&mut self.attacker, &mut actions);
        }
        actions
    }

    /// A heartbeat has passed; its member works on this round.
    pub(crate) fn heartbeat(&mut self, now: Time, round: u64) -> Actions {
        (self.attacker.now, self.attacker.round) = (now, round);
        let mut actions = Actions::default();
        for deviation in &mut self.deviations {
            deviation.heartbeat(&mut self.attacker, &mut actions);
        }
        actions
    }

    /// A message was delivered: what its member receives instead.
    pub(crate) fn incoming(&mut self, now: Time, opened: Opened) -> Actions {
        let (mut actions, received) = self.hear(now, &opened);
        if received {
            actions.inject.push(opened);
        }
        actions
    }

    /// A message was delivered. Also returns whether its member receives it.
    pub fn hear(&mut self, now: Time, opened: &Opened) -> (Actions, bool) {
        self.attacker.now = now;
        let mut actions = Actions::default();
        let mut received = true;
        for deviation in &mut self.deviations {
            received &= !deviation.receive(&mut self.attacker, opened, &mut actions);
        }
        (actions, received)
    }

    /// Returns what is sent instead of a frame that the member sends.
    pub fn outgoing(&mut self, now: Time, to: Option<MemberIndex>, frame: Bytes) -> Actions {
        self.attacker.now = now;
        let decoded = read_frame(&frame);
        let message = match &decoded {
            DecodedFrame::Message(message) if message.sender == self.attacker.me => {
                Some(&**message)
            }
            _ => None,
        };
        let outgoing = OutgoingFrame {
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
    pub(crate) fn decide(&mut self, honest: Vec<u8>) -> Vec<u8> {
        let deviations = self.deviations.iter_mut();
        deviations.fold(honest, |decision, deviation| {
            deviation.decide(&mut self.attacker, decision)
        })
    }

    /// Returns whether its member takes part in every round, as if every plan named it.
    pub(crate) fn claims_invitation(&self) -> bool {
        self.deviations
            .iter()
            .any(|deviation| deviation.claims_invitation())
    }

    /// Returns whether the member claims to hold a blob that does not exist.
    pub(crate) fn claims_blob(&self, blob: &Hash) -> bool {
        self.deviations
            .iter()
            .any(|deviation| deviation.claims_blob(blob))
    }

    /// Returns whether the member adds wrong streams to the vectors that it masks.
    pub(crate) fn corrupts_masks(&self, round: u64) -> bool {
        self.deviations
            .iter()
            .any(|deviation| deviation.corrupts_masks(round))
    }

    /// Returns whether the member serves a blob to another one.
    pub(crate) fn serves(&self, to: MemberIndex, blob: &Hash) -> bool {
        let mut deviations = self.deviations.iter();
        deviations.all(|deviation| deviation.serves(&self.attacker, to, blob))
    }

    /// Returns what the member answers to one that asks for blobs, if its silo is not to answer itself.
    pub fn answer(&self, to: MemberIndex, wanted: &[Hash]) -> Option<Vec<Option<Bytes>>> {
        let own = |hash| {
            let mut deviations = self.deviations.iter();
            deviations.find_map(|deviation| deviation.blob(hash))
        };
        let answer: Vec<_> = wanted.iter().map(own).collect();
        let withheld = wanted.iter().any(|hash| !self.serves(to, hash));
        let deviates = withheld || answer.iter().any(Option::is_some);
        deviates.then_some(answer)
    }
}
