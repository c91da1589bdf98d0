//! A simulated federation without faults of the network: messages arrive at once and in order, and
//! time passes only when none is under way.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::one::note;
use super::prelude::*;
use super::toy::Toys;
use crate::effects::{Case, Planned, Trained, WorkError};
use crate::identity::{PublicKey, SecretKey, SignatureClaim, Strict, Verifier};
use crate::message::{Entry, EntryFields};
use crate::parameters::privacy::Voids;
use crate::parameters::{Epoch, Genesis, ProtocolParameters, Rotation};
use crate::roster::Silo;

pub(super) const BLOB: u64 = 100;

pub(super) fn key(i: u16) -> SecretKey {
    SecretKey::from_bytes(blake3::hash(&i.to_le_bytes()).as_bytes())
}

pub(super) fn epoch(n: u16, rounds: u64) -> Arc<Epoch> {
    epoch_with(n, rounds, |_| {})
}

/// An epoch of n members with a changed parameter set.
pub(super) fn epoch_with(
    n: u16,
    rounds: u64,
    change: impl FnOnce(&mut ProtocolParameters),
) -> Arc<Epoch> {
    epoch_declaring(n, rounds, &[], change)
}

/// An epoch of n members where the first ones declare these rows, and the others none.
pub(super) fn epoch_declaring(
    n: u16,
    rounds: u64,
    declared: &[u64],
    change: impl FnOnce(&mut ProtocolParameters),
) -> Arc<Epoch> {
    let silo = |i: u16| Silo {
        name: format!("silo {i}"),
        key: key(i).public(),
        rows: declared.get(usize::from(i)).copied(),
    };
    let mut protocol = ProtocolParameters {
        work: "toy".into(),
        rounds,
        min_contributions: 2 * ((n - 1) / 3) + 1,
        blob_limit: BLOB,
        ..ProtocolParameters::small("table")
    };
    change(&mut protocol);
    Arc::new(
        Epoch::first(&Genesis {
            silos: (0..n).map(silo).collect(),
            protocol,
        })
        .unwrap(),
    )
}

/// Knows the signatures of frames that members at this table sealed themselves (that those are what
/// `envelope::sign` gives is shown by the tests of one member). Checks any other one strictly, and
/// remembers those that hold: frames have many readers, and are said again with every heartbeat.
#[derive(Default)]
struct Remembering(Mutex<BTreeSet<([u8; 64], Hash)>>);

impl Remembering {
    /// Member `i` sends this frame.
    fn sent(&self, epoch: &Epoch, i: usize, frame: &[u8]) {
        if let Some((by, statement, signature)) = envelope::claimed(frame)
            && by.at() == i
        {
            let claim = claim(&epoch.roster.silos()[i].key, &statement);
            let mut held = self.0.lock().unwrap();
            held.insert((signature.to_bytes(), claim));
        }
    }
}

fn claim(key: &PublicKey, statement: &[u8]) -> Hash {
    Hash::labelled("claim", &[&key.0, statement])
}

impl Verifier for Remembering {
    fn verify(&self, claim: &SignatureClaim<'_>) -> bool {
        let statement = self::claim(&claim.key.public(), claim.message);
        let claimed = (claim.signature.to_bytes(), statement);
        let mut held = self.0.lock().unwrap();
        held.contains(&claimed) || Strict.verify(claim) && held.insert(claimed)
    }

    fn verify_all(&self, claims: &[SignatureClaim<'_>]) -> bool {
        claims.iter().all(|claim| self.verify(claim))
    }
}

/// n members, a queue, and toy work: a plan is a hash of the state, an outcome a hash of the case.
/// Blobs are kept where they were made or fetched, and can be fetched from running members.
pub(super) struct TestFederation {
    pub(super) epoch: Arc<Epoch>,
    pub(super) members: Vec<Option<Member>>,
    pub(super) queue: VecDeque<(usize, Input)>,
    pub(super) now: Time,
    pub(super) cross_evaluate: bool,
    /// The participants of each round; None for all.
    pub(super) participants: fn(u64) -> Option<Vec<MemberIndex>>,
    /// What void sums have shown before each round.
    pub(super) voids: fn(u64) -> Voids,
    pub(super) journal: Vec<Vec<Record>>,
    /// Blobs that each member keeps.
    pub(super) shelves: Vec<BTreeSet<Hash>>,
    /// The member that serves its own model to no other.
    pub(super) secretive: BTreeSet<usize>,
    steps: usize,
    verifier: Remembering,
    pub(super) reports: Vec<(usize, Report)>,
    pub(super) trainings: usize,
    /// What members keep of masked rounds.
    pub(super) toys: Toys,
    /// Frames for which this returns true are lost.
    pub(super) lost: fn(usize, &Message) -> bool,
}

impl TestFederation {
    pub(super) fn new(n: u16, rounds: u64, cross_evaluate: bool) -> Self {
        Self::of(epoch(n, rounds), cross_evaluate)
    }

