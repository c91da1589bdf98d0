//! Does the heavy work of a silo, also when the silo leads.
//!
//! Work begins when all blobs that it needs are here. Missing blobs are fetched through the mesh,
//! each once at a time; if no member has one, the result is [`WorkError::Unavailable`]. The work
//! itself is a job for the pool, a function of its arguments; only its result touches the actor.

mod agree;
mod apply;
mod part;
mod sheet;
mod wants;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::fut::{ActorFutureExt, wrap_future};
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Recipient};
use bytes::Bytes;
use methods::Params;
use protocol::effects::WorkError;
use protocol::message::{Entry as SheetEntry, Sheet};
use protocol::{Effect, Hash, Input, MemberIndex};

use sheet::SheetModels;
use wants::Wants;

use super::messages::{Fetch, Fetched, Halt, WorkRequest, WorkResult};
use crate::activity::Activities;
use crate::base::{LastTraining, OwnState, RoundBase};
use crate::checks::{Checks, Shared};
use crate::clock::Clock;
use crate::config::SiloConfig;
use crate::error::StoreError;
use crate::notice::Notice;
use crate::outcome::Settled;
use crate::run_state::RunState;
use crate::surroundings::{Blobs, Pool, Work, run};

/// Does the heavy work of one silo.
pub(crate) struct WorkerActor {
    pub(crate) config: Arc<SiloConfig>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) pool: Arc<dyn Pool>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) mesh: Recipient<Fetch>,
    pub(crate) clock: Clock,
    pub(crate) run_state: Rc<RunState>,
    /// Gets the progress of the training.
    pub(crate) activities: Activities,
    /// The outcome adopted last.
    pub(crate) base: Arc<RoundBase>,
    pub(crate) own: OwnState,
    pub(crate) trained: Option<LastTraining>,
    /// What rounding left out of the model contributed last, for the next one. Not durable: a silo
    /// that restarts begins without.
    pub(crate) rest: Option<Params>,
    /// Whether an outcome is being adopted: one at a time.
    pub(crate) applying: bool,
    /// Blobs of the last final rounds, oldest first.
    pub(crate) kept: VecDeque<Vec<Hash>>,
    /// The block whose outcome was adopted before a restart and is fetched again, because its
    /// blobs are missing.
    pub(crate) again: Option<Hash>,
    pub(crate) round: CurrentRound,
    pub(crate) wants: Waiting,
}

/// State of the round under way; dropped with it.
#[derive(Default)]
pub(crate) struct CurrentRound {
    /// Stops the training when set.
    cancel: Arc<AtomicBool>,
    /// Models that have passed the gate, or will.
    gated: BTreeMap<Hash, Shared<Params>>,
    /// The sheet whose models are all here.
    sheet: Option<Arc<SheetModels>>,
    /// Outcomes computed here.
    settled: BTreeMap<Hash, Arc<Settled>>,
}

impl Drop for CurrentRound {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

/// Requests that wait for blobs.
#[derive(Default)]
pub(crate) struct Waiting(Wants<WorkRequest>);

/// Blobs without which work cannot begin, and members that may have them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Hash and largest size in bytes.
    blobs: Vec<(Hash, u64)>,
    from: Vec<MemberIndex>,
}

impl WorkerActor {
    /// Begins, or first fetches the missing blobs.
    fn take(&mut self, job: WorkRequest, ctx: &mut Context<Self>) {
        if let Some(answer) = self.stale(&job.effect) {
            return answer
                .into_iter()
                .for_each(|answer| job.reply.do_send(answer));
        }
        let needs = match self.needs(&job.effect) {
            Ok(needs) => needs,
            Err(error) => return reply(&job, error),
        };
        let missing: BTreeMap<Hash, u64> = needs
            .blobs
            .into_iter()
            .filter(|(hash, _)| self.blobs.get(hash).is_none())
            .collect();
        if missing.is_empty() {
            return self.begin(job, ctx);
        }
        let me = self.config.member.me;
        let from: Vec<MemberIndex> = needs.from.into_iter().filter(|&from| from != me).collect();
        if from.is_empty() {
            return reply(&job, WorkError::Unavailable);
        }
        self.applying |= is_apply(&job.effect);
        let blobs = self.wants.0.wait(job, &missing);
        if blobs.is_empty() {
            return;
        }
        let fetch = Fetch {
            blobs,
            from,
            reply: ctx.address().recipient(),
        };
        if let Err(error) = self.mesh.try_send(fetch) {
            // As if no member had them: they are requested again after a beat.
            for wish in error.into_inner().blobs {
                self.unavailable(&wish.hash, Vec::new());
            }
        }
    }

