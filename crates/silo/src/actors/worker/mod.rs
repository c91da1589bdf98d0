//! Does the heavy work, the lead's as well as the silo's own: leading is a role.
//!
//! Work begins when all blobs that it needs are here: they are asked for through the mesh, each
//! once at a time, and one that nobody has makes the answer [`WorkError::Unavailable`]. Then it is
//! a job for the pool, a function of what it is handed; only its end touches the actor.

mod agree;
mod apply;
mod ground;
mod messages;
mod part;
mod wants;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use actix::fut::{ActorFutureExt, wrap_future};
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Recipient};
use bytes::Bytes;
use methods::{Params, Progress};
use protocol::effects::WorkError;
use protocol::message::{Entry as SheetEntry, Sheet};
use protocol::{Effect, Hash, Input, MemberIndex};

use agree::Material;
pub(crate) use apply::outcome_gate;
pub(crate) use ground::{Ground, Left, Own, Personal};
pub(crate) use messages::{Do, Needs};
use wants::Wants;

use super::mesh::{Arrived, Fetch};
use super::silo::{Answer, Halt};
use crate::checks::{Checks, Once};
use crate::clock::Clock;
use crate::config::SiloConfig;
use crate::handle::Life;
use crate::notice::Notice;
use crate::outcome::Settled;
use crate::surroundings::{Blobs, Pool, StoreError, Work, run};

/// The heavy half of a silo.
pub(crate) struct WorkerActor {
    pub(crate) config: Arc<SiloConfig>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) pool: Arc<dyn Pool>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) mesh: Recipient<Fetch>,
    pub(crate) clock: Clock,
    pub(crate) life: Rc<Life>,
    /// Where people see how far the training is.
    pub(crate) progress: Arc<Mutex<Option<Progress>>>,
    /// What was adopted last.
    pub(crate) ground: Arc<Ground>,
    pub(crate) own: Own,
    pub(crate) trained: Option<Left>,
    /// An outcome is being adopted: one at a time.
    pub(crate) applying: bool,
    /// Blobs of the last final rounds, oldest first.
    pub(crate) kept: VecDeque<Vec<Hash>>,
    /// The block whose outcome was adopted in an earlier life and is fetched again, because its
    /// blobs are gone.
    pub(crate) again: Option<Hash>,
    pub(crate) round: OnRound,
    pub(crate) wants: Waiting,
}

/// What belongs to the round under way and ends with it.
#[derive(Default)]
pub(crate) struct OnRound {
    /// Stops the training when set.
    cancel: Arc<AtomicBool>,
    /// Models seen, after the gate.
    gated: BTreeMap<Hash, Once<Params>>,
    /// The sheet whose models are all here.
    sheet: Option<Arc<Material>>,
    /// Outcomes computed.
    settled: BTreeMap<Hash, Arc<Settled>>,
}

impl Drop for OnRound {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

/// Jobs that wait for blobs.
#[derive(Default)]
pub(crate) struct Waiting(Wants<Do>);

/// Why a job has no answer of its own kind.
type Failed = WorkError;

impl WorkerActor {
    /// Begins, or first asks for the blobs that are missing.
    fn take(&mut self, job: Do, ctx: &mut Context<Self>) {
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
            // As if nobody had them: asked for again after a beat.
            for wish in error.into_inner().blobs {
                self.unavailable(&wish.hash, Vec::new());
            }
        }
    }

    /// For work that is not about the round under way: what to answer, which may be nothing.
    fn stale(&self, effect: &Effect) -> Option<Option<Answer>> {
        let (now, about) = (self.ground.next(), round_of(effect));
        match effect {
            Effect::Apply { .. } if about > self.ground.round => None,
            Effect::Apply { .. } => Some(Some(
                Input::Applied {
                    round: about,
                    result: Ok(()),
                }
                .into(),
            )),
            Effect::Plan { state, .. } if about >= now => {
                let fits = about == now && *state == self.ground.outcome;
                let why = || format!("round {about} was planned on an outcome not adopted here");
                (!fits).then(|| Some(Answer::defect(why())))
            }
            _ if about < now => Some(None),
            _ if about > now => Some(failed(effect, WorkError::Unavailable)),
            _ => None,
        }
    }

