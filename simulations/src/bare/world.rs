//! The event loop of a bare run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::charter::{Charter, Epoch, Genesis, Rotation, Verification};
use protocol::effects::{Effect, Input, Report};
use protocol::envelope::{self, Opened};
use protocol::member::{Config, Member, Start};
use protocol::roster::Silo;
use protocol::{Hash, MemberIndex, Record, SecretKey, Time};

use crate::invariants::{Violation, Watch};
use crate::random::Random;

use super::byzantine::{Act as Deed, Liar};
use super::faults::{self, Act, Script};
use super::links::Links;
use super::oracle::Oracle;
use super::work::{self, Shelf};
use super::{Ended, Failure, Options};

const BEAT: Duration = Duration::from_secs(1);
const PATIENCE: u32 = 6;

struct Node {
    key: SecretKey,
    member: Option<Member>,
    /// Counts lives; what belongs to an earlier one is void.
    life: u32,
    journal: Vec<Record>,
    /// Lost its journal and has not voted since.
    lost: bool,
    armed: Option<Time>,
    shelf: Shelf,
    liar: Option<Liar>,
}

enum Event {
    Deliver { from: usize, to: usize, frame: Bytes },
    Inject { to: usize, opened: Opened },
    Timer { node: usize, life: u32 },
    Work { node: usize, life: u32, effect: Effect },
    Act(Act),
    Restart(usize),
}

pub(super) struct World<'a> {
    options: &'a Options,
    seed: u64,
    epoch: Arc<Epoch>,
    oracle: Oracle,
    now: Time,
    queue: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    nodes: Vec<Node>,
    links: Links,
    linked: BTreeSet<(usize, usize)>,
    random: Random,
    watch: Watch,
    amnesiac: Option<MemberIndex>,
    healed: Option<Time>,
    trace: blake3::Hasher,
    ended: Ended,
}

impl<'a> World<'a> {
    pub(super) fn new(seed: u64, options: &'a Options) -> Self {
        let n = options.members;
        let mut random = Random::new(seed, "world");
        let keys: Vec<_> = (0..n).map(|_| SecretKey::from_bytes(&random.bytes())).collect();
        let epoch = Arc::new(epoch(&keys, options.rounds));
        let Script { acts, byzantine, amnesiac } =
            faults::script(&mut random, n, epoch.roster.faulty(), &options.faults);
        let nodes = keys.into_iter().zip(epoch.roster.members()).map(|(key, me)| {
            let liar = byzantine.get(&me).map(|behaviours| {
                Liar::new(epoch.clone(), me, key.clone(), behaviours.clone(), seed)
            });
            Node {
                key,
                member: None,
                life: 0,
                journal: Vec::new(),
                lost: false,
                armed: None,
                shelf: Shelf::default(),
                liar,
            }
        });
        let mut world = Self {
            options,
            seed,
            oracle: Oracle::default(),
            now: Time::ZERO,
            queue: BTreeMap::new(),
            sequence: 0,
            nodes: nodes.collect(),
            links: Links::new(seed, options.faults),
            linked: BTreeSet::new(),
            random,
            watch: Watch::new(epoch.clone(), byzantine.keys().copied().collect(), Duration::ZERO),
            amnesiac,
            healed: None,
            trace: blake3::Hasher::new(),
            ended: Ended {
                time: Time::ZERO,
                views: 1,
                events: 0,
                faults: 0,
                trace: Hash([0; 32]),
                trainings: vec![0; options.rounds as usize],
            },
            epoch,
        };
        for (time, act) in acts {
            world.schedule(time, Event::Act(act));
        }
        world
    }

    pub(super) fn run(mut self) -> Result<Ended, Failure> {
        for node in 0..self.nodes.len() {
            self.start(node)?;
        }
        self.relink()?;
        while let Some((&at, _)) = self.queue.first_key_value() {
            if let Some(stuck) = self.hopeless(at.0) {
                return Err(stuck);
            }
            let Some(event) = self.queue.remove(&at) else { break };
            self.now = at.0;
            self.ended.events += 1;
            self.event(event)?;
            let done = |node: &Node| node.member.as_ref().is_some_and(Member::complete);
            if self.nodes.iter().filter(|node| node.liar.is_none()).all(done) {
                break;
            }
        }
        self.ended.time = self.now;
        self.ended.faults += self.links.played;
        self.ended.trace = Hash(*self.trace.finalize().as_bytes());
        Ok(self.ended)
    }