    /// A federation under another rotation.
    pub(super) fn under(rotation: Rotation, n: u16, rounds: u64) -> Self {
        Self::of(
            epoch_with(n, rounds, |protocol| protocol.rotation = rotation),
            true,
        )
    }

    pub(super) fn of(epoch: Arc<Epoch>, cross_evaluate: bool) -> Self {
        let n = epoch.roster.len() as u16;
        let mut table = Self {
            members: (0..n).map(|_| None).collect(),
            journal: vec![Vec::new(); usize::from(n)],
            epoch,
            queue: VecDeque::new(),
            now: Time::ZERO,
            cross_evaluate,
            participants: |_| None,
            voids: |_| Voids::default(),
            shelves: vec![BTreeSet::new(); usize::from(n)],
            secretive: BTreeSet::new(),
            steps: 0,
            verifier: Remembering::default(),
            reports: Vec::new(),
            trainings: 0,
            toys: Toys::default(),
            lost: |_, _| false,
        };
        for i in 0..usize::from(n) {
            table.start(i, Start::New);
        }
        table
    }

    pub(super) fn start(&mut self, i: usize, start: Start) {
        let me = MemberIndex(i as u16);
        let config = Config::new(self.epoch.clone(), me, key(i as u16), [i as u8; 32]);
        let mut effects = Vec::new();
        self.members[i] = Some(Member::new(config, start, self.now, &mut effects));
        self.carry_out(i, effects);
        for other in 0..self.members.len() {
            if other != i && self.members[other].is_some() {
                for (at, peer) in [(i, other), (other, i)] {
                    let peer = MemberIndex(peer as u16);
                    let round_trip = Duration::from_millis(20);
                    self.queue.push_back((at, Input::Up { peer, round_trip }));
                }
            }
        }
    }

    pub(super) fn deliver(&mut self, to: usize, frame: &Bytes) {
        let Some(member) = &self.members[to] else {
            return;
        };
        match envelope::open(&self.epoch, &self.verifier, &member.known(), frame).unwrap() {
            Opened::Message(message) if (self.lost)(to, &message) => {}
            opened => self.queue.push_back((to, Input::Opened(opened))),
        }
    }

    /// Whether a member has a blob, after asking these others for it.
    pub(super) fn fetch(&mut self, i: usize, blob: Hash, holders: &[MemberIndex]) -> bool {
        let by = MemberIndex(i as u16);
        let gives = |table: &Self, holder: usize| {
            let lives = table.members[holder].as_ref();
            let has = table.shelves[holder].contains(&blob);
            has && !table.secretive.contains(&holder)
                && lives.is_some_and(|member| member.may_serve(by, &blob))
        };
        let here = self.shelves[i].contains(&blob)
            || holders.iter().any(|holder| gives(self, holder.at()));
        if here {
            self.shelves[i].insert(blob);
        }
        here
    }

    pub(super) fn fetch_all(
        &mut self,
        i: usize,
        entries: &[Entry],
        holders: &[MemberIndex],
    ) -> Result<(), WorkError> {
        let all = entries
            .iter()
            .all(|entry| self.fetch(i, entry.fields.blob, holders));
        all.then_some(()).ok_or(WorkError::Unavailable)
    }

