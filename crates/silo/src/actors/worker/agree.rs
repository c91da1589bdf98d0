//! Work on a manifest: deciding, checking a decision, computing its outcome.

use std::sync::Arc;

use actix::{Context, Recipient};
use methods::LoadedManifest;
use protocol::Hash;
use protocol::effects::{Answer, Case, WorkError};
use protocol::message::RoundManifest;

use super::part::refused;
use super::{WorkerActor, answer};
use crate::actors::messages::WorkResult;
use crate::checks::Shared;
use crate::environment::{WorkSize, wait};
use crate::outcome::Settled;
use crate::rounds;

impl WorkerActor {
    /// Cache key of a result of the round under way.
    fn key(&self, what: &str, case: &Hash) -> Hash {
        let epoch = &self.config.member.epoch.id;
        Hash::labelled(what, &[&epoch.0, &self.base.outcome.0, &case.0])
    }

    /// Chooses a decision, as the lead.
    pub(super) fn decide(
        &mut self,
        signed: Arc<RoundManifest>,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base) = (self.config.clone(), self.base.clone());
        let (root, work) = (signed.root(), work(&signed));
        let models = self.loaded_manifest(&signed);
        let job =
            move || rounds::decide(&config, &base, models.manifest()?).map_err(WorkError::Refused);
        self.run(ctx, reply, work, job, move |_, result| {
            Answer::Decided {
                manifest: root,
                result: result.unwrap_or_else(refused),
            }
            .into()
        });
    }

    /// Checks a decision.
    pub(super) fn check(
        &mut self,
        case: Case,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base) = (self.config.clone(), self.base.clone());
        let (checks, id) = (self.checks.clone(), case.id());
        let shared = checks.check(self.key("check", &id), base.next());
        let check = move |case: &Case, manifest: &LoadedManifest| {
            checks.count_check();
            rounds::check(&config, &base, manifest, &case.decision)
        };
        self.share(ctx, reply, case, shared, check, move |_, result| {
            Answer::Checked { case: id, result }.into()
        });
    }

    /// Computes the outcome of a decision, and stores its document and models.
    pub(super) fn settle(
        &mut self,
        case: Case,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base, blobs) = (self.config.clone(), self.base.clone(), self.blobs.clone());
        let (checks, id, round) = (self.checks.clone(), case.id(), base.next());
        let shared = checks.settle(self.key("settle", &id), round);
        let settle = move |case: &Case, manifest: &LoadedManifest| {
            checks.count_settle();
            let (signed, decided) = (&case.manifest, &case.decision);
            let to_file = |blob| blobs.to_file(blob);
            let settled = rounds::settle(&config, &base, signed, manifest, decided, to_file)?;
            Ok(Arc::new(settled.with_manifest(signed)))
        };
        self.share(ctx, reply, case, shared, settle, move |worker, result| {
            let result = result.and_then(|settled| worker.settled(round, settled));
            Answer::Settled { case: id, result }.into()
        });
    }

    /// Runs work on a case that has the same result at every silo. It is a job of its own unless
    /// another silo of this process has claimed it.
    fn share<T: Clone + Send + Sync + 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        reply: Recipient<WorkResult>,
        case: Case,
        shared: Shared<T>,
        compute: impl FnOnce(&Case, &LoadedManifest) -> Result<T, String> + Send + 'static,
        end: impl FnOnce(&mut Self, Result<T, WorkError>) -> WorkResult + 'static,
    ) {
        let work = work(&case.manifest);
        let end = move |worker: &mut Self, result: Result<Result<T, WorkError>, String>| {
            end(worker, result.unwrap_or_else(refused))
        };
        if shared.is_claimed() {
            self.manifest_models(&case.manifest);
            let job = move || shared.wait().map_err(WorkError::Refused);
            return answer(ctx, reply, wait(&*self.pool, work, job), end);
        }
        let models = self.loaded_manifest(&case.manifest);
        // Without the models nothing will be computed that others could wait for.
        if models.are_loaded() {
            shared.claim();
        }
        let job = move || {
            let manifest = match models.manifest() {
                Err(WorkError::Unavailable) => return Err(WorkError::Unavailable),
                Err(WorkError::Refused(why)) => Err(why),
                Ok(manifest) => Ok(manifest),
            };
            shared
                .compute(|| compute(&case, manifest?))
                .map_err(WorkError::Refused)
        };
        self.run(ctx, reply, work, job, end);
    }

    pub(super) fn settled(&mut self, round: u64, settled: Arc<Settled>) -> Result<Hash, WorkError> {
        let hash = settled.hash;
        if round == self.base.next() {
            self.store(settled.blobs())
                .map_err(|_| WorkError::Unavailable)?;
            let kept = |hash: &Hash, blob| self.blobs.shared(hash, blob);
            let settled = settled.read_from_store(kept);
            self.round.settled.insert(hash, settled);
        }
        Ok(hash)
    }
}

fn work(manifest: &RoundManifest) -> WorkSize {
    WorkSize::Models {
        bytes: manifest.entries.iter().map(|entry| entry.fields.size).sum(),
    }
}
