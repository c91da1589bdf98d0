//! A silo's own part in a round: plan, training, measuring; and, for the lead, letting a
//! contribution in.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use actix::{Context, Recipient};
use methods::Scores;
use methods::strategy::{Place, Scored, Site};
use methods::{Entry, Progress, Task, Update};
use protocol::effects::{Planned, Trained, WorkError};
use protocol::message::{Entry as SheetEntry, EntryFields};
use protocol::{Hash, Input, MemberIndex, codec};

use super::{Ground, Left, Personal, WorkerActor};
use crate::actors::silo::Answer;
use crate::config::SiloConfig;
use crate::notice::Notice;
use crate::record::Record;
use crate::surroundings::Work;

impl WorkerActor {
    /// Works out the plan of the round under way.
    pub(super) fn plan(&mut self, reply: Recipient<Answer>, ctx: &mut Context<Self>) {
        let (config, ground) = (self.config.clone(), self.ground.clone());
        let bytes = ground
            .state
            .models
            .iter()
            .map(|model| model.document().len() as u64)
            .sum();
        let job = move || {
            let plan = ground.plan(&config);
            let participants = plan.participants.as_ref();
            Planned {
                round: ground.next(),
                plan: Hash::of(&codec::encode(plan)),
                participants: participants
                    .map(|members| members.iter().copied().map(MemberIndex).collect()),
                cross_evaluate: plan.cross_evaluate,
                weights: plan.weights,
                blob_size: ground.blob_size(),
            }
        };
        self.run(
            ctx,
            reply,
            Work::Models { bytes },
            job,
            |_, planned| match planned {
                Ok(planned) => Input::Planned(planned).into(),
                Err(panic) => Answer::defect(panic),
            },
        );
    }

