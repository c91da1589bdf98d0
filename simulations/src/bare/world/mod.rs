//! The event loop of a bare run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::charter::Epoch;
use protocol::effects::{Effect, Input};
use protocol::envelope::{OVERHEAD, Opened};
use protocol::member::Member;
use protocol::message::Kind;
use protocol::{Hash, MemberIndex, Record, SecretKey, Time};

use crate::genesis::{BEAT, PATIENCE, epoch};
use crate::invariants::{Violation, Watch, kind};
use crate::random::Random;

use super::byzantine::{Behaviour, Liar};
use super::deaths::Death;
use super::faults::{self, Act, Script};
use super::links::Links;
use super::oracle::Oracle;
use super::work::Shelf;
use super::{Ended, Options, Wrong};

mod course;
mod dying;
mod forgetting;
mod living;
mod working;

use forgetting::Forgotten;

struct Node {
    key: SecretKey,
    member: Option<Member>,
    /// Counts lives; what belongs to an earlier one is void.
    life: u32,
    journal: Vec<Record>,
    /// Lost its journal and has not voted since.
    lost: bool,
    /// How it died, if it is dead for good.
    dead: Option<String>,
    armed: Option<Time>,
    shelf: Shelf,
    liar: Option<Liar>,
    /// What it last refused, or why it voted against a view.
    last: String,
}

impl Node {
    /// Whether the run ends only when this member has finished.
    fn counts(&self) -> bool {
        self.liar.is_none() && self.dead.is_none()
    }

    fn complete(&self) -> bool {
        self.member.as_ref().is_some_and(Member::complete)
    }
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
    /// A liar does what it does once per beat.
    Lie(usize),
}

pub(super) struct World<'a> {
    options: &'a Options,
    seed: u64,
    epoch: Arc<Epoch>,
    oracle: Arc<Oracle>,
    now: Time,
    queue: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    nodes: Vec<Node>,
    links: Links,
    linked: BTreeSet<(usize, usize)>,
    random: Random,
    watch: Watch,
    byzantine: BTreeMap<MemberIndex, Vec<Behaviour>>,
    amnesiac: Vec<MemberIndex>,
    forgotten: Forgotten,
    deaths: Vec<Death>,
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
            deaths,
        } = faults::script(&mut random, n, epoch.roster.faulty(), &options.faults);
        let oracle = Arc::new(Oracle::default());
        let nodes: Vec<_> = keys
            .into_iter()
            .zip(epoch.roster.members())
            .map(|(key, me)| {
                let liar = byzantine.get(&me).map(|behaviours| {
                    let (epoch, oracle) = (epoch.clone(), oracle.clone());
                    Liar::new(epoch, oracle, me, key.clone(), behaviours, seed)
                });
                Node {
                    key,
                    member: None,
                    life: 0,
                    journal: Vec::new(),
                    lost: false,
                    dead: None,
                    armed: None,
                    shelf: Shelf::default(),
                    liar,
                    last: String::new(),
                }
            })
            .collect();
        let mut world = Self {
            options,
            seed,
            oracle,
            now: Time::ZERO,
            queue: BTreeMap::new(),
            sequence: 0,
            nodes,
            links: Links::new(seed, options.faults),
            linked: BTreeSet::new(),
            random,
            watch: Watch::new(
                epoch.clone(),
                byzantine.keys().copied().collect(),
                Duration::ZERO,
            ),
            byzantine,
            amnesiac,
            forgotten: Forgotten::default(),
            deaths,
            healed: None,
            trace: blake3::Hasher::new(),
            ended: Ended {
                time: Time::ZERO,
                views: 1,
                events: 0,
                faults: 0,
                trace: Hash([0; 32]),
                trainings: vec![0; options.rounds as usize],
                dead: 0,
                stalled: None,
            },
            epoch,
        };
        for (time, act) in acts {
            world.schedule(time, Event::Act(act));
        }
        world
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }

    fn event(&mut self, event: Event) -> Result<(), Wrong> {
        let time = (self.now - Time::ZERO).as_micros() as u64;
        self.trace.update(&time.to_le_bytes());
        match event {
            Event::Deliver { from, to, frame } => {
                self.trace
                    .update(&[0, from as u8, to as u8])
                    .update(told(&frame));
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
            Event::Lie(node) => self.lie(node),
        }
    }

    fn act(&mut self, act: Act) -> Result<(), Wrong> {
        self.ended.faults += 1;
        match act {
            Act::Cut(links) => self.links.cut(&links),
            Act::Mend(links) => self.links.mend(&links),
            Act::Crash(node) => return self.crash(node),
            Act::Die(node) => return self.die(node, "at a drawn time"),
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
    fn relink(&mut self) -> Result<(), Wrong> {
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
}

fn violated(violation: Violation) -> Wrong {
    Wrong::Violated(violation)
}

/// What tells one frame from another: all of it if it stands alone, otherwise the part that holds
/// the signature over the rest.
fn told(frame: &Bytes) -> &[u8] {
    match kind(frame) {
        None | Some(Kind::Certificate | Kind::Evidence) => frame,
        Some(_) => &frame[..OVERHEAD.min(frame.len())],
    }
}
