//! The state machine with its journal. Where the pool has a thread for steps they go there and back
//! at every step, so that signing and flushing a disk hold up nothing else.

use std::any::Any;
use std::time::{Duration, Instant};

use actix::fut::wrap_future;
use actix::{ActorFutureExt, AsyncContext, Context};
use protocol::{Effect, Input, Member, Report, Time};

use super::SiloActor;
use crate::error::{Stopped, StoreError};
use crate::record::JournalRecord;
use crate::site::{LedgerLine, LedgerReminders};
use crate::trimmed::TrimmedJournal;

/// State that a step needs.
pub(crate) struct MemberAndJournal {
    pub(crate) member: Member,
    pub(crate) journal: TrimmedJournal,
    /// The journal is empty: the first transaction begins it.
    pub(crate) begins: bool,
    /// Effects of the last step that are not carried out yet; empty between steps.
    pub(crate) effects: Vec<Effect>,
    /// Transactions that are not counted yet.
    pub(super) commits: u64,
    /// Time that these transactions took.
    pub(super) disk: Duration,
    /// The silo's contributions in final blocks, where the institution has a ledger.
    reminders: Option<LedgerReminders>,
    /// Reason for which the ledger refused the last line; taken after each step.
    refused: Option<String>,
}

impl MemberAndJournal {
    /// A member with the effects of its start.
    pub(crate) fn new(
        member: Member,
        journal: TrimmedJournal,
        begins: bool,
        effects: Vec<Effect>,
        reminders: Option<LedgerReminders>,
    ) -> Box<Self> {
        Box::new(Self {
            member,
            journal,
            begins,
            effects,
            commits: 0,
            disk: Duration::ZERO,
            reminders,
            refused: None,
        })
    }

    /// Takes one step of the state machine, and makes its records durable.
    pub(super) fn step(&mut self, now: Time, input: Input) -> Result<(), StoreError> {
        self.member.step(now, input, &mut self.effects);
        self.persist()
    }

    /// Makes the records among the effects durable, in one transaction.
    pub(super) fn persist(&mut self) -> Result<(), StoreError> {
        let used = |effect: &Effect| matches!(effect, Effect::Report(Report::KeyUsedBefore));
        let lasting = |effect: &Effect| matches!(effect, Effect::Persist(_)) || used(effect);
        if !self.effects.iter().any(lasting) {
            return Ok(());
        }
        let records = self.effects.iter().filter_map(|effect| match effect {
            Effect::Persist(record) => Some(JournalRecord::Protocol(record.clone())),
            _ => None,
        });
        if let Some(reminders) = &mut self.reminders {
            for effect in &self.effects {
                if let Effect::Persist(record) = effect {
                    reminders.observe(record);
                }
            }
        }
        // From here on the journal counts as lost, also after a restart.
        let lost = self.effects.iter().any(used).then_some(JournalRecord::Lost);
        let records = lost.into_iter().chain(records).collect();
        self.commit(records)
    }

    /// Makes the records of a result durable, if it has any, and then its line in the ledger.
    pub(super) fn commit_with(
        &mut self,
        records: Vec<JournalRecord>,
        line: Option<LedgerLine>,
    ) -> Result<(), StoreError> {
        if !records.is_empty() {
            self.commit(records)?;
        }
        let recorded = line.map_or(Ok(()), |line| self.record(&line));
        self.refused = recorded.err();
        Ok(())
    }

    /// Makes a line durable, unless the ledger lacks one that it should have.
    fn record(&mut self, line: &LedgerLine) -> Result<(), String> {
        if let Some(reminders) = &mut self.reminders {
            reminders.compare()?;
        }
        line.record()
    }

    /// Commits one transaction.
    pub(super) fn commit(&mut self, mut records: Vec<JournalRecord>) -> Result<(), StoreError> {
        if std::mem::take(&mut self.begins) {
            records.insert(0, JournalRecord::Begun);
        }
        self.commits += 1;
        let began = Instant::now();
        let done = self.journal.commit(records);
        self.disk += began.elapsed();
        done
    }
}

/// Reason for which the seat is there when a message is taken.
const HERE: &str = "no message is taken while the seat is away";

/// A seat that was away, and how its work ended.
type Back = (Box<MemberAndJournal>, Result<(), StoreError>);

impl SiloActor {
    /// The state machine with its journal.
    pub(super) fn seat(&self) -> &MemberAndJournal {
        self.seat.as_ref().expect(HERE)
    }

    fn seat_mut(&mut self) -> &mut MemberAndJournal {
        self.seat.as_mut().expect(HERE)
    }

    /// The effects of the last step.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.seat_mut().effects)
    }

    /// Returns the reason for which the ledger refused the line of the last result.
    pub(super) fn take_refusal(&mut self) -> Option<String> {
        self.seat_mut().refused.take()
    }

    /// The next step reuses the buffer.
    pub(super) fn return_buffer(&mut self, effects: Vec<Effect>) {
        self.seat_mut().effects = effects;
    }

    /// Works with the state machine and its journal, and then goes on with `then`. Until that no
    /// message is taken. A journal that fails ends the silo.
    pub(super) fn at_seat(
        &mut self,
        ctx: &mut Context<Self>,
        work: impl FnOnce(&mut MemberAndJournal) -> Result<(), StoreError> + Send + 'static,
        then: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        let mut seat = self.seat.take().expect(HERE);
        let job = move || -> Box<dyn Any + Send> {
            let done = work(&mut seat);
            Box::new((seat, done))
        };
        match self.pool.step(Box::new(job)) {
            Err(job) => self.seated(Ok(job()), then, ctx),
            Ok(done) => {
                let back = wrap_future(done);
                ctx.wait(back.map(|back, actor: &mut Self, ctx| actor.seated(back, then, ctx)));
            }
        }
    }

    /// The seat is back.
    fn seated(
        &mut self,
        back: Result<Box<dyn Any + Send>, String>,
        then: impl FnOnce(&mut Self, &mut Context<Self>),
        ctx: &mut Context<Self>,
    ) {
        let other = |_| "the pool returned the result of another job".to_owned();
        let back = back.and_then(|back| back.downcast::<Back>().map_err(other));
        let (mut seat, done) = match back {
            Ok(back) => *back,
            Err(why) => return self.end(Stopped::Defect(why), ctx),
        };
        let commits = std::mem::take(&mut seat.commits);
        self.activities.disk(std::mem::take(&mut seat.disk));
        self.counters.add(|counts| counts.commits += commits);
        self.seat = Some(seat);
        match done {
            Err(error) => self.end(Stopped::Journal(error), ctx),
            Ok(()) if self.run_state.is_running() => then(self, ctx),
            Ok(()) => {}
        }
    }
}