    /// The result of work of another round than the one under way. `Some(None)`: there is none.
    fn stale(&self, effect: &Effect) -> Option<Option<WorkResult>> {
        let (now, about) = (self.base.next(), round_of(effect));
        match effect {
            Effect::Apply { .. } if about > self.base.round => None,
            Effect::Apply { .. } => Some(Some(
                Input::Applied {
                    round: about,
                    ends: false,
                    result: Ok(()),
                }
                .into(),
            )),
            Effect::Plan { state, .. } if about >= now => {
                let fits = about == now && *state == self.base.outcome;
                let why = || {
                    format!(
                        "expected a plan of round {now} on the adopted outcome, found one of round {about}"
                    )
                };
                (!fits).then(|| Some(WorkResult::defect(why())))
            }
            _ if about < now => Some(None),
            _ if about > now => Some(failed(effect, WorkError::Unavailable)),
            _ => None,
        }
    }

    /// The blobs that work needs before it can begin. An error if it never can.
    fn needs(&self, effect: &Effect) -> Result<Needs, WorkError> {
        match effect {
            Effect::Admit { fields, from, .. } => {
                self.base
                    .fits(&self.config, fields)
                    .map_err(WorkError::Refused)?;
                Ok(Needs {
                    blobs: vec![(fields.blob, fields.size)],
                    from: vec![*from],
                })
            }
            Effect::Evaluate {
                entries, holders, ..
            } => self.needs_entries(entries, holders),
            Effect::Hold {
                entries, holders, ..
            } => self.needs_entries(entries, holders),
            Effect::Decide { sheet, holders, .. } => self.needs_sheet(sheet, holders),
            Effect::Check { case, holders } | Effect::Settle { case, holders } => {
                self.needs_sheet(&case.sheet, holders)
            }
            Effect::Apply { rounds, holders } => match rounds.last() {
                Some(last) => self.needs_outcome(&last.outcome, holders),
                None => Ok(Needs::default()),
            },
            Effect::Keep {
                outcome, holders, ..
            } => {
                self.bounded(outcome)?;
                self.needs_outcome(outcome, holders)
            }
            _ => Ok(Needs::default()),
        }
    }

    fn needs_sheet(&self, sheet: &Arc<Sheet>, holders: &[MemberIndex]) -> Result<Needs, WorkError> {
        if self.round.has(sheet) {
            return Ok(Needs::default());
        }
        self.needs_entries(&sheet.entries, holders)
    }

    fn needs_entries(
        &self,
        entries: &[SheetEntry],
        holders: &[MemberIndex],
    ) -> Result<Needs, WorkError> {
        for entry in entries {
            self.base
                .fits(&self.config, &entry.fields)
                .map_err(WorkError::Refused)?;
        }
        let blobs = entries
            .iter()
            .map(|entry| (entry.fields.blob, entry.fields.size))
            .collect();
        Ok(Needs {
            blobs,
            from: holders.to_vec(),
        })
    }

    /// Begins work whose last blob has arrived.
    fn resume(&mut self, job: WorkRequest, ctx: &mut Context<Self>) {
        let staged = is_apply(&job.effect) || matches!(job.effect, Effect::Keep { .. });
        self.applying &= !is_apply(&job.effect);
        // The document of an outcome names the blobs that are needed next.
        if staged || self.stale(&job.effect).is_some() {
            self.take(job, ctx);
        } else {
            self.begin(job, ctx);
        }
    }