    /// Trains from the own coalition's model.
    pub(super) fn train(&mut self, round: u64, reply: Recipient<Answer>, ctx: &mut Context<Self>) {
        let (config, ground, own) = (self.config.clone(), self.ground.clone(), self.own.clone());
        let (cancel, seen) = (self.round.cancel.clone(), self.progress.clone());
        let plan = ground.plan(&config);
        let visits = match &plan.task {
            Task::Train(training) => u64::from(training.epochs),
            Task::Summarise | Task::Keep => 1,
        };
        let weights = plan.weights;
        let work = Work::Train {
            samples: visits * config.learner.samples(),
        };
        let coalition = own.coalition;
        let job = move || {
            let mut progress = |progress: Progress| {
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
                if cancel.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            train(&config, &ground, coalition, &own.personal, &mut progress)
        };
        let began = self.clock.now();
        self.run(ctx, reply, work, job, move |worker, result| {
            // First, so that the answer does not depend on when the training was cancelled.
            let over = round != worker.ground.next();
            let update = if over {
                Err("its round is over".into())
            } else {
                result
            };
            let update = update.and_then(|update| update);
            let seconds = worker.clock.since(began).as_secs_f64();
            match update.and_then(|update| worker.trained(round, weights, seconds, update)) {
                Ok(answer) => answer,
                Err(reason) => Input::Trained {
                    round,
                    result: Err(reason),
                }
                .into(),
            }
        });
    }

    /// Keeps what a training gave.
    fn trained(
        &mut self,
        round: u64,
        weights: bool,
        seconds: f64,
        (coalition, update): (u32, Update),
    ) -> Result<Answer, String> {
        let personal = Personal::new(update.personal);
        let document = update.shared.document();
        let (blob, size) = (Hash(update.shared.hash()), document.len() as u64);
        self.keep(
            [
                (blob, document),
                (personal.hash, personal.params.document()),
            ]
            .into_iter(),
        )
        .map_err(|error| error.to_string())?;
        let keep = Record::Trained {
            round,
            blob: blob.0,
            personal: personal.hash.0,
        };
        self.trained = Some(Left {
            round,
            blob,
            personal,
        });
        let names = self.config.member.epoch.charter.names_shown;
        let values = update.metrics.values;
        let loss = values.get("loss").copied().unwrap_or(f64::NAN);
        let fields = EntryFields {
            blob,
            size,
            coalition: Some(coalition),
            weight: weights.then_some(update.samples),
            member: names.then_some(self.config.member.me),
        };
        let result = Ok(Trained {
            fields,
            metrics: values.into_iter().collect(),
        });
        Ok(Answer {
            keep: vec![keep],
            retain: None,
            notices: vec![Notice::Trained {
                round,
                loss,
                samples: update.samples,
                seconds,
            }],
            input: Ok(Input::Trained { round, result }),
        })
    }

    /// Sees whether a contribution can be used.
    pub(super) fn admit(
        &mut self,
        from: MemberIndex,
        fields: EntryFields,
        reply: Recipient<Answer>,
        ctx: &mut Context<Self>,
    ) {
        let (config, ground, blob) = (self.config.clone(), self.ground.clone(), fields.blob);
        let round = ground.next();
        let (gated, document) = (self.gated(&blob), self.blobs.get(&blob));
        let said = fields.clone();
        let job = move || {
            let document = document.ok_or(WorkError::Unavailable)?;
            let admit = || {
                ground
                    .gate
                    .admit(document)
                    .map_err(|error| error.to_string())
            };
            let model = gated.do_it(admit).map_err(WorkError::Refused)?;
            let entry = Entry {
                model,
                coalition: said.coalition,
                weight: said.weight,
                member: said.member.map(|member| member.0),
            };
            config
                .strategy
                .admit(&entry, round)
                .map_err(WorkError::Refused)
        };
        self.run(
            ctx,
            reply,
            Work::Models { bytes: fields.size },
            job,
            move |_, result| {
                let result = result.unwrap_or_else(refused);
                Input::Admitted {
                    round,
                    from,
                    fields,
                    result,
                }
                .into()
            },
        );
    }

    /// Measures the own loss of these entries' models.
    pub(super) fn evaluate(
        &mut self,
        entries: &[SheetEntry],
        reply: Recipient<Answer>,
        ctx: &mut Context<Self>,
    ) {
        let (config, ground) = (self.config.clone(), self.ground.clone());
        let round = ground.next();
        let models: BTreeMap<_, _> = entries
            .iter()
            .map(|entry| entry.fields.blob)
            .map(|blob| (blob, (self.gated(&blob), self.blobs.get(&blob))))
            .collect();
        let work = Work::Evaluate {
            models: models.len() as u64,
        };
        // What is personal goes with the models of this round as its own training left it.
        let own = self.own.clone();
        let trained = self
            .trained
            .clone()
            .filter(|trained| trained.round == round);
        let job = move || {
            let after = trained
                .as_ref()
                .map_or(&own.personal, |left| &left.personal);
            let site = site(&config, round, own.coalition, &own.personal);
            let plan = ground.plan(&config);
            // By what was agreed on, before anybody's contribution is looked at.
            let agreed = ground.state.models.first();
            let radius = agreed.map(|model| {
                site.radius
                    .get(&*config.learner, model, &own.personal.params)
            });
            if let Some(Err(error)) = radius {
                return Err(WorkError::Refused(error.to_string()));
            }
            let (mut losses, mut unusable) = (Vec::with_capacity(models.len()), None);
            for (blob, (gated, document)) in models {
                let document = document.ok_or(WorkError::Unavailable)?;
                let admit = || {
                    ground
                        .gate
                        .admit(document)
                        .map_err(|error| error.to_string())
                };
                // An honest lead has let in nothing that does not pass the gate.
                let model = gated.do_it(admit).map_err(WorkError::Refused)?;
                let scored = Scored {
                    model: &model,
                    personal: &after.params,
                    own: trained.as_ref().is_some_and(|left| left.blob == blob),
                };
                let (strategy, state) = (&config.strategy, &ground.state);
                let loss = strategy.score(state, plan, round, site, scored);
                let loss = loss.map_err(|error| error.to_string());
                let finite = |loss: f64| {
                    let why = || format!("the loss of model {blob} on the own data is not finite");
                    loss.is_finite().then_some(loss).ok_or_else(why)
                };
                // A model that cannot be used is the worst there is; it must not keep the others
                // from being scored.
                let loss = loss.and_then(finite).unwrap_or_else(|why| {
                    unusable.get_or_insert((0, why)).0 += 1;
                    Scores::LARGEST
                });
                losses.push((blob, loss));
            }
            match unusable {
                // Then it is not the models.
                Some((all, why)) if all == losses.len() => Err(WorkError::Refused(why)),
                _ => Ok(losses),
            }
        };
        self.run(ctx, reply, work, job, move |_, result| {
            Input::Evaluated {
                round,
                result: result.unwrap_or_else(refused),
            }
            .into()
        });
    }
}

/// What a panic of a job is to the protocol.
pub(super) fn refused<T>(panic: String) -> Result<T, WorkError> {
    Err(WorkError::Refused(panic))
}

/// The silo at work in a round.
fn site<'a>(
    config: &'a SiloConfig,
    round: u64,
    coalition: u32,
    personal: &'a Personal,
) -> Site<'a> {
    let learner = &*config.learner;
    let place = Place {
        member: config.member.me.0,
        coalition,
        learner,
        personal: &personal.params,
    };
    Site {
        place,
        radius: &config.radius,
        seed: learner.seed(config.seed, round),
    }
}

/// A training, and what it gives made sure of: nobody contributes what others refuse.
fn train(
    config: &SiloConfig,
    ground: &Arc<Ground>,
    coalition: u32,
    personal: &Personal,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(u32, Update), String> {
    let (plan, round) = (ground.plan(config), ground.next());
    let site = site(config, round, coalition, personal);
    let trained = config
        .strategy
        .contribute(&ground.state, plan, round, site, progress);
    let (coalition, update) = trained.map_err(|error| error.to_string())?;
    if update.personal.layout() != personal.params.layout() {
        return Err("the learner's personal state changed its shape".into());
    }
    let passed = ground.gate.admit(update.shared.document());
    passed.map_err(|error| format!("the trained model cannot be contributed: {error}"))?;
    // Computed here rather than on the actor; remembered by the models.
    update.shared.hash();
    update.personal.hash();
    Ok((coalition, update))
}