    /// The time that healing may take: for every round 2f + 4 views of the longest kind.
    fn hopeless(&self, at: Time) -> Option<Failure> {
        let healed = self.healed?;
        let f = self.epoch.roster.faulty() as u32;
        let view = BEAT * (2 * PATIENCE + 8 * (f + 4));
        let bound = view * (2 * f + 4) * (self.options.rounds as u32 + 2);
        if at <= healed + bound {
            return None;
        }
        let stuck: Vec<_> = self
            .nodes
            .iter()
            .zip(self.epoch.roster.silos())
            .map(|(node, silo)| match &node.member {
                Some(member) => {
                    let liar = if node.liar.is_some() { ", faulty" } else { "" };
                    let done = if member.complete() { ", complete" } else { "" };
                    format!("{} in view {}, round {}{liar}{done}", silo.name, member.view(), member.round())
                }
                None => format!("{} down", silo.name),
            })
            .collect();
        Some(Failure::NotLive {
            seed: self.seed,
            healed: healed.elapsed(),
            ended: at.elapsed(),
            stuck: stuck.join("; "),
        })
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }

    fn event(&mut self, event: Event) -> Result<(), Failure> {
        let time = (self.now - Time::ZERO).as_micros() as u64;
        self.trace.update(&time.to_le_bytes());
        match event {
            Event::Deliver { from, to, frame } => {
                self.trace.update(&[0, from as u8, to as u8]).update(&frame);
                self.deliver(from, to, &frame)
            }
            Event::Inject { to, opened } => self.feed(to, Input::Opened(opened)),
            Event::Timer { node, life } => {
                self.trace.update(&[1, node as u8]);
                let due = self.nodes[node].armed == Some(self.now) && self.nodes[node].life == life;
                if due { self.feed(node, Input::Time) } else { Ok(()) }
            }
            Event::Work { node, life, effect } => {
                self.trace.update(&[2, node as u8]);
                if self.nodes[node].life == life { self.work(node, &effect) } else { Ok(()) }
            }
            Event::Act(act) => {
                self.trace.update(&[3]);
                self.act(act)
            }
            Event::Restart(node) => {
                self.trace.update(&[4, node as u8]);
                self.start(node)?;
                self.relink()
            }
        }
    }

    fn act(&mut self, act: Act) -> Result<(), Failure> {
        self.ended.faults += 1;
        match act {
            Act::Cut(links) => self.links.cut(&links),
            Act::Mend(links) => self.links.mend(&links),
            Act::Crash(node) => return self.crash(node),
            Act::Heal => {
                self.links.heal();
                self.healed = Some(self.now);
                for node in 0..self.nodes.len() {
                    self.start(node)?;
                }
            }
        }
        self.relink()
    }

    fn start(&mut self, at: usize) -> Result<(), Failure> {
        let node = &mut self.nodes[at];
        if node.member.is_some() {
            return Ok(());
        }
        let start = if node.life == 0 || self.options.forget {
            Start::New
        } else if node.lost {
            node.journal.clear();
            Start::Lost
        } else {
            Start::Kept(node.journal.clone())
        };
        node.life += 1;
        let config = Config::new(self.epoch.clone(), MemberIndex(at as u16), node.key.clone());
        let config = self.options.alter.as_ref().map_or(config.clone(), |alter| alter(config));
        let mut effects = Vec::new();
        node.member = Some(Member::new(config, start, self.now, &mut effects));
        self.perform(at, effects)?;
        self.arm(at);
        Ok(())
    }