    /// What must be here before work can begin; or why it never can.
    fn needs(&self, effect: &Effect) -> Result<Needs, Failed> {
        match effect {
            Effect::Admit { fields, from, .. } => {
                self.ground
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
            Effect::Apply { rounds, holders } => self.needs_outcome(rounds, holders),
            _ => Ok(Needs::default()),
        }
    }

    fn needs_sheet(&self, sheet: &Arc<Sheet>, holders: &[MemberIndex]) -> Result<Needs, Failed> {
        if self.round.has(sheet) {
            return Ok(Needs::default());
        }
        self.needs_entries(&sheet.entries, holders)
    }

    fn needs_entries(
        &self,
        entries: &[SheetEntry],
        holders: &[MemberIndex],
    ) -> Result<Needs, Failed> {
        for entry in entries {
            self.ground
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

    /// Begins what has been waiting for its last blob.
    fn resume(&mut self, job: Do, ctx: &mut Context<Self>) {
        let staged = is_apply(&job.effect);
        self.applying &= !staged;
        // The document of an outcome says which blobs are needed next.
        if staged || self.stale(&job.effect).is_some() {
            self.take(job, ctx);
        } else {
            self.begin(job, ctx);
        }
    }

    fn begin(&mut self, job: Do, ctx: &mut Context<Self>) {
        let Do { effect, reply } = job;
        match effect {
            Effect::Plan { .. } => self.plan(reply, ctx),
            Effect::Train { round } => self.train(round, reply, ctx),
            Effect::Admit { fields, from, .. } => self.admit(from, fields, reply, ctx),
            Effect::Evaluate { entries, .. } => self.evaluate(&entries, reply, ctx),
            // What it asks for is done: every blob was kept when it arrived.
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
            Effect::Send { .. }
            | Effect::Publish { .. }
            | Effect::Persist(_)
            | Effect::Report(_) => {}
        }
    }

    /// Runs a job in the pool; `end` makes its answer from its result, or from what it panicked
    /// with, back on the actor.
    fn run<T: Send + 'static>(
        &self,
        ctx: &mut Context<Self>,
        reply: Recipient<Answer>,
        work: Work,
        job: impl FnOnce() -> T + Send + 'static,
        end: impl FnOnce(&mut Self, Result<T, String>) -> Answer + 'static,
    ) {
        answer(ctx, reply, run(&*self.pool, work, job), end);
    }

    /// Where the model of that blob is after the gate, or will be.
    fn gated(&mut self, blob: &Hash) -> Once<Params> {
        let (checks, ground) = (&self.checks, &self.ground);
        let new = || checks.gate(ground.gate_key(blob), ground.next());
        self.round.gated.entry(*blob).or_insert_with(new).clone()
    }

    fn keep(&self, blobs: impl Iterator<Item = (Hash, Bytes)>) -> Result<(), StoreError> {
        let remember = |(hash, blob): &(Hash, Bytes)| self.checks.remember(blob, *hash);
        self.blobs.put_all(blobs.inspect(remember).collect())
    }

    /// Nobody gave a blob, or it could not be kept: then `why` says so.
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

impl Handler<Do> for WorkerActor {
    type Result = ();

    fn handle(&mut self, job: Do, ctx: &mut Context<Self>) {
        // The state machine asks for an outcome until it is adopted: once at a time is enough.
        let again = self.applying && is_apply(&job.effect);
        if self.life.alive() && !again {
            self.take(job, ctx);
        }
    }
}

impl Handler<Arrived> for WorkerActor {
    type Result = ();

    fn handle(&mut self, Arrived { blobs, missing }: Arrived, ctx: &mut Context<Self>) {
        if !self.life.alive() {
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

/// Waits for the result of a job, and answers with what `end` makes of it.
fn answer<T: 'static>(
    ctx: &mut Context<WorkerActor>,
    reply: Recipient<Answer>,
    done: impl Future<Output = Result<T, String>> + 'static,
    end: impl FnOnce(&mut WorkerActor, Result<T, String>) -> Answer + 'static,
) {
    let done = wrap_future::<_, WorkerActor>(done);
    ctx.spawn(done.map(move |result, worker, _| {
        if worker.life.alive() {
            reply.do_send(end(worker, result));
        }
    }));
}

/// Answers a job that could not begin.
fn reply(job: &Do, error: WorkError) {
    if let Some(answer) = failed(&job.effect, error) {
        job.reply.do_send(answer);
    }
}

fn is_apply(effect: &Effect) -> bool {
    matches!(effect, Effect::Apply { .. })
}

/// The round that work is about.
fn round_of(effect: &Effect) -> u64 {
    match effect {
        Effect::Plan { round, .. }
        | Effect::Train { round }
        | Effect::Admit { round, .. }
        | Effect::Evaluate { round, .. }
        | Effect::Hold { round, .. }
        | Effect::Decide { round, .. } => *round,
        Effect::Check { case, .. } | Effect::Settle { case, .. } => case.round,
        Effect::Apply { rounds, .. } => rounds.last().map_or(0, |last| last.round),
        Effect::Send { .. } | Effect::Publish { .. } | Effect::Persist(_) | Effect::Report(_) => 0,
    }
}

/// The answer that work gave no result; none for what is no work.
fn failed(effect: &Effect, error: WorkError) -> Option<Answer> {
    let round = round_of(effect);
    let input = match effect {
        Effect::Train { .. } => Input::Trained {
            round,
            result: Err(said(error)),
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
            result: Err(error),
        },
        _ => return None,
    };
    Some(input.into())
}

fn blobs(entries: &[SheetEntry]) -> Vec<Hash> {
    entries.iter().map(|entry| entry.fields.blob).collect()
}

fn said(error: WorkError) -> String {
    match error {
        WorkError::Unavailable => "what it needs cannot be had now".into(),
        WorkError::Refused(reason) => reason,
    }
}