    fn begin(&mut self, job: WorkRequest, ctx: &mut Context<Self>) {
        let WorkRequest { effect, reply } = job;
        match effect {
            Effect::Plan { .. } => self.plan(reply, ctx),
            Effect::Train { round } => self.train(round, reply, ctx),
            Effect::Admit { fields, from, .. } => self.admit(from, fields, reply, ctx),
            Effect::Evaluate { entries, .. } => self.evaluate(&entries, reply, ctx),
            // Every blob was stored when it arrived, so nothing is left to do.
            Effect::Hold { round, entries, .. } => {
                let (blobs, result) = (blobs(&entries), Ok(()));
                reply.do_send(
                    Input::Held {
                        round,
                        blobs,
                        result,
                    }
                    .into(),
                );
            }
            Effect::Decide { sheet, .. } => self.decide(sheet, reply, ctx),
            Effect::Check { case, .. } => self.check(case, reply, ctx),
            Effect::Settle { case, .. } => self.settle(case, reply, ctx),
            Effect::Apply { rounds, .. } => self.apply(rounds, reply, ctx),
            Effect::Keep { round, outcome, .. } => self.keep(round, outcome, reply, ctx),
            Effect::Send { .. }
            | Effect::Publish { .. }
            | Effect::Await { .. }
            | Effect::Persist(_)
            | Effect::EpochOver(_)
            | Effect::Report(_) => {}
        }
    }

    /// Runs a job in the pool. On the actor, `end` turns its result, or the text of its panic, into
    /// the answer.
    fn run<T: Send + 'static>(
        &self,
        ctx: &mut Context<Self>,
        reply: Recipient<WorkResult>,
        work: Work,
        job: impl FnOnce() -> T + Send + 'static,
        end: impl FnOnce(&mut Self, Result<T, String>) -> WorkResult + 'static,
    ) {
        answer(ctx, reply, run(&*self.pool, work, job), end);
    }

    /// The model of that blob after the gate.
    fn gated(&mut self, blob: &Hash) -> Shared<Params> {
        let (checks, base) = (&self.checks, &self.base);
        let new = || checks.gate(base.gate_key(blob), base.next());
        self.round.gated.entry(*blob).or_insert_with(new).clone()
    }

    fn store(&self, blobs: impl Iterator<Item = (Hash, Bytes)>) -> Result<(), StoreError> {
        let cache = |(hash, blob): &(Hash, Bytes)| self.checks.insert_hash(blob, *hash);
        self.blobs.put_all(blobs.inspect(cache).collect())
    }

    /// Fails the work that waits for a blob: no member gave it, or it could not be stored, which the
    /// notices in `why` report.
    fn unavailable(&mut self, blob: &Hash, mut why: Vec<Notice>) {
        for job in self.wants.0.missing(blob) {
            self.applying &= !is_apply(&job.effect);
            if let Some(mut answer) = failed(&job.effect, WorkError::Unavailable) {
                answer.notices.append(&mut why);
                job.reply.do_send(answer);
            }
        }
    }
}

impl Actor for WorkerActor {
    type Context = Context<Self>;
}

impl Handler<WorkRequest> for WorkerActor {
    type Result = ();

    fn handle(&mut self, job: WorkRequest, ctx: &mut Context<Self>) {
        // The state machine requests an adoption until it has happened; one at a time is enough.
        let again = self.applying && is_apply(&job.effect);
        if self.run_state.is_running() && !again {
            self.take(job, ctx);
        }
    }
}

impl Handler<Fetched> for WorkerActor {
    type Result = ();