    pub(super) fn carry_out(&mut self, i: usize, effects: Vec<Effect>) {
        for effect in effects {
            let answer = match effect {
                Effect::Send { to, frame } => {
                    self.verifier.sent(&self.epoch, i, &frame);
                    self.deliver(to.at(), &frame);
                    continue;
                }
                Effect::Publish { frame } => {
                    self.verifier.sent(&self.epoch, i, &frame);
                    for to in (0..self.members.len()).filter(|&to| to != i) {
                        self.deliver(to, &frame);
                    }
                    continue;
                }
                Effect::Persist(record) => {
                    self.journal[i].push(record);
                    continue;
                }
                Effect::EpochOver(_) | Effect::Await { .. } => continue,
                Effect::Report(report) => {
                    note(&report);
                    self.reports.push((i, report));
                    continue;
                }
                Effect::Work(Request::Plan { round, state }) => {
                    Input::Done(Answer::Planned(Planned {
                        round,
                        plan: Hash::labelled("plan", &[&state.0]),
                        participants: (self.participants)(round),
                        cross_evaluate: self.cross_evaluate,
                        weights: false,
                        blob_size: BLOB,
                        voids: (self.voids)(round),
                    }))
                }
                Effect::Work(Request::Train { round }) => {
                    self.trainings += 1;
                    let blob = Hash::labelled("model", &[&round.to_le_bytes(), &[i as u8]]);
                    self.shelves[i].insert(blob);
                    Input::Done(Answer::Trained {
                        round,
                        result: Ok(trained(blob)),
                    })
                }
                Effect::Work(Request::Admit {
                    round,
                    fields,
                    from,
                }) => {
                    let here = self.fetch(i, fields.blob, &[from]);
                    Input::Done(Answer::Admitted {
                        round,
                        from,
                        fields,
                        result: here.then_some(()).ok_or(WorkError::Unavailable),
                    })
                }
                Effect::Work(Request::Hold {
                    round,
                    entries,
                    holders,
                }) => Input::Done(Answer::Held {
                    round,
                    blobs: entries.iter().map(|entry| entry.fields.blob).collect(),
                    result: self.fetch_all(i, &entries, &holders),
                }),
                Effect::Work(Request::Keep { round, outcome, .. }) => Input::Done(Answer::Kept {
                    round,
                    outcome,
                    result: Ok(()),
                }),
                Effect::Work(Request::Evaluate {
                    round,
                    entries,
                    holders,
                }) => {
                    let loss = |entry: &Entry| (entry.fields.blob, i as f64);
                    let here = self.fetch_all(i, &entries, &holders);
                    Input::Done(Answer::Evaluated {
                        round,
                        result: here.map(|()| entries.iter().map(loss).collect()),
                    })
                }
                Effect::Work(Request::Decide {
                    manifest, holders, ..
                }) => {
                    let root = manifest.root();
                    let here = self.fetch_all(i, &manifest.entries, &holders);
                    Input::Done(Answer::Decided {
                        manifest: root,
                        result: here.map(|()| root.0.to_vec()),
                    })
                }
                Effect::Work(Request::Check { case, holders }) => {
                    let honest = case.manifest.root().0 == *case.decision;
                    let refused = WorkError::Refused("a better decision exists".into());
                    let here = self.fetch_all(i, &case.manifest.entries, &holders);
                    Input::Done(Answer::Checked {
                        case: case.id(),
                        result: here.and(honest.then_some(()).ok_or(refused)),
                    })
                }
                Effect::Work(Request::Settle { case, holders }) => {
                    let here = self.fetch_all(i, &case.manifest.entries, &holders);
                    let settled = outcome(&case);
                    if here.is_ok() {
                        self.shelves[i].insert(settled);
                    }
                    Input::Done(Answer::Settled {
                        case: case.id(),
                        result: here.map(|()| settled),
                    })
                }
                Effect::Work(
                    request @ (Request::Prepare { .. }
                    | Request::CheckKeys { .. }
                    | Request::Mask { .. }
                    | Request::Verify { .. }
                    | Request::Unmask { .. }
                    | Request::Combine { .. }),
                ) => Input::Done(self.toy(i, request)),
                Effect::Work(Request::Apply { rounds, holders }) => {
                    let last = rounds.last().unwrap();
                    let (round, blob) = (last.round, last.outcome);
                    let here = self.fetch(i, blob, &holders);
                    if here {
                        self.journal[i].push(Record::Applied { round });
                    }
                    Input::Done(Answer::Applied {
                        round,
                        ends: false,
                        result: here.then_some(()).ok_or(WorkError::Unavailable),
                    })
                }
            };
            self.queue.push_back((i, answer));
        }
    }

