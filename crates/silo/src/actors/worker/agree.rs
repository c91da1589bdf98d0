//! What is agreed on: deciding, checking a decision, computing its outcome.

use std::sync::{Arc, OnceLock};

use actix::{Context, Recipient};
use bytes::Bytes;
use methods::{Decision, Entry, Params, Scores, Sheet};
use protocol::effects::{Case, WorkError};
use protocol::message::{Entry as SheetEntry, Sheet as Signed};
use protocol::{Hash, Input, codec};

use super::part::refused;
use super::{Ground, OnRound, WorkerActor, answer};
use crate::actors::silo::Answer;
use crate::checks::Once;
use crate::outcome::Settled;
use crate::replay::unchanged;
use crate::surroundings::{Work, wait};

/// A sheet, and the models that it is about.
pub(super) struct Material {
    signed: Arc<Signed>,
    ground: Arc<Ground>,
    entries: OnceLock<Vec<(Once<Params>, Bytes)>>,
    sheet: OnceLock<Result<Sheet, String>>,
}

impl Material {
    /// The sheet as strategies see it: every model through the gate.
    fn sheet(&self) -> Result<&Sheet, WorkError> {
        let models = self.entries.get().ok_or(WorkError::Unavailable)?;
        let entries = self.signed.entries.iter().zip(models);
        let entry = |(entry, (gated, document)): (&SheetEntry, &(Once<Params>, Bytes))| {
            let admit = || {
                let admitted = self.ground.gate.admit(document.clone());
                admitted.map_err(|error| error.to_string())
            };
            Ok(Entry {
                model: gated.do_it(admit)?,
                coalition: entry.fields.coalition,
                weight: entry.fields.weight,
                member: entry.fields.member.map(|member| member.0),
            })
        };
        let sheet = || {
            let rows = self.signed.scores.as_ref();
            let scores = rows.map(|rows| Scores::from_rows(rows)).transpose();
            Ok(Sheet {
                entries: entries.map(entry).collect::<Result<_, String>>()?,
                scores: scores.map_err(|error| error.to_string())?,
            })
        };
        let sheet = self.sheet.get_or_init(sheet).as_ref();
        sheet.map_err(|why| WorkError::Refused(why.clone()))
    }
}

impl OnRound {
    /// Whether all models of this sheet are known to be here.
    pub(super) fn has(&self, sheet: &Arc<Signed>) -> bool {
        let known = self.sheet.as_ref();
        known.is_some_and(|known| Arc::ptr_eq(&known.signed, sheet))
    }
}

impl WorkerActor {
    /// The sheet, whose models are all here.
    fn material(&mut self, signed: &Arc<Signed>) -> Arc<Material> {
        if let Some(known) = self.round.sheet.as_ref().filter(|_| self.round.has(signed)) {
            return known.clone();
        }
        let material = Arc::new(Material {
            signed: signed.clone(),
            ground: self.ground.clone(),
            entries: OnceLock::new(),
            sheet: OnceLock::new(),
        });
        self.round.sheet = Some(material.clone());
        material
    }

    /// The same for a job that looks at the models.
    fn loaded(&mut self, signed: &Arc<Signed>) -> Arc<Material> {
        let material = self.material(signed);
        if material.entries.get().is_none() {
            let entries = signed.entries.iter().map(|entry| {
                let blob = &entry.fields.blob;
                Some((self.gated(blob), self.blobs.get(blob)?))
            });
            if let Some(entries) = entries.collect() {
                material.entries.get_or_init(|| entries);
            }
        }
        material
    }

    /// Names a result of the round under way, for the memo.
    fn key(&self, what: &str, case: &Hash) -> Hash {
        let epoch = &self.config.member.epoch.id;
        Hash::labelled(what, &[&epoch.0, &self.ground.outcome.0, &case.0])
    }

    /// The lead's choice.
    pub(super) fn decide(
        &mut self,
        signed: Arc<Signed>,
        reply: Recipient<Answer>,
        ctx: &mut Context<Self>,
    ) {
        let (config, ground) = (self.config.clone(), self.ground.clone());
        let (root, work) = (signed.root(), work(&signed));
        let material = self.loaded(&signed);
        let job = move || {
            let sheet = material.sheet()?;
            if sheet.entries.is_empty() {
                // Nobody came: there is nothing to choose.
                return Ok(Vec::new());
            }
            let decision = config.strategy.decide(&ground.state, sheet, ground.next());
            decision
                .map(|decision| codec::encode(&decision))
                .map_err(|error| WorkError::Refused(error.to_string()))
        };
        self.run(ctx, reply, work, job, move |_, result| {
            Input::Decided {
                sheet: root,
                result: result.unwrap_or_else(refused),
            }
            .into()
        });
    }

