//! The simulator of bare members: its state and event loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::effects::{Input, Request};
use protocol::envelope::{OVERHEAD, Opened};
use protocol::member::Member;
use protocol::message::{Amendment, Change};
use protocol::parameters::{Group, Masked, Noise, Privacy, Real, Release, Sums, Unit};
use protocol::{Hash, MemberIndex, PublicKey, Record, SecretKey, Time};

use crate::byzantine::{Behaviour, ByzantineMember};
use crate::genesis::{HEARTBEAT, PATIENCE, epoch_of};
use crate::invariants::{Violation, kind};
use crate::random::Random;
use crate::signatures::KnownSignatures;

use super::deaths::Death;
use super::draws::SentDraws;
use super::faults::{self, Script, ScriptedFault};
use super::links::BareLinks;
use super::masks::BareMasks;
use super::symbolic::Symbolic;
use super::voids::BareVoids;
use super::work::MemberStore;
use super::{BareOptions, Ended, FailureKind};

mod deaths;
mod epochs;
mod give_up;
mod lost_journals;
mod masked;
mod members;
mod people;
mod put_back;
mod recoveries;
mod run;
mod scripted;
mod story;
mod twins;
mod work;

use epochs::EpochRun;
use lost_journals::LostJournals;
use masked::Unsettled;
use people::ApprovalOrder;
use recoveries::Wish;
use scripted::MemberKill;

struct BareNode {
    /// Keys of the node, oldest first: one, unless it was replaced.
    keys: Vec<SecretKey>,
    /// The epoch that the node is in.
    epoch: usize,
    /// What the node's institution said of amendments, oldest first.
    orders: Vec<ApprovalOrder>,
    member: Option<Member>,
    /// Counts starts and stops: events from before the last one are void.
    restarts: u32,
    journal: Vec<Record>,
    /// True if the node lost its journal and has not signed anything since.
    lost: bool,
    /// Number of times that the node made something durable.
    commits: u64,
    /// How the node died, if it is dead for good.
    dead: Option<String>,
    timer: Option<Time>,
    store: MemberStore,
    byzantine: Option<ByzantineMember>,
    /// True if the others want to go on without this node.
    given_up: bool,
    /// True if the node cannot start.
    away: bool,
    /// What the node's institution last said of members that are gone.
    wish: Option<Wish>,
    /// When this node last answered another in another epoch, by node.
    answered: BTreeMap<usize, Time>,
    /// The last reason why it refused something or voted against a view.
    last: String,
}

impl BareNode {
    fn new(key: SecretKey) -> Self {
        Self {
            keys: vec![key],
            epoch: 0,
            orders: Vec::new(),
            member: None,
            restarts: 0,
            journal: Vec::new(),
            lost: false,
            commits: 0,
            dead: None,
            timer: None,
            store: MemberStore::default(),
            byzantine: None,
            given_up: false,
            away: false,
            wish: None,
            answered: BTreeMap::new(),
            last: String::new(),
        }
    }

    /// Returns whether the run ends only when this member has finished.
    fn must_finish(&self) -> bool {
        self.byzantine.is_none() && self.dead.is_none() && !self.given_up
    }

    fn complete(&self) -> bool {
        self.member.as_ref().is_some_and(Member::complete)
    }
}

/// The result of a run of which nothing has happened yet.
fn begun(rounds: u64) -> Ended {
    Ended {
        time: Time::ZERO,
        views: 1,
        events: 0,
        faults: 0,
        trace: Hash([0; 32]),
        trainings: vec![0; rounds as usize],
        epochs: 1,
        dead: 0,
        accused: 0,
        put_back: 0,
        outdated: 0,
        named: BTreeSet::new(),
        void: 0,
        suspended: 0,
        alone: BTreeSet::new(),
        byzantine: BTreeSet::new(),
        stalled: None,
    }
}

