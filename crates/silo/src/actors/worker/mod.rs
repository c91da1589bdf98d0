//! Does the heavy work of a silo, also when the silo leads.
//!
//! Work begins when all blobs that it needs are here. Missing blobs are fetched through the mesh,
//! each once at a time; if no member has one, the result is [`WorkError::Unavailable`]. The work
//! itself is a job for the pool, a function of its arguments; only its result touches the actor.

mod agree;
mod apply;
mod manifest;
mod masked;
mod part;
mod wants;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::fut::{ActorFutureExt, wrap_future};
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Recipient};
use bytes::Bytes;
use methods::Params;
use protocol::message::{Entry as ManifestEntry, RoundManifest};
use protocol::work::{Answer, Request, WorkError};
use protocol::{Hash, MemberIndex};

use manifest::ManifestModels;
use wants::Wants;

use super::messages::{Fetch, Fetched, Halt, WorkRequest, WorkResult};
use crate::activity::Activities;
use crate::checks::{Checks, HeldTranscripts, Shared};
use crate::clock::Clock;
use crate::config::SiloConfig;
use crate::environment::{Blobs, Pool, WorkSize, run};
use crate::error::StoreError;
use crate::notice::Notice;
use crate::outcome::Settled;
use crate::rounds::{LastTraining, OpeningRound, OwnState, PreparedRound, RoundBase};
use crate::run_state::RunState;
use crate::secrets::RoundSecrets;
use crate::site::SiteRules;

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
    /// What this silo keeps to itself for the secure-aggregation round under way.
    pub(crate) prepared: Option<Arc<PreparedRound>>,
    /// Gives the secrets of secure-aggregation rounds.
    pub(crate) secrets: Box<dyn RoundSecrets>,
    /// The final secure-aggregation round that is being opened.
    pub(crate) opening: Option<Arc<OpeningRound>>,
    /// What rounding left out of the model contributed last, for the next one. Not durable: a silo
    /// that restarts begins without.
    pub(crate) rest: Option<Params>,
    /// True if an outcome is being adopted: one at a time.
    pub(crate) applying: bool,
    /// Blobs of the last final rounds, oldest first.
    pub(crate) kept: VecDeque<Vec<Hash>>,
    /// Blobs of the last void rounds of this epoch, oldest first, with the silo's secrets.
    pub(crate) void: VecDeque<Vec<Hash>>,
    /// The block whose outcome was adopted before a restart and is fetched again, because its
    /// blobs are missing.
    pub(crate) again: Option<Hash>,
    pub(crate) round: CurrentRound,
    pub(crate) wants: WaitingWork,
    /// What the institution has set.
    pub(crate) site: SiteRules,
}

/// State of the round under way; dropped with it.
#[derive(Default)]
pub(crate) struct CurrentRound {
    /// Stops the training when set.
    cancel: Arc<AtomicBool>,
    /// Models that have passed the gate, or will.
    gated: BTreeMap<Hash, Shared<Params>>,
    /// The manifest whose models are all here.
    manifest: Option<Arc<ManifestModels>>,
    /// Outcomes computed here.
    settled: BTreeMap<Hash, Arc<Settled>>,
    /// Transcripts that hold.
    transcripts: Arc<HeldTranscripts>,
}

impl Drop for CurrentRound {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

/// Requests that wait for blobs.
#[derive(Default)]
pub(crate) struct WaitingWork(Wants<WorkRequest>);

/// Blobs without which work cannot begin, and members that may have them.
#[derive(Debug, Default, PartialEq, Eq)]
struct NeededBlobs {
    /// Hash and largest size in bytes.
    blobs: Vec<(Hash, u64)>,
    from: Vec<MemberIndex>,
}

impl WorkerActor {
    /// Begins, or first fetches the missing blobs.
    fn take(&mut self, job: WorkRequest, ctx: &mut Context<Self>) {
        if let Some(answer) = self.stale(&job.request) {
            return answer
                .into_iter()
                .for_each(|answer| job.reply.do_send(answer));
        }
        let needs = match self.needs(&job.request) {
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
        self.applying |= is_apply(&job.request);
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
            // As if no member had them: they are requested again after a heartbeat.
            for wish in error.into_inner().blobs {
                self.unavailable(&wish.hash, Vec::new());
            }
        }
    }

    /// The result of work of another round than the one under way. `Some(None)`: there is none.
    fn stale(&self, request: &Request) -> Option<Option<WorkResult>> {
        let (now, about) = (self.base.next(), request.round());
        match request {
            Request::Apply { .. } if about > self.base.round => None,
            Request::Apply { .. } => Some(Some(
                Answer::Applied {
                    round: about,
                    ends: false,
                    result: Ok(()),
                }
                .into(),
            )),
            Request::Plan { state, .. } if about >= now => {
                let fits = about == now && *state == self.base.outcome;
                let why = || {
                    format!(
                        "expected a plan of round {now} on the adopted outcome, found one of round {about}"
                    )
                };
                (!fits).then(|| Some(WorkResult::defect(why())))
            }
            _ if about < now => Some(None),
            _ if about > now => Some(request.failed(WorkError::Unavailable).map(WorkResult::from)),
            _ => None,
        }
    }

