//! Starts the silos of a federation, plays the scripted faults, and waits until the federation is
//! complete.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use protocol::certificate::Verdict;
use protocol::message::Phase;
use protocol::{Hash, MemberIndex, Report, Time};
use silo::outcome::genesis;
use silo::rounds::RoundBase;
use silo::{Notice, SeededSecrets, SiloHandle, Stopped, spawn};
use tokio::time::sleep_until;

use crate::contributions::AuthorMerges;
use crate::environment::{EnvironmentFactory, Own};
use crate::error::RunError;
use crate::federation::{Federation, life};
use crate::options::RoundDone;
use crate::record::{Led, Mark, SiloStop};
use crate::recorder::{Recorder, Signal};
use crate::scenario::{Fault, FaultTime, KillTarget};
use bare::Moment;
use bare::cuts::split;

/// An action that is scheduled for a time.
enum Action {
    Kill(MemberIndex, Restart),
    Start(MemberIndex),
    Cut(Vec<(usize, usize)>),
    Mend(Vec<(usize, usize)>),
}

/// How a silo that was killed restarts.
#[derive(Debug, Clone, Copy)]
struct Restart {
    after: Option<Duration>,
    journal_lost: bool,
}

/// The state of a silo as the director knows it.
#[derive(Default)]
struct Actor {
    handle: Option<SiloHandle>,
    /// Number of times that the silo was started.
    starts: u64,
    complete: bool,
    /// Killed without a restart.
    stopped_for_good: bool,
    journal_lost: bool,
    /// How the silo restarts after its journal fails as scripted.
    back: Option<Restart>,
    view: u64,
    lead: Option<MemberIndex>,
    round: u64,
    /// The last round in which the silo's training failed.
    failed: Option<u64>,
}

/// A run that has ended.
pub(crate) struct Directed<'a> {
    pub(crate) environment: Box<dyn EnvironmentFactory + 'a>,
    /// True if every silo that follows the protocol was complete, except those killed without a restart.
    pub(crate) complete: bool,
    pub(crate) stops: Vec<SiloStop>,
    pub(crate) marks: Vec<Mark>,
}

/// Directs one run of a federation.
pub(crate) struct Director<'a> {
    federation: &'a Federation,
    environment: Box<dyn EnvironmentFactory + 'a>,
    recorder: Recorder,
    actors: Vec<Actor>,
    actions: BTreeMap<(Duration, usize), Action>,
    sequence: usize,
    kills: Vec<(u64, Moment, Option<MemberIndex>, Restart)>,
    /// The round and the lead of every view that came to a vote.
    voted: BTreeMap<u64, (u64, MemberIndex)>,
    done: u64,
    stops: Vec<SiloStop>,
    marks: Vec<Mark>,
}

impl<'a> Director<'a> {
    pub(crate) fn new(
        federation: &'a Federation,
        environment: Box<dyn EnvironmentFactory + 'a>,
        recorder: Recorder,
        faults: &[Fault],
    ) -> Result<Self, RunError> {
        let mut director = Self {
            federation,
            environment,
            recorder,
            actors: federation
                .members
                .iter()
                .map(|_| Actor::default())
                .collect(),
            actions: BTreeMap::new(),
            sequence: 0,
            kills: Vec::new(),
            voted: BTreeMap::new(),
            done: 0,
            stops: Vec::new(),
            marks: Vec::new(),
        };
        faults
            .iter()
            .try_for_each(|fault| director.add_fault(fault))?;
        Ok(director)
    }

    fn add_fault(&mut self, fault: &Fault) -> Result<(), RunError> {
        match fault {
            Fault::Kill {
                who,
                when,
                restart_after,
                journal_lost,
            } => {
                let back = Restart {
                    after: *restart_after,
                    journal_lost: *journal_lost,
                };
                let who = match who {
                    KillTarget::Lead => None,
                    KillTarget::Silo(name) => Some(self.federation.member(name)?),
                };
                match (*when, who) {
                    (FaultTime::Round { round, moment }, who) => {
                        self.kills.push((round, moment, who, back));
                    }
                    (FaultTime::At(time), Some(member)) => {
                        self.schedule(time, Action::Kill(member, back))
                    }
                    (FaultTime::At(time), None) => {
                        // Who leads at that time is known only then.
                        self.schedule(time, Action::Kill(MemberIndex(u16::MAX), back));
                    }
                    (FaultTime::Commit { nth, cut }, Some(member)) => {
                        self.environment.fail_commit(member, nth, cut);
                        self.actors[member.at()].back = Some(back);
                    }
                    (FaultTime::Commit { .. }, None) => {}
                }
            }
            Fault::Split {
                members,
                at,
                lasts,
                one_way,
            } => {
                let apart = members
                    .iter()
                    .map(|name| self.federation.member(name).map(MemberIndex::at))
                    .collect::<Result<Vec<_>, _>>()?;
                let links = split(self.actors.len(), *one_way, |silo| apart.contains(&silo));
                self.schedule(*at, Action::Cut(links.clone()));
                self.schedule(*at + *lasts, Action::Mend(links));
            }
            Fault::Byzantine { .. } => {}
        }
        Ok(())
    }