    /// Whether a decision is acceptable.
    pub(super) fn check(&mut self, case: Case, reply: Recipient<Answer>, ctx: &mut Context<Self>) {
        let (config, ground) = (self.config.clone(), self.ground.clone());
        let (checks, id) = (self.checks.clone(), case.id());
        let once = checks.check(self.key("check", &id), ground.next());
        let check = move |case: &Case, sheet: &Sheet| {
            checks.count_check();
            if sheet.entries.is_empty() {
                let nothing = case.decision.is_empty();
                let why = "a decision about nobody says something";
                return nothing.then_some(()).ok_or_else(|| why.into());
            }
            let (decision, round) = (decision(case)?, ground.next());
            let checked = config
                .strategy
                .check(&ground.state, sheet, &decision, round);
            checked.map_err(|objection| objection.to_string())
        };
        self.once(ctx, reply, case, once, check, move |_, result| {
            Input::Checked { case: id, result }.into()
        });
    }

    /// Computes the outcome of a decision, and keeps its document and models.
    pub(super) fn settle(&mut self, case: Case, reply: Recipient<Answer>, ctx: &mut Context<Self>) {
        let (config, ground) = (self.config.clone(), self.ground.clone());
        let (checks, id, round) = (self.checks.clone(), case.id(), ground.next());
        let once = checks.settle(self.key("settle", &id), round);
        let settle = move |case: &Case, sheet: &Sheet| {
            checks.count_settle();
            if sheet.entries.is_empty() {
                return Ok(Arc::new(unchanged(round, &ground.state)));
            }
            let decision = decision(case)?;
            let outcome = config
                .strategy
                .settle(&ground.state, sheet, &decision, round);
            let outcome = outcome.map_err(|error| error.to_string())?;
            let entries = case.sheet.entries.iter();
            Ok(Arc::new(Settled::new(
                round,
                entries.map(|entry| entry.fields.blob).collect(),
                outcome.assignment,
                outcome.state,
            )))
        };
        self.once(ctx, reply, case, once, settle, move |worker, result| {
            let result = result.and_then(|settled| worker.settled(round, settled));
            Input::Settled { case: id, result }.into()
        });
    }

    /// Work on a case that has the same result at every silo: a job, unless another silo of this
    /// process has taken it on.
    fn once<T: Clone + Send + Sync + 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        reply: Recipient<Answer>,
        case: Case,
        once: Once<T>,
        compute: impl FnOnce(&Case, &Sheet) -> Result<T, String> + Send + 'static,
        end: impl FnOnce(&mut Self, Result<T, WorkError>) -> Answer + 'static,
    ) {
        let work = work(&case.sheet);
        let end = move |worker: &mut Self, result: Result<Result<T, WorkError>, String>| {
            end(worker, result.unwrap_or_else(refused))
        };
        if once.taken() {
            self.material(&case.sheet);
            let job = move || once.wait().map_err(WorkError::Refused);
            return answer(ctx, reply, wait(&*self.pool, work, job), end);
        }
        let material = self.loaded(&case.sheet);
        // Without the models there is nothing that others could wait for.
        if material.entries.get().is_some() {
            once.take();
        }
        let job = move || {
            let sheet = match material.sheet() {
                Err(WorkError::Unavailable) => return Err(WorkError::Unavailable),
                Err(WorkError::Refused(why)) => Err(why),
                Ok(sheet) => Ok(sheet),
            };
            once.do_it(|| compute(&case, sheet?))
                .map_err(WorkError::Refused)
        };
        self.run(ctx, reply, work, job, end);
    }

    fn settled(&mut self, round: u64, settled: Arc<Settled>) -> Result<Hash, WorkError> {
        let hash = settled.hash;
        if round == self.ground.next() {
            self.keep(settled.blobs())
                .map_err(|_| WorkError::Unavailable)?;
            self.round.settled.insert(hash, settled);
        }
        Ok(hash)
    }
}

fn work(sheet: &Signed) -> Work {
    Work::Models {
        bytes: sheet.entries.iter().map(|entry| entry.fields.size).sum(),
    }
}

fn decision(case: &Case) -> Result<Decision, String> {
    let decision = codec::decode(&case.decision, codec::LIMIT);
    decision.map_err(|error| format!("the decision: {error}"))
}
