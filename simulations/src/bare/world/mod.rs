//! The event loop of a bare run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::charter::{Charter, Epoch, Genesis, Rotation, Verification};
use protocol::effects::{Effect, Input};
use protocol::envelope::Opened;
use protocol::member::Member;
use protocol::roster::Silo;
use protocol::{Hash, MemberIndex, Record, SecretKey, Time};

use crate::invariants::{Violation, Watch};
use crate::random::Random;

use super::byzantine::Liar;
use super::faults::{self, Act, Script};
use super::links::Links;
use super::oracle::Oracle;
use super::work::Shelf;
use super::{Ended, Failure, Options};

mod living;

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
    Deliver {
        from: usize,
        to: usize,
        frame: Bytes,
    },
    Inject {
        to: usize,
        opened: Opened,
    },
    Timer {
        node: usize,
        life: u32,
    },
    Work {
        node: usize,
        life: u32,
        effect: Effect,
    },
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
        let keys: Vec<_> = (0..n)
            .map(|_| SecretKey::from_bytes(&random.bytes()))
            .collect();
        let epoch = Arc::new(epoch(&keys, options.rounds));
        let Script {
            acts,
            byzantine,
            amnesiac,
        } = faults::script(&mut random, n, epoch.roster.faulty(), &options.faults);
        let nodes = keys
            .into_iter()
            .zip(epoch.roster.members())
            .map(|(key, me)| {
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
            watch: Watch::new(
                epoch.clone(),
                byzantine.keys().copied().collect(),
                Duration::ZERO,
            ),
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
            let Some(event) = self.queue.remove(&at) else {
                break;
            };
            self.now = at.0;
            self.ended.events += 1;
            self.event(event)?;
            let done = |node: &Node| node.member.as_ref().is_some_and(Member::complete);
            if self
                .nodes
                .iter()
                .filter(|node| node.liar.is_none())
                .all(done)
            {
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
                    format!(
                        "{} in view {}, round {}{liar}{done}",
                        silo.name,
                        member.view(),
                        member.round()
                    )
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
                if due {
                    self.feed(node, Input::Time)
                } else {
                    Ok(())
                }
            }
            Event::Work { node, life, effect } => {
                self.trace.update(&[2, node as u8]);
                if self.nodes[node].life == life {
                    self.work(node, &effect)
                } else {
                    Ok(())
                }
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

    /// Tells members who can be reached now. A link that is cut one way goes unnoticed.
    fn relink(&mut self) -> Result<(), Failure> {
        let up = |world: &Self, a: usize, b: usize| {
            let alive = world.nodes[a].member.is_some() && world.nodes[b].member.is_some();
            alive && (world.links.open(a, b) || world.links.open(b, a))
        };
        let n = self.nodes.len();
        for (a, b) in (0..n)
            .flat_map(|a| (0..n).map(move |b| (a, b)))
            .filter(|(a, b)| a != b)
        {
            let (was, is) = (self.linked.contains(&(a, b)), up(self, a, b));
            let peer = MemberIndex(b as u16);
            if is && !was {
                self.linked.insert((a, b));
                self.feed(
                    a,
                    Input::Up {
                        peer,
                        round_trip: self.links.round_trip(),
                    },
                )?;
            } else if was && !is {
                self.linked.remove(&(a, b));
                self.feed(a, Input::Down { peer })?;
            }
        }
        Ok(())
    }

    fn violated(&self, violation: Violation) -> Failure {
        Failure::Violated {
            seed: self.seed,
            violation,
        }
    }
}

fn epoch(keys: &[SecretKey], rounds: u64) -> Epoch {
    let silos = keys
        .iter()
        .enumerate()
        .map(|(i, key)| Silo {
            name: format!("silo {i}"),
            key: key.public(),
        })
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
        discovery: false,
    };
    Epoch::first(&Genesis { silos, charter })
        .expect("drawn keys differ, and the numbers are in range")
}
