//! A silo's own part in a round: plan, training, evaluation; and the lead's admission of
//! contributions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use actix::{Context, Recipient};
use methods::{Progress, Task};
use protocol::effects::{Answer, Planned, Trained, WorkError};
use protocol::message::{Entry, EntryFields};
use protocol::{Hash, MemberIndex, codec};

use super::WorkerActor;
use crate::actors::messages::WorkResult;
use crate::environment::WorkSize;
use crate::notice::Notice;
use crate::record::JournalRecord;
use crate::rounds::{Contributed, LastTraining, Personal, contribute, score, with_model};

impl WorkerActor {
    /// Computes the plan of the round under way.
    pub(super) fn plan(&mut self, reply: Recipient<WorkResult>, ctx: &mut Context<Self>) {
        let (config, base) = (self.config.clone(), self.base.clone());
        let bytes = base
            .state
            .models
            .iter()
            .map(|model| model.document().len() as u64)
            .sum();
        let job = move || {
            let plan = base.plan(&config);
            let participants = plan.participants.as_ref();
            Planned {
                round: base.next(),
                plan: Hash::of(&codec::encode(plan)),
                participants: participants
                    .map(|members| members.iter().copied().map(MemberIndex).collect()),
                cross_evaluate: plan.cross_evaluate,
                weights: plan.weights,
                blob_size: base.blob_size(),
                voids: base.voids.clone(),
            }
        };
        self.run(
            ctx,
            reply,
            WorkSize::Models { bytes },
            job,
            |_, planned| match planned {
                Ok(planned) => Answer::Planned(planned).into(),
                Err(panic) => WorkResult::defect(panic),
            },
        );
    }

