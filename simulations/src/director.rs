//! Brings the silos of a federation to life, plays the script of faults, and sees it to its end.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::certificate::Verdict;
use protocol::message::Phase;
use protocol::{Hash, MemberIndex, Report, Time};
use silo::{Notice, SiloHandle, Stopped, spawn};
use tokio::time::sleep_until;

use crate::error::RunError;
use crate::federation::Federation;
use crate::options::RoundDone;
use crate::recorder::{Ear, Signal};
use crate::scenario::{Fault, Moment, When, Who};
use crate::world::World;

/// Something that is to be done at a time.
enum Act {
    Kill(MemberIndex, Return),
    Enter(MemberIndex),
    Cut(Vec<(usize, usize)>),
    Mend(Vec<(usize, usize)>),
}

/// How a silo that was killed comes back.
#[derive(Debug, Clone, Copy)]
struct Return {
    after: Option<Duration>,
    emptied: bool,
}

/// A silo as its director sees it.
#[derive(Default)]
struct Actor {
    handle: Option<SiloHandle>,
    /// How often it came to life.
    lives: u64,
    complete: bool,
    /// Away for ever.
    gone: bool,
    emptied: bool,
    /// How it comes back from a failing journal.
    back: Option<Return>,
    view: u64,
    round: u64,
    /// The last round in which its training failed.
    failed: Option<u64>,
}

/// Directs one run.
pub(crate) struct Director<'a> {
    federation: &'a Federation,
    world: Box<dyn World + 'a>,
    ear: Ear,
    actors: Vec<Actor>,
    acts: BTreeMap<(Duration, usize), Act>,
    sequence: usize,
    moments: Vec<(u64, Moment, Option<MemberIndex>, Return)>,
    /// Round of every view that came to a vote.
    voted: BTreeMap<u64, u64>,
    done: u64,
}

impl<'a> Director<'a> {
    pub(crate) fn new(
        federation: &'a Federation,
        world: Box<dyn World + 'a>,
        ear: Ear,
        faults: &[Fault],
    ) -> Result<Self, RunError> {
        let mut director = Self {
            federation,
            world,
            ear,
            actors: federation
                .members
                .iter()
                .map(|_| Actor::default())
                .collect(),
            acts: BTreeMap::new(),
            sequence: 0,
            moments: Vec::new(),
            voted: BTreeMap::new(),
            done: 0,
        };
        faults.iter().try_for_each(|fault| director.script(fault))?;
        Ok(director)
    }

    fn script(&mut self, fault: &Fault) -> Result<(), RunError> {
        match fault {
            Fault::Kill {
                who,
                when,
                restart_after,
                journal_lost,
            } => {
                let back = Return {
                    after: *restart_after,
                    emptied: *journal_lost,
                };
                let who = match who {
                    Who::Lead => None,
                    Who::Silo(name) => Some(self.federation.member(name)?),
                };
                match (*when, who) {
                    (When::Round { round, moment }, who) => {
                        self.moments.push((round, moment, who, back));
                    }
                    (When::At(time), Some(member)) => self.plan(time, Act::Kill(member, back)),
                    (When::At(time), None) => {
                        // Whoever leads then is known only then.
                        self.plan(time, Act::Kill(MemberIndex(u16::MAX), back));
                    }
                    (When::Commit { nth, cut }, Some(member)) => {
                        self.world.fail(member, nth, cut);
                        self.actors[member.at()].back = Some(back);
                    }
                    (When::Commit { .. }, None) => {}
                }
            }
            Fault::Partition {
                members,
                at,
                lasts,
                one_way,
            } => {
                let cut = members
                    .iter()
                    .map(|name| self.federation.member(name).map(MemberIndex::at))
                    .collect::<Result<Vec<_>, _>>()?;
                let others: Vec<_> = (0..self.actors.len())
                    .filter(|silo| !cut.contains(silo))
                    .collect();
                let out = cut
                    .iter()
                    .flat_map(|&a| others.iter().map(move |&b| (a, b)));
                let back = out.clone().map(|(a, b)| (b, a)).filter(|_| !one_way);
                let links: Vec<_> = out.clone().chain(back).collect();
                self.plan(*at, Act::Cut(links.clone()));
                self.plan(*at + *lasts, Act::Mend(links));
            }
            Fault::Byzantine { .. } => {}
        }
        Ok(())
    }

    fn plan(&mut self, at: Duration, act: Act) {
        self.sequence += 1;
        self.acts.insert((at, self.sequence), act);
    }