    /// A member crashes for good; the others notice that it is down.
    pub(super) fn kill(&mut self, i: usize) {
        self.members[i] = None;
        let peer = MemberIndex(i as u16);
        for other in 0..self.members.len() {
            self.queue.push_back((other, Input::Down { peer }));
        }
    }

    /// A member starts again with its journal.
    pub(super) fn restart(&mut self, i: usize) {
        self.start(i, Start::Kept(self.journal[i].clone()));
    }

    /// The lead of the current view as each running member knows it.
    pub(super) fn leads(&self) -> Vec<MemberIndex> {
        let running = self.members.iter().flatten();
        running.map(Member::lead_now).collect()
    }

    /// Delivers messages until none is under way.
    pub(super) fn run(&mut self) {
        while let Some((to, input)) = self.queue.pop_front() {
            self.step(to, input);
        }
    }

    /// Runs until a member is in that round.
    pub(super) fn run_to_round(&mut self, round: u64) {
        let there = |member: &Member| member.round() >= round;
        self.pass_while(200, |table| !table.members.iter().flatten().any(there));
    }

    pub(super) fn step(&mut self, to: usize, input: Input) {
        self.steps += 1;
        assert!(self.steps < 1_000_000, "a million steps: {}", self.stuck());
        let Some(member) = &mut self.members[to] else {
            return;
        };
        let mut effects = Vec::new();
        member.step(self.now, input, &mut effects);
        self.carry_out(to, effects);
    }

    /// Lets time pass until all members are complete and no timer runs; at most `heartbeats`.
    pub(super) fn pass(&mut self, heartbeats: u32) {
        self.run();
        let waits = |member: &Member| !member.complete() || member.deadline().is_some();
        self.pass_while(heartbeats, |table| {
            table.members.iter().flatten().any(waits)
        });
        self.run();
    }

    /// Lets time pass while the condition holds; at most `heartbeats`.
    pub(super) fn pass_while(&mut self, heartbeats: u32, holds: impl Fn(&Self) -> bool) {
        let end = self.now + self.epoch.heartbeat() * heartbeats;
        while holds(self) {
            if let Some((to, input)) = self.queue.pop_front() {
                self.step(to, input);
                continue;
            }
            let deadlines = self.members.iter().flatten().filter_map(Member::deadline);
            let Some(due) = deadlines.min().filter(|&due| due <= end) else {
                panic!("stuck at {:?}: {}", self.now, self.stuck());
            };
            self.now = due;
            for i in 0..self.members.len() {
                let due = self.members[i].as_ref().and_then(Member::deadline);
                if due.is_some_and(|due| due <= self.now) {
                    self.step(i, Input::Time);
                }
            }
        }
    }

    /// The state of all members and the last reports, for failure messages.
    pub(super) fn stuck(&self) -> String {
        let at = |member: &Option<Member>| {
            let living = member.as_ref();
            living.map(|member| (member.view(), member.round(), member.complete()))
        };
        let at: Vec<_> = self.members.iter().map(at).collect();
        let last: Vec<_> = self.reports.iter().rev().take(40).collect();
        format!("view, round, complete: {at:?}; the last reports, newest first: {last:#?}")
    }

    pub(super) fn finals(&self, i: usize) -> Vec<(u64, u64)> {
        let of = |report: &Report| match report {
            Report::Final { round, view, .. } => Some((*round, *view)),
            _ => None,
        };
        self.reports
            .iter()
            .filter(|(at, _)| *at == i)
            .filter_map(|(_, r)| of(r))
            .collect()
    }

    pub(super) fn chains_agree(&self) {
        let chains: Vec<Vec<_>> = self
            .members
            .iter()
            .flatten()
            .map(|member| {
                member
                    .consensus
                    .chain
                    .history
                    .iter()
                    .map(|(block, _)| block.hash())
                    .collect()
            })
            .collect();
        assert!(
            chains.windows(2).all(|pair| pair[0] == pair[1]),
            "{chains:?}"
        );
    }
}

pub(super) fn outcome(case: &Case) -> Hash {
    Hash::labelled("outcome", &[&case.id().0])
}

/// The result of training.
pub(super) fn trained(blob: Hash) -> Trained {
    let fields = EntryFields {
        blob,
        size: BLOB,
        coalition: None,
        weight: None,
        member: None,
    };
    Trained {
        fields,
        metrics: vec![],
    }
}