    /// The training of the round under way from the model of the silo's own coalition, as a job, and its
    /// size.
    pub(super) fn training(
        &self,
    ) -> (
        WorkSize,
        impl FnOnce() -> Result<Contributed, String> + Send + 'static,
    ) {
        let (config, base, own) = (self.config.clone(), self.base.clone(), self.own.clone());
        let (cancel, seen) = (self.round.cancel.clone(), self.activities.clone());
        let plan = base.plan(&config);
        let visits = match &plan.task {
            Task::Train(training) => u64::from(training.epochs),
            Task::Summarise | Task::Keep | Task::Answer(_) => 1,
        };
        let work = WorkSize::Train {
            samples: visits * config.learner.samples(),
        };
        let (coalition, rest) = (own.coalition, self.rest.clone());
        let blobs = self.blobs.clone();
        let job = move || {
            let mut progress = |progress: Progress| {
                seen.report(progress);
                if cancel.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let personal = &own.personal;
            let kept = rest.as_ref();
            let trained = contribute(&config, &base, coalition, personal, kept, &mut progress);
            trained.map(|contributed| contributed.in_files(&base, &*blobs))
        };
        (work, job)
    }

    /// Trains from the model of the silo's own coalition.
    pub(super) fn train(
        &mut self,
        round: u64,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        if let Err(reason) = self.site.allow(round, self.base.blob_size()) {
            let result = Err(reason);
            return reply.do_send(Answer::Trained { round, result }.into());
        }
        let weights = self.base.plan(&self.config).weights;
        let (work, job) = self.training();
        let began = self.clock.now();
        self.run(ctx, reply, work, job, move |worker, result| {
            let update = worker.in_time(round, result);
            let seconds = worker.clock.since(began).as_secs_f64();
            match update.and_then(|update| worker.trained(round, weights, seconds, update)) {
                Ok(answer) => answer,
                Err(reason) => Answer::Trained {
                    round,
                    result: Err(reason),
                }
                .into(),
            }
        });
    }

    /// The result of a training for a round, or why there is none.
    pub(super) fn in_time<T>(
        &self,
        round: u64,
        result: Result<Result<T, String>, String>,
    ) -> Result<T, String> {
        // Checked first, so that the answer does not depend on when the training was cancelled.
        if round == self.base.next() {
            result.and_then(|trained| trained)
        } else {
            Err("its round has ended".into())
        }
    }

    /// Stores the result of a training.
    fn trained(
        &mut self,
        round: u64,
        weights: bool,
        seconds: f64,
        result: Contributed,
    ) -> Result<WorkResult, String> {
        let fields = result.fields(&self.config, weights);
        let (loss, further) = (result.loss(), result.further());
        let Contributed {
            document,
            blob,
            rest,
            personal,
            samples,
            metrics: values,
            admitted,
            ..
        } = result;
        // A rounded one would take memory of its own.
        if self.base.encoding.is_exact() {
            // It has just passed the gate of this round, so nobody needs to check it again here.
            let _ = self.gated(&blob).compute(|| Ok(admitted));
        }
        let personal = Personal::new(personal);
        self.store(
            [
                (blob, document),
                (personal.hash, personal.params.document()),
            ]
            .into_iter(),
        )
        .map_err(|error| error.to_string())?;
        let record = JournalRecord::Trained {
            round,
            blob: blob.0,
            personal: personal.hash.0,
        };
        self.rest = rest;
        self.trained = Some(LastTraining {
            round,
            blob,
            personal,
        });
        let result = Ok(Trained {
            fields,
            metrics: values.into_iter().collect(),
        });
        Ok(WorkResult {
            records: vec![record],
            line: self.site.line(&self.config.member.epoch, round, blob),
            retain: None,
            notices: vec![Notice::Trained {
                round,
                loss,
                samples,
                seconds,
                metrics: further,
            }],
            answer: Ok(Answer::Trained { round, result }),
        })
    }

    /// Checks whether a contribution can be used.
    pub(super) fn admit(
        &mut self,
        from: MemberIndex,
        fields: EntryFields,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base, blob) = (self.config.clone(), self.base.clone(), fields.blob);
        let (checks, round) = (self.checks.clone(), base.next());
        let (gated, document) = (self.gated(&blob), self.blobs.get(&blob));
        let claimed = fields.clone();
        let job = move || {
            let document = document.ok_or(WorkError::Unavailable)?;
            let model = gated
                .compute(|| base.admit(document, checks.largest(&blob)))
                .map_err(WorkError::Refused)?;
            let entry = with_model(model, &claimed);
            config
                .strategy
                .admit_after(&base.state, &entry, round)
                .map_err(WorkError::Refused)
        };
        self.run(
            ctx,
            reply,
            WorkSize::Models { bytes: fields.size },
            job,
            move |_, result| {
                let result = result.unwrap_or_else(refused);
                Answer::Admitted {
                    round,
                    from,
                    fields,
                    result,
                }
                .into()
            },
        );
    }

    /// Measures the loss of these entries' models on the silo's own data.
    pub(super) fn evaluate(
        &mut self,
        entries: &[Entry],
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base) = (self.config.clone(), self.base.clone());
        let (checks, round) = (self.checks.clone(), base.next());
        let models: BTreeMap<_, _> = entries
            .iter()
            .map(|entry| entry.fields.blob)
            .map(|blob| (blob, (self.gated(&blob), self.blobs.get(&blob))))
            .collect();
        let work = WorkSize::Evaluate {
            models: models.len() as u64,
        };
        let (own, trained) = (self.own.clone(), self.trained.clone());
        let job = move || {
            let models = models.into_iter().map(|(blob, (gated, document))| {
                let model = document.ok_or(WorkError::Unavailable).and_then(|document| {
                    // An honest lead has admitted nothing that does not pass the gate.
                    gated
                        .compute(|| base.admit(document, checks.largest(&blob)))
                        .map_err(WorkError::Refused)
                });
                (blob, model)
            });
            score(&config, &base, &own, trained.as_ref(), models)
        };
        self.run(ctx, reply, work, job, move |_, result| {
            Answer::Evaluated {
                round,
                result: result.unwrap_or_else(refused),
            }
            .into()
        });
    }
}

/// Turns the panic of a job into a refusal.
pub(super) fn refused<T>(panic: String) -> Result<T, WorkError> {
    Err(WorkError::Refused(panic))
}