    /// The blobs that work needs before it can begin. An error if it never can.
    fn needs(&self, request: &Request) -> Result<NeededBlobs, WorkError> {
        match request {
            Request::Admit { fields, from, .. } => {
                self.base
                    .fits(&self.config, fields)
                    .map_err(WorkError::Refused)?;
                Ok(NeededBlobs {
                    blobs: vec![(fields.blob, fields.size)],
                    from: vec![*from],
                })
            }
            Request::Evaluate {
                entries, holders, ..
            } => self.needs_entries(entries, holders),
            Request::Hold {
                entries, holders, ..
            } => self.needs_entries(entries, holders),
            Request::Decide {
                manifest, holders, ..
            } => self.needs_manifest(manifest, holders),
            Request::Check { case, holders } | Request::Settle { case, holders } => {
                self.needs_manifest(&case.manifest, holders)
            }
            Request::Apply { rounds, holders } => match rounds.last() {
                Some(last) => self.needs_outcome(&last.outcome, holders),
                None => Ok(NeededBlobs::default()),
            },
            Request::Keep {
                outcome, holders, ..
            } => {
                self.bounded(outcome)?;
                self.needs_outcome(outcome, holders)
            }
            Request::Plan { .. }
            | Request::Train { .. }
            | Request::Prepare { .. }
            | Request::CheckKeys { .. }
            | Request::Mask { .. } => Ok(NeededBlobs::default()),
            Request::Verify {
                list,
                manifest,
                holders,
            } => self.needs_masked(list, manifest, holders),
            Request::Unmask { of, holders } | Request::Combine { of, holders, .. } => {
                self.needs_opening(of, holders)
            }
        }
    }

    fn needs_manifest(
        &self,
        manifest: &Arc<RoundManifest>,
        holders: &[MemberIndex],
    ) -> Result<NeededBlobs, WorkError> {
        if self.round.has(manifest) {
            return Ok(NeededBlobs::default());
        }
        self.needs_entries(&manifest.entries, holders)
    }

    fn needs_entries(
        &self,
        entries: &[ManifestEntry],
        holders: &[MemberIndex],
    ) -> Result<NeededBlobs, WorkError> {
        for entry in entries {
            self.base
                .fits(&self.config, &entry.fields)
                .map_err(WorkError::Refused)?;
        }
        let blobs = entries
            .iter()
            .map(|entry| (entry.fields.blob, entry.fields.size))
            .collect();
        Ok(NeededBlobs {
            blobs,
            from: holders.to_vec(),
        })
    }

    /// Begins work whose last blob has arrived.
    fn resume(&mut self, job: WorkRequest, ctx: &mut Context<Self>) {
        let staged = matches!(
            job.request,
            Request::Apply { .. }
                | Request::Keep { .. }
                | Request::Unmask { .. }
                | Request::Combine { .. }
        );
        self.applying &= !is_apply(&job.request);
        // The document of an outcome names the blobs that are needed next, and so do list and manifest.
        if staged || self.stale(&job.request).is_some() {
            self.take(job, ctx);
        } else {
            self.begin(job, ctx);
        }
    }

    fn begin(&mut self, job: WorkRequest, ctx: &mut Context<Self>) {
        let WorkRequest { request, reply } = job;
        match request {
            Request::Plan { .. } => self.plan(reply, ctx),
            Request::Train { round } => self.train(round, reply, ctx),
            Request::Admit { fields, from, .. } => self.admit(from, fields, reply, ctx),
            Request::Evaluate { entries, .. } => self.evaluate(&entries, reply, ctx),
            // Every blob was stored when it arrived, so nothing is left to do.
            Request::Hold { round, entries, .. } => {
                let blobs = entries.iter().map(|entry| entry.fields.blob).collect();
                let result = Ok(());
                let held = Answer::Held {
                    round,
                    blobs,
                    result,
                };
                reply.do_send(held.into());
            }
            Request::Decide { manifest, .. } => self.decide(manifest, reply, ctx),
            Request::Check { case, .. } => self.check(case, reply, ctx),
            Request::Settle { case, .. } => self.settle(case, reply, ctx),
            Request::Apply { rounds, .. } => self.apply(rounds, reply, ctx),
            Request::Keep { round, outcome, .. } => self.keep(round, outcome, reply, ctx),
            Request::Prepare { round } => self.prepare(round, reply, ctx),
            Request::CheckKeys { round, keys, from } => {
                self.check_keys((round, keys, from), reply, ctx);
            }
            Request::Mask { list } => self.mask(list, reply, ctx),
            Request::Verify { list, manifest, .. } => self.verify(list, manifest, reply, ctx),
            Request::Unmask { of, .. } => self.unmask(of, reply, ctx),
            Request::Combine { of, unmaskings, .. } => self.combine(of, unmaskings, reply, ctx),
        }
    }

    /// Runs a job in the pool. On the actor, `end` turns its result, or the text of its panic, into
    /// the answer.
    fn run<T: Send + 'static>(
        &self,
        ctx: &mut Context<Self>,
        reply: Recipient<WorkResult>,
        work: WorkSize,
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
            self.applying &= !is_apply(&job.request);
            if let Some(answer) = job.request.failed(WorkError::Unavailable) {
                let mut answer = WorkResult::from(answer);
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
        let again = self.applying && is_apply(&job.request);
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
    if let Some(answer) = job.request.failed(error) {
        job.reply.do_send(answer.into());
    }
}

fn is_apply(request: &Request) -> bool {
    matches!(request, Request::Apply { .. })
}