    /// Runs until every honest silo that is not gone for ever is complete.
    pub(crate) async fn run(
        mut self,
        bound: Duration,
        progress: &mut dyn FnMut(&RoundDone),
    ) -> Result<Box<dyn World + 'a>, RunError> {
        for member in self.federation.epoch.roster.members() {
            self.enter(member)?;
        }
        loop {
            if let Some(violation) = self.ear.read().violation.clone() {
                return Err(RunError::Violated {
                    seed: self.federation.seed,
                    violation,
                });
            }
            if self.complete() {
                self.actors
                    .iter()
                    .filter_map(|actor| actor.handle.as_ref())
                    .for_each(SiloHandle::kill);
                return Ok(self.world);
            }
            let next = self
                .acts
                .first_key_value()
                .map_or(bound, |((at, _), _)| (*at).min(bound));
            let signals = tokio::select! {
                biased;
                signals = self.ear.signals() => signals,
                () = sleep_until(self.ear.origin() + next) => Vec::new(),
            };
            for signal in signals {
                if let Signal::Notice(member, notice) = signal {
                    self.notice(member, &notice, progress)?;
                }
            }
            let now = self.ear.now().elapsed();
            if now >= bound {
                return Err(self.stuck(now));
            }
            while let Some(first) = self.acts.first_entry().filter(|first| first.key().0 <= now) {
                let act = first.remove();
                self.act(act)?;
            }
        }
    }

    fn act(&mut self, act: Act) -> Result<(), RunError> {
        match act {
            Act::Kill(member, back) => {
                let newest = self
                    .actors
                    .iter()
                    .map(|actor| actor.view)
                    .max()
                    .unwrap_or(1);
                let lead = self.federation.epoch.lead(newest);
                self.kill(if member.0 == u16::MAX { lead } else { member }, back);
            }
            Act::Enter(member) => self.enter(member)?,
            Act::Cut(links) => self.world.cut(&links),
            Act::Mend(links) => self.world.mend(&links),
        }
        Ok(())
    }

    fn enter(&mut self, member: MemberIndex) -> Result<(), RunError> {
        let ear = self.ear.clone();
        let feed = Box::new(move |at: Time, notice: &Notice| ear.notice(member, at, notice));
        let surroundings = self.world.enter(member, feed).map_err(RunError::World)?;
        let mut config = self.federation.members[member.at()].clone();
        let actor = &mut self.actors[member.at()];
        config.journal_lost = std::mem::take(&mut actor.emptied);
        actor.lives += 1;
        let life = [self.federation.seed, member.0.into(), actor.lives];
        let life = life.map(u64::to_le_bytes);
        config.member.seed = Hash::labelled("life", &[&life[0], &life[1], &life[2]]).0;
        let handle = spawn(config, surroundings);
        actor.handle = Some(handle.map_err(|error| RunError::Setup(error.to_string()))?);
        Ok(())
    }

    fn kill(&mut self, member: MemberIndex, back: Return) {
        let actor = &mut self.actors[member.at()];
        let Some(handle) = actor.handle.take() else {
            return;
        };
        handle.kill();
        self.away(member, back);
    }

    fn away(&mut self, member: MemberIndex, back: Return) {
        let actor = &mut self.actors[member.at()];
        actor.handle = None;
        actor.gone = back.after.is_none();
        actor.emptied = back.emptied;
        actor.complete &= !back.emptied;
        self.world.leave(member, back.emptied);
        self.ear.crashed(member, back.emptied);
        if let Some(after) = back.after {
            self.plan(self.ear.now().elapsed() + after, Act::Enter(member));
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
            Notice::Protocol(Report::Entered { view, round, .. }) => {
                (actor.view, actor.round) = (*view, *round);
            }
            Notice::Protocol(Report::TrainingFailed { round, reason }) => {
                actor.failed = Some(*round);
                return self.failing(*round, reason);
            }
            Notice::Protocol(Report::Complete) => actor.complete = actor.handle.is_some(),
            Notice::Protocol(Report::Leading { view, round, phase }) => {
                if *phase == Phase::Voting {
                    self.voted.insert(*view, *round);
                }
                self.moment(member, *round, Moment::Phase(*phase));
            }
            Notice::Protocol(Report::Certified(certificate)) => {
                let leads = self.federation.epoch.lead(certificate.view) == member;
                let round = self.voted.get(&certificate.view).copied();
                if let (true, Verdict::Notarised(_), Some(round)) =
                    (leads, certificate.verdict, round)
                {
                    self.moment(member, round, Moment::Notarised);
                }
            }
            Notice::Protocol(Report::Final {
                round, view, lead, ..
            }) if *round > self.done => {
                self.done = *round;
                progress(&RoundDone {
                    round: *round,
                    rounds: self.federation.epoch.charter.rounds,
                    view: *view,
                    lead: self.federation.epoch.roster.name(*lead).into(),
                    at: self.ear.now().elapsed().as_secs_f64(),
                });
            }
            Notice::Stopped(Stopped::Journal(_)) => {
                let back = actor.back.take();
                if let (Some(_), Some(back)) = (&actor.handle, back) {
                    self.away(member, back);
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

    /// Whether those who can still train are enough for a round to come about.
    fn failing(&self, round: u64, reason: &str) -> Result<(), RunError> {
        let members = self.actors.len();
        let failed = |actor: &&Actor| actor.failed == Some(round);
        let silos = self.actors.iter().filter(failed).count();
        let minimum = usize::from(self.federation.epoch.charter.minimum);
        if round <= self.done || members - silos >= minimum {
            return Ok(());
        }
        Err(RunError::Training {
            round,
            silos,
            members,
            reason: reason.into(),
        })
    }

    /// A lead came to a moment of a round: kills whom the script names.
    fn moment(&mut self, lead: MemberIndex, round: u64, moment: Moment) {
        let due = |&(at, when, _, _): &(u64, Moment, Option<MemberIndex>, Return)| {
            at == round && when == moment
        };
        while let Some(at) = self.moments.iter().position(due) {
            let (_, _, who, back) = self.moments.remove(at);
            self.kill(who.unwrap_or(lead), back);
        }
    }

    fn complete(&self) -> bool {
        let members = self.federation.epoch.roster.members();
        self.actors.iter().zip(members).all(|(actor, member)| {
            actor.complete && actor.handle.is_some()
                || actor.gone
                || self.federation.faulty.contains(&member)
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