    fn handle(&mut self, Fetched { blobs, missing }: Fetched, ctx: &mut Context<Self>) {
        if !self.run_state.is_running() {
            return;
        }
        let asked = |(hash, _): &(Hash, Bytes)| self.wants.0.asked(hash);
        let blobs: Vec<_> = blobs.into_iter().filter(asked).collect();
        let hashes: Vec<Hash> = blobs.iter().map(|(hash, _)| *hash).collect();
        let kept = self.blobs.put_all(blobs);
        for hash in hashes {
            match &kept {
                Ok(()) => {
                    for job in self.wants.0.arrived(&hash) {
                        self.resume(job, ctx);
                    }
                }
                Err(error) => {
                    let reason = error.to_string();
                    self.unavailable(&hash, vec![Notice::Store { reason }]);
                }
            }
        }
        for hash in missing {
            self.unavailable(&hash, Vec::new());
        }
    }
}

impl Handler<Halt> for WorkerActor {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Context<Self>) {
        ctx.terminate();
    }
}

/// Waits for the result of a job, and sends the answer that `end` makes of it.
fn answer<T: 'static>(
    ctx: &mut Context<WorkerActor>,
    reply: Recipient<WorkResult>,
    done: impl Future<Output = Result<T, String>> + 'static,
    end: impl FnOnce(&mut WorkerActor, Result<T, String>) -> WorkResult + 'static,
) {
    let done = wrap_future::<_, WorkerActor>(done);
    ctx.spawn(done.map(move |result, worker, _| {
        if worker.run_state.is_running() {
            reply.do_send(end(worker, result));
        }
    }));
}

/// Answers a request that could not begin.
fn reply(job: &WorkRequest, error: WorkError) {
    if let Some(answer) = failed(&job.effect, error) {
        job.reply.do_send(answer);
    }
}

fn is_apply(effect: &Effect) -> bool {
    matches!(effect, Effect::Apply { .. })
}

/// The round that an effect belongs to.
fn round_of(effect: &Effect) -> u64 {
    match effect {
        Effect::Plan { round, .. }
        | Effect::Train { round }
        | Effect::Admit { round, .. }
        | Effect::Evaluate { round, .. }
        | Effect::Hold { round, .. }
        | Effect::Keep { round, .. }
        | Effect::Decide { round, .. } => *round,
        Effect::Check { case, .. } | Effect::Settle { case, .. } => case.round,
        Effect::Apply { rounds, .. } => rounds.last().map_or(0, |last| last.round),
        Effect::Send { .. }
        | Effect::Publish { .. }
        | Effect::Await { .. }
        | Effect::Persist(_)
        | Effect::EpochOver(_)
        | Effect::Report(_) => 0,
    }
}

/// The answer that work failed; none for effects that are no work.
fn failed(effect: &Effect, error: WorkError) -> Option<WorkResult> {
    let round = round_of(effect);
    let input = match effect {
        Effect::Train { .. } => Input::Trained {
            round,
            result: Err(reason(error)),
        },
        Effect::Admit { fields, from, .. } => Input::Admitted {
            round,
            from: *from,
            fields: fields.clone(),
            result: Err(error),
        },
        Effect::Evaluate { .. } => Input::Evaluated {
            round,
            result: Err(error),
        },
        Effect::Hold { entries, .. } => Input::Held {
            round,
            blobs: blobs(entries),
            result: Err(error),
        },
        Effect::Decide { sheet, .. } => Input::Decided {
            sheet: sheet.root(),
            result: Err(error),
        },
        Effect::Check { case, .. } => Input::Checked {
            case: case.id(),
            result: Err(error),
        },
        Effect::Settle { case, .. } => Input::Settled {
            case: case.id(),
            result: Err(error),
        },
        Effect::Apply { .. } => Input::Applied {
            round,
            ends: false,
            result: Err(error),
        },
        Effect::Keep { outcome, .. } => Input::Kept {
            round,
            outcome: *outcome,
            result: Err(error),
        },
        _ => return None,
    };
    Some(input.into())
}

fn blobs(entries: &[SheetEntry]) -> Vec<Hash> {
    entries.iter().map(|entry| entry.fields.blob).collect()
}

fn reason(error: WorkError) -> String {
    match error {
        WorkError::Unavailable => "a blob that it needs is not available now".into(),
        WorkError::Refused(reason) => reason,
    }
}