enum BareEvent {
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
        restarts: u32,
    },
    Work {
        node: usize,
        restarts: u32,
        request: Request,
    },
    Fault(ScriptedFault),
    Restart(usize),
    /// A Byzantine member's heartbeat.
    ByzantineHeartbeat(usize),
    /// The institutions agree on a change of the agreement.
    Amend(u32),
    /// An institution approves an amendment of an epoch, or does not any more.
    Say {
        node: usize,
        epoch: usize,
        amendment: Box<Amendment>,
        stands: bool,
    },
    /// An institution that waits to be admitted asks a member.
    Visit(usize),
    /// A node that is no member any more tells the others that the epoch is over.
    Farewell(usize),
    /// A node stops, perhaps for good.
    Vanish(usize),
    /// A node that stopped is back.
    Return(usize),
    /// An institution looks whether its node has a round that it gives up.
    GiveUp(usize),
    /// An institution wants to go on without these nodes. `abandon`: also if its node has confirmed to go
    /// on with some of them.
    Recover {
        node: usize,
        lost: Vec<usize>,
        abandon: bool,
    },
    /// The node of a new member, or of one with a new key, connects to a member that waits for it.
    Arrives {
        node: usize,
        restarts: u32,
        key: PublicKey,
    },
}

pub(super) struct Simulator<'a> {
    options: &'a BareOptions,
    seed: u64,
    /// The epochs so far.
    epochs: Vec<EpochRun>,
    /// Number of members that may be faulty in any way.
    flaws: usize,
    signatures: Arc<KnownSignatures>,
    now: Time,
    queue: BTreeMap<(Time, u64), BareEvent>,
    sequence: u64,
    nodes: Vec<BareNode>,
    links: BareLinks,
    linked: BTreeSet<(usize, usize)>,
    random: Random,
    byzantine: BTreeMap<MemberIndex, Vec<Behaviour>>,
    /// The other process of a node that has a twin, both ways.
    twins: BTreeMap<usize, usize>,
    /// Members against which an honest one has evidence, with their epochs.
    accused: BTreeSet<(usize, MemberIndex)>,
    losing_journals: Vec<MemberIndex>,
    lost_journals: LostJournals,
    /// Nodes whose journals were put back from some records ago.
    put_back: BTreeSet<usize>,
    /// Nodes that noticed that their journal is outdated, with their epochs.
    outdated: BTreeSet<(usize, usize)>,
    masks: BareMasks,
    voids: BareVoids,
    symbolic: Symbolic,
    draws: SentDraws,
    /// Secure-aggregation rounds that are final for a node, and whose outcome is not certified there.
    unsettled: Vec<Unsettled>,
    /// Changes of the agreement that were proposed, by block.
    proposed: BTreeMap<Hash, Change>,
    deaths: Vec<Death>,
    /// Scripted stops at moments of a round and at commits.
    kills: Vec<MemberKill>,
    healed: Option<Time>,
    /// When the last institution has decided what to approve, and to go on without those that are gone.
    decided: Time,
    trace: blake3::Hasher,
    ended: Ended,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(seed: u64, options: &'a BareOptions) -> Self {
        let n = options.members;
        let mut random = Random::new(seed, "world");
        let signatures = Arc::new(KnownSignatures::default());
        let keys: Vec<_> = (0..n)
            .map(|_| options.key(&mut random, &signatures))
            .collect();
        let privacy = match options.fewest_authors {
            Some(fewest) => noised(fewest, options.colluders),
            None if options.groups.is_empty() => Privacy::Clear,
            None => privacy_of(&options.groups, options.colluders),
        };
        let epoch = Arc::new(epoch_of(
            &keys,
            options.rounds,
            options.rotation,
            options.verification,
            privacy,
        ));
        let Script {
            timed,
            byzantine,
            losing_journals,
            deaths,
        } = faults::script(&mut random, n, epoch.roster.faulty(), &options.faults);
        let mut simulator = Self {
            options,
            seed,
            epochs: Vec::new(),
            flaws: faults::bearable(n) + options.faults.beyond,
            signatures,
            now: Time::ZERO,
            queue: BTreeMap::new(),
            sequence: 0,
            nodes: keys.into_iter().map(BareNode::new).collect(),
            links: BareLinks::new(seed, options.faults),
            linked: BTreeSet::new(),
            random,
            byzantine,
            twins: BTreeMap::new(),
            accused: BTreeSet::new(),
            losing_journals,
            lost_journals: LostJournals::default(),
            put_back: BTreeSet::new(),
            outdated: BTreeSet::new(),
            masks: BareMasks::new(options.broken_masks),
            voids: BareVoids::default(),
            symbolic: Symbolic::default(),
            draws: SentDraws::default(),
            unsettled: Vec::new(),
            proposed: BTreeMap::new(),
            deaths,
            kills: Vec::new(),
            healed: None,
            decided: Time::ZERO,
            trace: blake3::Hasher::new(),
            ended: begun(options.rounds),
        };
        simulator.plan_script();
        simulator.add_epoch(epoch);
        for node in 0..n {
            simulator.pass_to(node, 0);
        }
        for (time, fault) in timed {
            simulator.schedule(time, BareEvent::Fault(fault));
        }
        if options.recoveries {
            simulator.plan_recovery();
        }
        if options.gives_up {
            simulator.plan_give_up();
        }
        let mut changes = Random::new(seed, "changes");
        for which in 0..options.changes {
            let time = options.faults.until.mul_f64(changes.uniform());
            simulator.schedule(time, BareEvent::Amend(which));
        }
        simulator
    }

    fn schedule(&mut self, after: Duration, event: BareEvent) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }

    fn event(&mut self, event: BareEvent) -> Result<(), FailureKind> {
        let time = (self.now - Time::ZERO).as_micros() as u64;
        self.trace.update(&time.to_le_bytes());
        match event {
            BareEvent::Deliver { from, to, frame } => {
                self.trace.update(&[0, from as u8, to as u8]);
                for part in trace_bytes(&frame) {
                    self.trace.update(part);
                }
                self.deliver(from, to, &frame)
            }
            BareEvent::Inject { to, opened } => self.feed(to, Input::Opened(opened)),
            BareEvent::Timer { node, restarts } => {
                self.trace.update(&[1, node as u8]);
                let due = self.nodes[node].timer == Some(self.now);
                if due && self.nodes[node].restarts == restarts {
                    self.feed(node, Input::Time)
                } else {
                    Ok(())
                }
            }
            BareEvent::Work {
                node,
                restarts,
                request,
            } => {
                self.trace.update(&[2, node as u8]);
                if self.nodes[node].restarts == restarts {
                    self.work(node, &request)
                } else {
                    Ok(())
                }
            }
            BareEvent::Fault(fault) => {
                self.trace.update(&[3]);
                self.play(fault)
            }
            BareEvent::Restart(node) => {
                self.trace.update(&[4, node as u8]);
                self.start(node)?;
                self.relink()
            }
            BareEvent::ByzantineHeartbeat(node) => self.byzantine_heartbeat(node),
            BareEvent::Amend(which) => {
                self.trace.update(&[5]);
                self.amend(which)
            }
            BareEvent::Say {
                node,
                epoch,
                amendment,
                stands,
            } => {
                self.trace.update(&[6, node as u8]);
                self.say(node, epoch, *amendment, stands)
            }
            BareEvent::Visit(node) => self.visit(node),
            BareEvent::Farewell(node) => {
                self.farewell(node);
                Ok(())
            }
            BareEvent::Vanish(node) => self.vanish(node),
            BareEvent::Return(node) => self.come_back(node),
            BareEvent::Arrives {
                node,
                restarts,
                key,
            } => {
                if self.nodes[node].restarts == restarts {
                    self.feed(node, Input::Arrived { key })
                } else {
                    Ok(())
                }
            }
            BareEvent::Recover {
                node,
                lost,
                abandon,
            } => self.told_to_recover(node, lost, abandon),
            BareEvent::GiveUp(node) => self.told_to_give_up(node),
        }
    }

    fn play(&mut self, fault: ScriptedFault) -> Result<(), FailureKind> {
        self.ended.faults += 1;
        self.tell(None, || format!("fault: {}", fault.sentence()));
        match fault {
            ScriptedFault::Cut(links) => self.links.cuts.cut(&links),
            ScriptedFault::Mend(links) => self.links.cuts.mend(&links),
            ScriptedFault::Crash(node) => return self.crash(node),
            ScriptedFault::Twin { of, copied } => self.add_twin(of, copied)?,
            ScriptedFault::Kill {
                who,
                back,
                journal_lost,
            } => return self.kill(who.unwrap_or(self.lead_of_all()), back, journal_lost),
            ScriptedFault::Die(node) => return self.die(node, "at a drawn time"),
            ScriptedFault::Heal => {
                self.links.heal();
                self.healed = Some(self.now);
                for node in 0..self.nodes.len() {
                    self.start(node)?;
                }
            }
        }
        self.relink()
    }

    /// Notifies members whose connections changed. A link that is cut in one direction goes
    /// unnoticed.
    fn relink(&mut self) -> Result<(), FailureKind> {
        let up = |simulator: &Self, a: usize, b: usize| {
            let alive = simulator.nodes[a].member.is_some() && simulator.nodes[b].member.is_some();
            alive && (simulator.links.cuts.open(a, b) || simulator.links.cuts.open(b, a))
        };
        let n = self.nodes.len();
        for (a, b) in (0..n)
            .flat_map(|a| (0..n).map(move |b| (a, b)))
            .filter(|(a, b)| a != b && !self.are_twins(*a, *b))
            .collect::<Vec<_>>()
        {
            let (was, is) = (self.linked.contains(&(a, b)), up(self, a, b));
            let run = &self.epochs[self.nodes[a].epoch];
            let peer = run.nodes.iter().position(|&node| node == self.first_of(b));
            let Some(peer) = peer.map(|peer| MemberIndex(peer as u16)) else {
                // Not a member for it. It is linked anew when it is.
                self.linked.remove(&(a, b));
                continue;
            };
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

/// The agreement on sums with noise of so many authors at least. What the noise is does not matter here.
fn noised(smallest_sum: u16, colluders: usize) -> Privacy {
    Privacy::Masked(Masked {
        colluders: colluders as u16,
        shows: Vec::new(),
        smallest_sum,
        sums: Sums::Noised(Noise {
            release: Release::Steps,
            unit: Unit::Row,
            clip: Real::new(1.0),
            z: Real::new(1.0),
            delta: Real::new(1e-5),
        }),
    })
}

/// The agreement on secure-aggregation rounds of these groups, with equal weights.
fn privacy_of(groups: &[Vec<usize>], colluders: usize) -> Privacy {
    let group = |members: &Vec<usize>| {
        let named = members.iter().map(|node| (format!("silo {node}"), 1));
        let mut authors: Vec<_> = named.collect();
        authors.sort();
        Group { authors }
    };
    Privacy::Masked(Masked {
        colluders: colluders as u16,
        shows: Vec::new(),
        smallest_sum: 3,
        sums: Sums::Groups(groups.iter().map(group).collect()),
    })
}

fn violated(violation: Violation) -> FailureKind {
    FailureKind::Violated(violation)
}

/// The parts of a frame that identify it in the trace: the header and the signature. A frame without a
/// sender ends in a signature: the last of those that prove it.
fn trace_bytes(frame: &Bytes) -> [&[u8]; 2] {
    let (head, body) = frame.split_at(OVERHEAD.min(frame.len()));
    match kind(frame) {
        Some(kind) if kind.has_sender() => [head, &[]],
        _ => [head, &body[body.len().saturating_sub(64)..]],
    }
}