    fn schedule(&mut self, at: Duration, action: Action) {
        self.sequence += 1;
        self.actions.insert((at, self.sequence), action);
    }

    /// Runs until every silo that follows the protocol is complete, except those that were killed without a
    /// restart, or until `limit`.
    pub(crate) async fn run(
        mut self,
        bound: Duration,
        limit: Option<Duration>,
        progress: &mut dyn FnMut(&RoundDone),
    ) -> Result<Directed<'a>, RunError> {
        let bound = limit.unwrap_or(bound);
        for member in self.federation.epoch.roster.members() {
            self.start(member)?;
        }
        loop {
            if let Some(violation) = self.recorder.read().violation.clone() {
                return Err(RunError::Violated {
                    seed: self.federation.seed,
                    violation,
                });
            }
            let complete = self.complete();
            let over = limit.is_some_and(|limit| self.recorder.now().elapsed() >= limit);
            if complete || over {
                self.actors
                    .iter()
                    .filter_map(|actor| actor.handle.as_ref())
                    .for_each(SiloHandle::kill);
                return Ok(Directed {
                    environment: self.environment,
                    complete,
                    stops: self.stops,
                    marks: self.marks,
                });
            }
            let next = self
                .actions
                .first_key_value()
                .map_or(bound, |((at, _), _)| (*at).min(bound));
            let signals = tokio::select! {
                biased;
                signals = self.recorder.signals() => signals,
                () = sleep_until(self.recorder.origin() + next) => Vec::new(),
            };
            for signal in signals {
                if let Signal::Notice(member, notice) = signal {
                    self.notice(member, &notice, progress)?;
                }
            }
            let now = self.recorder.now().elapsed();
            if now >= bound && limit.is_none() {
                return Err(self.stuck(now));
            }
            while let Some(first) = self
                .actions
                .first_entry()
                .filter(|first| first.key().0 <= now)
            {
                let action = first.remove();
                self.perform(action)?;
            }
        }
    }

    fn perform(&mut self, action: Action) -> Result<(), RunError> {
        match action {
            Action::Kill(member, back) => {
                let newest = self
                    .actors
                    .iter()
                    .max_by_key(|actor| (actor.view, actor.round));
                let lead = newest.and_then(|actor| actor.lead);
                let lead = lead.unwrap_or(self.federation.epoch.lead(1));
                self.kill(if member.0 == u16::MAX { lead } else { member }, back);
            }
            Action::Start(member) => self.start(member)?,
            Action::Cut(links) => self.environment.cut(&links),
            Action::Mend(links) => self.environment.mend(&links),
        }
        Ok(())
    }

    fn start(&mut self, member: MemberIndex) -> Result<(), RunError> {
        let recorder = self.recorder.clone();
        let feed = Box::new(move |at: Time, notice: &Notice| recorder.notice(member, at, notice));
        let mut config = self.federation.members[member.at()].clone();
        let actor = &mut self.actors[member.at()];
        config.journal_lost = std::mem::take(&mut actor.journal_lost);
        actor.starts += 1;
        let drawn = life(self.federation.seed, member, actor.starts);
        config.member.seed = drawn;
        let secrets = SeededSecrets::new(&drawn);
        let environment = self
            .environment
            .start(member, Own { feed, secrets })
            .map_err(RunError::Environment)?;
        let handle = spawn(config, environment);
        actor.handle = Some(handle.map_err(|error| RunError::Setup(error.to_string()))?);
        Ok(())
    }

    fn kill(&mut self, member: MemberIndex, back: Restart) {
        let actor = &mut self.actors[member.at()];
        let Some(handle) = actor.handle.take() else {
            return;
        };
        handle.kill();
        self.stopped(member, back);
    }

    fn stopped(&mut self, member: MemberIndex, back: Restart) {
        let actor = &mut self.actors[member.at()];
        actor.handle = None;
        actor.stopped_for_good = back.after.is_none();
        actor.journal_lost = back.journal_lost;
        actor.complete &= !back.journal_lost;
        self.environment.stop(member, back.journal_lost);
        self.recorder.crashed(member, back.journal_lost);
        self.stops.push(SiloStop {
            at: self.recorder.now().elapsed(),
            member,
            back: back.after,
        });
        if let Some(after) = back.after {
            self.schedule(self.recorder.now().elapsed() + after, Action::Start(member));
        }
    }

    fn notice(
        &mut self,
        member: MemberIndex,
        notice: &Notice,
        progress: &mut dyn FnMut(&RoundDone),
    ) -> Result<(), RunError> {
        let actor = &mut self.actors[member.at()];
        match notice {
            Notice::Protocol(Report::Entered { view, lead, round }) => {
                (actor.view, actor.lead, actor.round) = (*view, Some(*lead), *round);
            }
            Notice::Protocol(Report::TrainingFailed { round, reason }) => {
                actor.failed = Some(*round);
                return self.check_minimum(*round, reason);
            }
            Notice::Protocol(Report::Complete { .. }) => actor.complete = actor.handle.is_some(),
            Notice::Protocol(Report::Leading { view, round, phase }) => {
                if *phase == Phase::Voting {
                    self.voted.insert(*view, (*round, member));
                }
                self.reached(member, *round, Moment::Phase(*phase));
            }
            Notice::Protocol(Report::Certified(certificate)) => {
                let voted = self.voted.get(&certificate.view).copied();
                if let (Verdict::Notarised(_), Some((round, lead))) = (certificate.verdict, voted)
                    && lead == member
                {
                    self.reached(member, round, Moment::Notarised);
                }
            }
            Notice::Protocol(Report::Final {
                round,
                view,
                lead,
                block,
                ..
            }) if *round > self.done => {
                self.done = *round;
                let traffic = self.environment.traffic();
                let bytes = traffic.iter().map(|sent| sent.messages + sent.blobs).sum();
                self.marks.push(Mark {
                    round: *round,
                    at: self.recorder.now().elapsed(),
                    lead: *lead,
                    traffic,
                    work: self.environment.work(),
                });
                self.look_at_entries(*round, block);
                progress(&RoundDone {
                    round: *round,
                    rounds: self.federation.epoch.protocol.rounds,
                    led: Some(Led {
                        view: *view,
                        lead: self.federation.epoch.roster.name(*lead).into(),
                        at: self.recorder.now().elapsed().as_secs_f64(),
                    }),
                    bytes: Some(bytes),
                    losses: Vec::new(),
                });
            }
            Notice::Stopped(Stopped::Journal(_)) => {
                let back = actor.back.take();
                if let (Some(_), Some(back)) = (&actor.handle, back) {
                    self.stopped(member, back);
                }
            }
            Notice::Stopped(Stopped::Defect(why)) => {
                let name = self.federation.epoch.roster.name(member).into();
                return Err(RunError::Defect {
                    silo: name,
                    why: why.clone(),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps the entries of this final block, where they are to be kept; and where names are removed, finds
    /// how much of that they undo.
    fn look_at_entries(&self, round: u64, block: &Hash) {
        let disks = self.environment.disks();
        let blob = |hash: &Hash| disks.iter().find_map(|disk| disk.blobs().get(hash));
        if self.recorder.keeps_contributions() {
            let merges = self.merges(round, block, blob);
            self.recorder.keep_contributions(round, block, merges, blob);
        }
        if !self.federation.epoch.protocol.shows_names() {
            self.recorder.compare_entries(block, blob);
        }
    }

    /// Returns how the authors of a final block are merged into groups, where they are.
    fn merges(
        &self,
        round: u64,
        block: &Hash,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Option<AuthorMerges> {
        let config = self.federation.members.first()?;
        let base = match round {
            1 => {
                let seed = config.initial_seed;
                RoundBase::new(config, &genesis(&*config.strategy, &*config.learner, seed))
            }
            _ => {
                let (outcome, state) = self.recorder.adopted(round - 1)?;
                RoundBase::after(config, round - 1, outcome, state)
            }
        };
        let (authors, signed) = self.recorder.final_manifest(block)?;
        let tree = base.merge_tree(config, &signed, blob)?;
        Some(AuthorMerges::new(tree, &authors))
    }

    /// Fails if too few silos can still train for a round to reach its minimum of contributions.
    fn check_minimum(&self, round: u64, reason: &str) -> Result<(), RunError> {
        let members = self.actors.len();
        let failed = |actor: &&Actor| actor.failed == Some(round);
        let silos = self.actors.iter().filter(failed).count();
        let minimum = usize::from(self.federation.epoch.protocol.min_contributions);
        if round <= self.done || members - silos >= minimum {
            return Ok(());
        }
        Err(RunError::Training {
            round,
            minimum,
            silos,
            members,
            reason: reason.into(),
        })
    }

    /// A lead reached a moment of a round: kills the silos that the script names for it.
    fn reached(&mut self, lead: MemberIndex, round: u64, moment: Moment) {
        let due = |&(at, when, _, _): &(u64, Moment, Option<MemberIndex>, Restart)| {
            at == round && when == moment
        };
        while let Some(at) = self.kills.iter().position(due) {
            let (_, _, who, back) = self.kills.remove(at);
            self.kill(who.unwrap_or(lead), back);
        }
    }

    fn complete(&self) -> bool {
        let members = self.federation.epoch.roster.members();
        self.actors.iter().zip(members).all(|(actor, member)| {
            actor.complete && actor.handle.is_some()
                || actor.stopped_for_good
                || self.federation.breaking.contains(&member)
        })
    }

    fn stuck(&self, after: Duration) -> RunError {
        let silos = self.actors.iter().zip(self.federation.epoch.roster.silos());
        let states: Vec<_> = silos
            .map(|(actor, silo)| match (&actor.handle, actor.complete) {
                (None, _) => format!("{} is down", silo.name),
                (_, true) => format!("{} is complete", silo.name),
                _ => format!(
                    "{} is in view {}, round {}",
                    silo.name, actor.view, actor.round
                ),
            })
            .collect();
        RunError::Stuck {
            seed: self.federation.seed,
            after,
            states: states.join("; "),
        }
    }
}
