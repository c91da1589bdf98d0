//! A silo's own part in a round: plan, training, evaluation; and the lead's admission of
//! contributions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Context, Recipient};
use bytes::Bytes;
use methods::strategy::{Participant, Scored};
use methods::{Params, Progress, Scores, Task};
use protocol::effects::{Answer, Planned, Trained, WorkError};
use protocol::message::{Entry, EntryFields};
use protocol::{Hash, MemberIndex, codec};

use super::WorkerActor;
use crate::actors::messages::WorkResult;
use crate::base::{LastTraining, Personal, RoundBase, with_model};
use crate::config::SiloConfig;
use crate::notice::Notice;
use crate::record::Record;
use crate::surroundings::{Blobs, Work};

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
            }
        };
        self.run(
            ctx,
            reply,
            Work::Models { bytes },
            job,
            |_, planned| match planned {
                Ok(planned) => Answer::Planned(planned).into(),
                Err(panic) => WorkResult::defect(panic),
            },
        );
    }

    /// Trains from the model of the silo's own coalition.
    pub(super) fn train(
        &mut self,
        round: u64,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base, own) = (self.config.clone(), self.base.clone(), self.own.clone());
        let (cancel, seen) = (self.round.cancel.clone(), self.activities.clone());
        let plan = base.plan(&config);
        let visits = match &plan.task {
            Task::Train(training) => u64::from(training.epochs),
            Task::Summarise | Task::Keep => 1,
        };
        let weights = plan.weights;
        let work = Work::Train {
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
            let trained = train(&config, &base, coalition, personal, kept, &mut progress);
            trained.map(|contributed| contributed.laid_down(&*blobs))
        };
        let began = self.clock.now();
        self.run(ctx, reply, work, job, move |worker, result| {
            // Checked first, so that the answer does not depend on when the training was cancelled.
            let over = round != worker.base.next();
            let update = if over {
                Err("its round is over".into())
            } else {
                result
            };
            let update = update.and_then(|update| update);
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

    /// Stores the result of a training.
    fn trained(
        &mut self,
        round: u64,
        weights: bool,
        seconds: f64,
        result: Contributed,
    ) -> Result<WorkResult, String> {
        let Contributed {
            coalition,
            document,
            blob,
            rest,
            personal,
            samples,
            metrics: values,
            admitted,
        } = result;
        if let Some(model) = admitted {
            // It has just passed the gate of this round, so nobody needs to check it again here.
            let _ = self.gated(&blob).compute(|| Ok(model));
        }
        let personal = Personal::new(personal);
        let size = document.len() as u64;
        self.store(
            [
                (blob, document),
                (personal.hash, personal.params.document()),
            ]
            .into_iter(),
        )
        .map_err(|error| error.to_string())?;
        let record = Record::Trained {
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
        let epoch = &self.config.member.epoch;
        // Others would refuse more than was declared.
        let claimed = samples.min(epoch.roster.rows(self.config.member.me));
        let names = epoch.charter.shows_names();
        let loss = values.get("loss").copied().unwrap_or(f64::NAN);
        let fields = EntryFields {
            blob,
            size,
            coalition: Some(coalition),
            weight: weights.then_some(claimed),
            member: names.then_some(self.config.member.me),
        };
        let result = Ok(Trained {
            fields,
            metrics: values.into_iter().collect(),
        });
        Ok(WorkResult {
            records: vec![record],
            retain: None,
            notices: vec![Notice::Trained {
                round,
                loss,
                samples,
                seconds,
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
        let work = Work::Evaluate {
            models: models.len() as u64,
        };
        // Models of this round are evaluated with the personal state after the round's training.
        let own = self.own.clone();
        let trained = self
            .trained
            .clone()
            .filter(|trained| trained.round == round);
        let job = move || {
            let after = trained
                .as_ref()
                .map_or(&own.personal, |training| &training.personal);
            let participant = participant(&config, round, own.coalition, &own.personal);
            let plan = base.plan(&config);
            // The radius follows from the agreed state, not from any contribution.
            let agreed = base.state.models.first();
            let radius = agreed.map(|model| {
                participant
                    .radius
                    .get(&*config.learner, model, &own.personal.params)
            });
            if let Some(Err(error)) = radius {
                return Err(WorkError::Refused(error.to_string()));
            }
            let (mut losses, mut unusable) = (Vec::with_capacity(models.len()), None);
            for (blob, (gated, document)) in models {
                let document = document.ok_or(WorkError::Unavailable)?;
                // An honest lead has admitted nothing that does not pass the gate.
                let model = gated
                    .compute(|| base.admit(document, checks.largest(&blob)))
                    .map_err(WorkError::Refused)?;
                let scored = Scored {
                    model: &model,
                    personal: &after.params,
                    own: trained
                        .as_ref()
                        .is_some_and(|training| training.blob == blob),
                };
                let (strategy, state) = (&config.strategy, &base.state);
                let loss = strategy.score(state, plan, round, participant, scored);
                let loss = loss.map_err(|error| error.to_string());
                let finite = |loss: f64| {
                    let why = || format!("expected a finite loss of model {blob}, found {loss}");
                    loss.is_finite().then_some(loss).ok_or_else(why)
                };
                // A model that cannot be evaluated gets the largest loss, so that the others are
                // still scored.
                let loss = loss.and_then(finite).unwrap_or_else(|why| {
                    unusable.get_or_insert((0, why)).0 += 1;
                    Scores::LARGEST
                });
                losses.push((blob, loss));
            }
            match unusable {
                // If no model can be evaluated, the models are not the reason.
                Some((all, why)) if all == losses.len() => Err(WorkError::Refused(why)),
                _ => Ok(losses),
            }
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

/// What a strategy needs to know of this silo in a round.
fn participant<'a>(
    config: &'a SiloConfig,
    round: u64,
    coalition: u32,
    personal: &'a Personal,
) -> Participant<'a> {
    let learner = &*config.learner;
    Participant {
        member: config.member.me.0,
        coalition,
        learner,
        personal: &personal.params,
        radius: &config.radius,
        seed: learner.seed(config.seed, round),
    }
}

/// A trained model, ready to be contributed.
struct Contributed {
    coalition: u32,
    /// The bytes that are sent.
    document: Bytes,
    /// Their hash.
    blob: Hash,
    /// What rounding left out of them.
    rest: Option<Params>,
    personal: Params,
    /// Training rows.
    samples: u64,
    metrics: BTreeMap<String, f64>,
    /// The model as it passed the gate, in the memory of `document`; none where the encoding rounds.
    admitted: Option<Params>,
}

impl Contributed {
    /// The same with its bytes where they will be stored, see [`Blobs::lay_down`].
    fn laid_down(mut self, blobs: &dyn Blobs) -> Self {
        self.document = blobs.lay_down(self.document);
        let admitted = self.admitted.as_ref();
        self.admitted = admitted.map(|model| model.read_from(self.document.clone()));
        let personal = blobs.lay_down(self.personal.document());
        self.personal = self.personal.read_from(personal);
        self
    }
}

/// Trains, and checks that other members will accept the result.
fn train(
    config: &SiloConfig,
    base: &Arc<RoundBase>,
    coalition: u32,
    personal: &Personal,
    rest: Option<&Params>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Contributed, String> {
    let (plan, round) = (base.plan(config), base.next());
    let participant = participant(config, round, coalition, personal);
    let trained = config
        .strategy
        .contribute(&base.state, plan, round, participant, progress);
    let (coalition, update) = trained.map_err(|error| error.to_string())?;
    if update.personal.layout() != personal.params.layout() {
        return Err("the learner returned a personal state of another layout".into());
    }
    let sent = base.send(coalition, &update.shared, rest);
    let (sent, admitted) =
        sent.map_err(|error| format!("the trained model cannot be contributed: {error}"))?;
    // Hashed here rather than on the actor; the models cache their hashes.
    update.personal.hash();
    let blob = match base.encoding.is_exact() {
        true => Hash(update.shared.hash()),
        false => Hash::of(&sent.document),
    };
    Ok(Contributed {
        coalition,
        document: sent.document,
        blob,
        rest: sent.rest,
        personal: update.personal,
        samples: update.samples,
        metrics: update.metrics.values,
        // A rounded one takes memory of its own.
        admitted: base.encoding.is_exact().then_some(admitted),
    })
}