    fn crash(&mut self, at: usize) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        if self.nodes[at].member.take().is_none() {
            return Ok(());
        }
        self.nodes[at].life += 1;
        self.nodes[at].armed = None;
        let emptied = self.amnesiac == Some(me) && !self.nodes[at].lost;
        if emptied {
            self.amnesiac = None;
            self.nodes[at].lost = true;
            self.nodes[at].shelf = Shelf::default();
        }
        let emptied = self.nodes[at].lost;
        self.watch.crashed(self.now, me, emptied).map_err(|v| self.violated(v))?;
        let down = self.random.span(BEAT / 10, BEAT * 15);
        self.schedule(down, Event::Restart(at));
        self.relink()
    }

    /// Tells members who can be reached now. A link that is cut one way goes unnoticed.
    fn relink(&mut self) -> Result<(), Failure> {
        let up = |world: &Self, a: usize, b: usize| {
            let alive = world.nodes[a].member.is_some() && world.nodes[b].member.is_some();
            alive && (world.links.open(a, b) || world.links.open(b, a))
        };
        let n = self.nodes.len();
        for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let (was, is) = (self.linked.contains(&(a, b)), up(self, a, b));
            let peer = MemberIndex(b as u16);
            if is && !was {
                self.linked.insert((a, b));
                self.feed(a, Input::Up { peer, round_trip: self.links.round_trip() })?;
            } else if was && !is {
                self.linked.remove(&(a, b));
                self.feed(a, Input::Down { peer })?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, from: usize, to: usize, frame: &Bytes) -> Result<(), Failure> {
        let Some(member) = &self.nodes[to].member else { return Ok(()) };
        let opened = envelope::open(&self.epoch, &self.oracle, &member.known(), frame);
        let reader = MemberIndex(to as u16);
        self.watch.heard(self.now, reader, frame).map_err(|v| self.violated(v))?;
        match opened {
            Ok(opened) => match self.nodes[to].liar.as_mut() {
                None => self.feed(to, Input::Opened(opened)),
                Some(liar) => {
                    let deed = liar.incoming(opened);
                    self.do_deed(to, deed)
                }
            },
            Err(_) if self.nodes[from].liar.is_some() => Ok(()),
            Err(why) => Err(Failure::Unreadable {
                seed: self.seed,
                from: self.epoch.roster.name(MemberIndex(from as u16)).into(),
                to: self.epoch.roster.name(reader).into(),
                why: why.to_string(),
            }),
        }
    }

    fn feed(&mut self, at: usize, input: Input) -> Result<(), Failure> {
        let Some(member) = self.nodes[at].member.as_mut() else { return Ok(()) };
        let mut effects = Vec::new();
        member.step(self.now, input, &mut effects);
        self.perform(at, effects)?;
        self.arm(at);
        Ok(())
    }

    fn arm(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let deadline = node.member.as_ref().and_then(Member::deadline);
        let deadline = deadline.map(|time| time.max(self.now + Duration::from_micros(1)));
        if deadline != node.armed {
            node.armed = deadline;
            let life = node.life;
            if let Some(time) = deadline {
                self.schedule(time - self.now, Event::Timer { node: at, life });
            }
        }
    }

    fn perform(&mut self, at: usize, effects: Vec<Effect>) -> Result<(), Failure> {
        let (records, rest): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Persist(_)));
        let life = self.nodes[at].life;
        let inside = self.healed.is_none()
            && !records.is_empty()
            && self.random.chance(self.options.faults.inside);
        let late = self.random.chance(0.5);
        let (first, second) =
            if self.options.persist_last { (rest, records) } else { (records, rest) };
        if inside && !late && !self.options.persist_last {
            return self.crash(at);
        }
        for effect in first {
            self.effect(at, life, effect)?;
        }
        if inside {
            return self.crash(at);
        }
        second.into_iter().try_for_each(|effect| self.effect(at, life, effect))
    }

    fn effect(&mut self, at: usize, life: u32, effect: Effect) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        match effect {
            Effect::Persist(record) => self.keep(at, record),
            Effect::Send { to, frame } => self.say(at, Some(to), frame),
            Effect::Publish { frame } => self.say(at, None, frame),
            Effect::Report(report) => match report {
                Report::Fault(evidence) => {
                    self.watch.accused(self.now, me, &evidence).map_err(|v| self.violated(v))
                }
                Report::Entered { view, .. } => {
                    self.ended.views = self.ended.views.max(view);
                    let deed = self.nodes[at].liar.as_mut().map(|liar| liar.entered(view));
                    deed.map_or(Ok(()), |deed| self.do_deed(at, deed))
                }
                _ => Ok(()),
            },
            work => {
                let takes = work::duration(&mut self.random, &work);
                self.schedule(takes, Event::Work { node: at, life, effect: work });
                Ok(())
            }
        }
    }

    fn keep(&mut self, at: usize, record: Record) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        let signed = match &record {
            Record::Vote(message) => {
                self.nodes[at].lost = false;
                Some(message)
            }
            Record::Proposed(message) | Record::Contributed(message) => Some(message),
            _ => None,
        };
        if let Some(message) = signed {
            self.oracle.signed(&self.epoch, message);
        }
        self.watch.kept(self.now, me, &record).map_err(|v| self.violated(v))?;
        self.nodes[at].journal.push(record);
        Ok(())
    }

    /// A member says something; a liar says what it likes.
    fn say(&mut self, at: usize, to: Option<MemberIndex>, frame: Bytes) -> Result<(), Failure> {
        match self.nodes[at].liar.as_mut() {
            Some(liar) => {
                let deed = liar.outgoing(to, frame);
                self.do_deed(at, deed)
            }
            None => {
                self.oracle.sealed(&self.epoch, MemberIndex(at as u16), &frame);
                self.send(at, to, frame)
            }
        }
    }

    fn do_deed(&mut self, at: usize, deed: Deed) -> Result<(), Failure> {
        self.ended.faults += u64::from(deed.bad);
        for opened in deed.inject {
            self.schedule(Duration::ZERO, Event::Inject { to: at, opened });
        }
        deed.out.into_iter().try_for_each(|(to, frame)| self.send(at, to, frame))
    }

    fn send(&mut self, at: usize, to: Option<MemberIndex>, frame: Bytes) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        self.watch.said(self.now, me, &frame).map_err(|v| self.violated(v))?;
        let readers = match to {
            Some(to) => to.at()..to.at() + 1,
            None => 0..self.nodes.len(),
        };
        for to in readers.filter(|&to| to != at) {
            for after in self.links.arrivals(at, to) {
                let frame = frame.clone();
                self.schedule(after, Event::Deliver { from: at, to, frame });
            }
        }
        Ok(())
    }

    fn work(&mut self, at: usize, effect: &Effect) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        let mut shelf = std::mem::take(&mut self.nodes[at].shelf);
        let fetch = |blob: &Hash, holders: &[MemberIndex]| {
            self.nodes[at].liar.as_ref().is_some_and(|liar| liar.blobs.contains(blob))
                || holders.iter().any(|&holder| {
                    let node = &self.nodes[holder.at()];
                    let reached = self.links.open(at, holder.at()) && self.links.open(holder.at(), at);
                    let given = node.member.as_ref().is_some_and(|member| {
                        let liar = node.liar.as_ref();
                        liar.is_some_and(|liar| liar.blobs.contains(blob))
                            || node.shelf.outcomes.contains(blob)
                            || node.shelf.blobs.contains(blob) && member.may_serve(me, blob)
                    });
                    holder != me && reached && given
                })
        };
        let input = work::answer(me, &mut shelf, self.options.cross_evaluate, effect, &fetch);
        self.nodes[at].shelf = shelf;
        let Some(mut input) = input else { return Ok(()) };
        match (&mut input, effect) {
            (Input::Trained { round, .. }, _) if self.nodes[at].liar.is_none() => {
                self.ended.trainings[*round as usize - 1] += 1;
            }
            (Input::Decided { result: Ok(decision), .. }, _) => {
                if let Some(liar) = self.nodes[at].liar.as_mut() {
                    *decision = liar.decide(std::mem::take(decision));
                }
            }
            (Input::Applied { round, result: Ok(()) }, Effect::Apply { rounds, .. }) => {
                self.watch.applied(self.now, me, rounds).map_err(|v| self.violated(v))?;
                self.nodes[at].journal.push(Record::Applied { round: *round });
            }
            _ => {}
        }
        self.feed(at, input)
    }

    fn violated(&self, violation: Violation) -> Failure {
        Failure::Violated { seed: self.seed, violation }
    }
}

fn epoch(keys: &[SecretKey], rounds: u64) -> Epoch {
    let silos = keys
        .iter()
        .enumerate()
        .map(|(i, key)| Silo { name: format!("silo {i}"), key: key.public() })
        .collect();
    let f = (keys.len() - 1) / 3;
    let charter = Charter {
        name: "bare".into(),
        work: String::new(),
        start: Hash::of(b"start"),
        rounds,
        beat_ms: BEAT.as_millis() as u64,
        patience: PATIENCE,
        limit: 2 * PATIENCE + 8 * (f as u32 + 4),
        minimum: (2 * f + 1) as u16,
        rotation: Rotation::EveryRound,
        verification: Verification::Full,
        names_shown: false,
        blob_limit: 1 << 20,
        keep: 3,
    };
    Epoch::first(&Genesis { silos, charter }).expect("drawn keys differ, and the numbers are in range")
}
