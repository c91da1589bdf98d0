//! What is agreed on: deciding, checking a decision, computing its outcome.

use std::sync::Arc;

use actix::{Context, Recipient};
use bytes::Bytes;
use methods::{Decision, Entry, Scores, Sheet};
use protocol::effects::{Case, WorkError};
use protocol::message::{EntryFields, Sheet as Signed};
use protocol::{Hash, Input, codec};

use super::part::refused;
use super::{Ground, WorkerActor};
use crate::actors::silo::Answer;
use crate::checks::{Gated, Once};
use crate::outcome::Settled;
use crate::surroundings::Work;

/// Everything that a sheet is made from, in the hands of a job.
struct Material {
    ground: Arc<Ground>,
    entries: Vec<(EntryFields, Once<Gated>, Bytes)>,
    scores: Option<Vec<Vec<f64>>>,
}

impl Material {
    /// The sheet as strategies see it: every model through the gate.
    fn sheet(self) -> Result<Sheet, String> {
        let entry = |(fields, gated, document): (EntryFields, Once<Gated>, Bytes)| {
            let admit = || {
                self.ground
                    .gate
                    .admit(document)
                    .map_err(|error| error.to_string())
            };
            let model = gated.get_or_init(admit).clone()?;
            Ok(Entry {
                model,
                coalition: fields.coalition,
                weight: fields.weight,
            })
        };
        let scores = self.scores.map(|rows| Scores::from_rows(&rows)).transpose();
        Ok(Sheet {
            entries: self
                .entries
                .into_iter()
                .map(entry)
                .collect::<Result<_, String>>()?,
            scores: scores.map_err(|error| error.to_string())?,
        })
    }
}

impl WorkerActor {
    /// Gathers what a sheet needs; `None` if a blob went away meanwhile.
    fn material(&mut self, sheet: &Signed) -> Option<Material> {
        let entries = sheet.entries.iter().map(|entry| {
            let fields = entry.fields.clone();
            let document = self.blobs.get(&fields.blob)?;
            Some((fields.clone(), self.gated(&fields.blob), document))
        });
        let entries = entries.collect::<Option<Vec<_>>>()?;
        Some(Material {
            ground: self.ground.clone(),
            entries,
            scores: sheet.scores.clone(),
        })
    }

    /// Names a result of the round under way, for the memo.
    fn key(&self, what: &str, case: &Hash) -> Hash {
        let epoch = &self.config.member.epoch.id;
        Hash::labelled(what, &[&epoch.0, &self.ground.outcome.0, &case.0])
    }

    /// The lead's choice.
    pub(super) fn decide(
        &mut self,
        signed: &Signed,
        reply: Recipient<Answer>,
        ctx: &mut Context<Self>,
    ) {
        let (config, ground) = (self.config.clone(), self.ground.clone());
        let (root, work) = (signed.root(), work(signed));
        let material = self.material(signed);
        let job = move || {
            let sheet = material.ok_or(WorkError::Unavailable)?.sheet();
            let decision = sheet.and_then(|sheet| {
                let decision = config.strategy.decide(&ground.state, &sheet, ground.next());
                decision.map_err(|error| error.to_string())
            });
            decision
                .map(|decision| codec::encode(&decision))
                .map_err(WorkError::Refused)
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
        let (checks, id, work) = (self.checks.clone(), case.id(), work(&case.sheet));
        let once = checks.check(self.key("check", &id), ground.next());
        let material = self.material(&case.sheet);
        let job = move || {
            let material = material.ok_or(WorkError::Unavailable)?;
            let check = || {
                checks.count_check();
                let (sheet, decision) = (material.sheet()?, decision(&case)?);
                let checked =
                    config
                        .strategy
                        .check(&ground.state, &sheet, &decision, ground.next());
                checked.map_err(|objection| objection.to_string())
            };
            once.get_or_init(check).clone().map_err(WorkError::Refused)
        };
        self.run(ctx, reply, work, job, move |_, result| {
            Input::Checked {
                case: id,
                result: result.unwrap_or_else(refused),
            }
            .into()
        });
    }

    /// Computes the outcome of a decision, and keeps its document and models.
    pub(super) fn settle(&mut self, case: Case, reply: Recipient<Answer>, ctx: &mut Context<Self>) {
        let (config, ground) = (self.config.clone(), self.ground.clone());
        let (checks, id, work) = (self.checks.clone(), case.id(), work(&case.sheet));
        let once = checks.settle(self.key("settle", &id), ground.next());
        let material = self.material(&case.sheet);
        let round = ground.next();
        let entries = case
            .sheet
            .entries
            .iter()
            .map(|entry| entry.fields.blob)
            .collect();
        let job = move || {
            let material = material.ok_or(WorkError::Unavailable)?;
            let settle = || {
                checks.count_settle();
                let (sheet, decision) = (material.sheet()?, decision(&case)?);
                let outcome = config
                    .strategy
                    .settle(&ground.state, &sheet, &decision, round);
                let outcome = outcome.map_err(|error| error.to_string())?;
                Ok(Arc::new(Settled::new(
                    round,
                    entries,
                    outcome.assignment,
                    outcome.state,
                )))
            };
            once.get_or_init(settle).clone().map_err(WorkError::Refused)
        };
        self.run(ctx, reply, work, job, move |worker, result| {
            let result = result.unwrap_or_else(refused);
            let result = result.and_then(|settled| worker.settled(round, settled));
            Input::Settled { case: id, result }.into()
        });
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
