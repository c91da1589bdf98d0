//! The result of every silo, members and outsiders: the model that it adopted or was given, and the
//! references that it is compared with.

use std::collections::BTreeMap;
use std::sync::Arc;

use agreement::silo_seed;
use learn::{RowCounts, Study};
use methods::learner::Task;
use methods::robust::Radius;
use methods::serving::{
    Alone, CandidateComparison, ComparedModels, Effort, LocalModels, TUNING_FOLDS, alone_start,
    is_never_trained, mean_of_coalitions, members_of, model_of_all_rows,
};
use methods::strategy::WeightRule;
use methods::{Learner, Params};
use protocol::{Hash, MemberIndex};

use crate::participation::ParticipatingSilos;
use crate::reference::{Reached, References};
use simulations::Federation;
use simulations::RunError;
use simulations::RunRecord;
use simulations::pool::Threads;
use simulations::scenario::Scenario;

use super::measured::{HeldOutResults, TrainingTargets, measured};
use super::metrics::{AdoptedModel, OwnModel, adopted_models, last_adopted};
use super::newcomers::given_model;
use super::results::ModelKind;
use super::serving::{self, ComparedSilo};
use super::silo_result::SiloResult;

/// What the measurements of all silos share.
struct Context {
    key: &'static str,
    alone: Alone,
    folds: usize,
    adapted: bool,
    reference: bool,
    effort: Effort,
    /// The reference that a coalition's model is itself, if it is one.
    itself: Option<ModelKind>,
    pooled: Option<Params>,
    /// Why references have no model.
    failed: BTreeMap<ModelKind, String>,
    last: Option<AdoptedModel>,
    radius: Radius,
}

/// Measures the members and then the unseen silos, in the order of the study.
pub(super) fn silo_results(
    scenario: &Scenario,
    study: &Study,
    participation: &ParticipatingSilos,
    federation: &Federation,
    recorded: &RunRecord,
    references: &References,
    threads: &Arc<Threads>,
) -> Result<Vec<SiloResult>, RunError> {
    let n = participation.members.len();
    let finals = last_adopted(&adopted_models(&recorded.notices), n);
    let newest = finals.iter().flatten().max_by_key(|adopted| adopted.round);
    let context = Context::new(
        scenario,
        study,
        participation,
        federation,
        references,
        newest,
        threads,
    )?;
    let context = Arc::new(context);
    let members = participation.members.iter().map(|&at| (at, true));
    let others = participation.others.iter().map(|&at| (at, false));
    let strategy = &federation.members[0].strategy;
    let mut jobs = Vec::new();
    for (nth, (at, takes_part)) in members.chain(others).enumerate() {
        let silo = &study.silos[at];
        let plain = silo.learner.clone();
        let (equipped, adopted) = if takes_part {
            (federation.members[nth].learner.clone(), finals[nth].clone())
        } else {
            let equipped = strategy.equip(plain.clone());
            (
                equipped.map_err(|error| RunError::Setup(error.to_string()))?,
                None,
            )
        };
        let silo = (silo.name.clone(), silo.group.clone(), silo.rows);
        let seed = silo_seed(federation.seed, MemberIndex(nth as u16));
        let (context, strategy) = (context.clone(), strategy.clone());
        let averages = averages(references, nth, takes_part, &plain)?;
        jobs.push(move || {
            let coalition_index = adopted.as_ref().map(|adopted| adopted.coalition);
            let own = match (adopted, &context.last) {
                (Some(adopted), _) => Some(adopted.model),
                (None, Some(last)) if !takes_part => {
                    let alone = Alone {
                        rounds: *context.alone.rounds.start()..=last.round,
                        ..context.alone_with(seed)
                    };
                    let (state, radius) = (&last.state, &context.radius);
                    given_model(&*strategy, &*equipped, state, radius, &alone).ok()
                }
                _ => None,
            };
            let (name, group, rows) = silo;
            let members = coalition_index.map_or(usize::MAX, |own| context.members_of(own));
            let (mut result, compared) =
                context.measure(&plain, &equipped, seed, own, members, rows);
            if rows.test > 0 {
                let averages = averages.into_iter();
                let averages = averages.map(|average| average.measured(&context, seed));
                result.models.extend(averages);
            }
            (result.name, result.group, result.rows) = (name, group, rows);
            result.coalition_index = coalition_index;
            result.member = takes_part.then_some(nth);
            ComparedSilo {
                result,
                compared,
                plain,
                equipped,
            }
        });
    }
    serving::serve(
        threads.all(jobs).map_err(RunError::Setup)?,
        context.key,
        threads,
    )
}

/// A reference at one silo.
struct Average {
    kind: ModelKind,
    learner: Arc<dyn Learner>,
    model: Params,
    /// What a member keeps; a silo outside trains it around the model.
    personal: Option<Params>,
}

/// The references at one silo, as its strategy equips it for them.
fn averages(
    references: &References,
    nth: usize,
    takes_part: bool,
    plain: &Arc<dyn Learner>,
) -> Result<Vec<Average>, RunError> {
    // What is personal is trained around the model at a silo outside, if it has rows to train on.
    let possible = |reached: &Reached| {
        let personal = reached.personal.first();
        takes_part || plain.samples() > 0 || personal.is_none_or(|own| own.values().is_empty())
    };
    let reached = references.reached.iter();
    let reached = reached.filter(|(_, reached)| possible(reached));
    let each = reached.map(|(&kind, reached)| {
        let learner = reached.strategy.equip(plain.clone());
        Ok(Average {
            kind,
            learner: learner.map_err(|error| RunError::Setup(error.to_string()))?,
            model: reached.model.clone(),
            personal: takes_part.then(|| reached.personal[nth].clone()),
        })
    });
    each.collect()
}

impl Average {
    fn measured(self, context: &Context, seed: u64) -> (ModelKind, Result<HeldOutResults, String>) {
        let model = match self.personal {
            Some(personal) => Ok((self.model, personal)),
            None => context
                .alone_with(seed)
                .around(&*self.learner, &self.model)
                .map_err(|error| error.to_string()),
        };
        (
            self.kind,
            model.and_then(|model| measured(&self.learner, &model)),
        )
    }
}

impl Context {
    /// Trains the model of all rows, where it is wanted, and puts together what is shared. `newest` is the
    /// newest model that a member adopted.
    fn new(
        scenario: &Scenario,
        study: &Study,
        participation: &ParticipatingSilos,
        federation: &Federation,
        references: &References,
        newest: Option<&AdoptedModel>,
        threads: &Arc<Threads>,
    ) -> Result<Self, RunError> {
        let initial = federation.members[0].initial_seed;
        let first = scenario.strategy.first_training();
        let plain = &*study.silos[0].learner;
        let alone = Alone {
            start: match newest {
                Some(adopted) => alone_start(plain, initial, &adopted.model.0),
                None => plain.initial(initial),
            },
            initial,
            task: Task::Train(scenario.strategy.training.clone()),
            seed: federation.seed,
            rounds: first..=scenario.rounds,
        };
        // This comes first, because every silo is compared with it.
        let pooled = study.pooled.as_ref().filter(|_| references.wanted);
        let pooled = pooled.map(|pooled| {
            let (learner, alone) = (pooled(&participation.members), alone.clone());
            move || model_of_all_rows(&*learner, &alone, |_| ())
        });
        let pooled = threads.all(pooled).map_err(RunError::Setup)?;
        let pooled = pooled.into_iter().next();
        let mut failed = references.failed.clone();
        if let Some(Err(error)) = &pooled {
            failed.insert(ModelKind::Pooled, error.to_string());
        }
        let work = participation
            .members
            .iter()
            .map(|&at| Effort::work(&*study.silos[at].learner, &alone));
        let effort = Effort::within(work.sum());
        Ok(Self {
            key: study.metric.name.key(),
            alone,
            folds: scenario.serve.folds,
            adapted: scenario.is_noised(),
            reference: references.wanted,
            effort,
            itself: references.itself.or_else(|| {
                let weight = scenario.strategy.plain_average();
                weight.map(|weight| match weight {
                    WeightRule::Exact => ModelKind::Global,
                    WeightRule::Equal => ModelKind::GlobalEqual,
                })
            }),
            pooled: pooled.and_then(Result::ok),
            failed,
            last: newest.cloned(),
            radius: scenario.protocol.radius.clone(),
        })
    }

    /// Measures the models of one silo.
    fn measure(
        &self,
        plain: &Arc<dyn Learner>,
        equipped: &Arc<dyn Learner>,
        seed: u64,
        own: Option<OwnModel>,
        members: usize,
        rows: RowCounts,
    ) -> (SiloResult, Option<ComparedModels>) {
        let mut models = BTreeMap::new();
        let alone = self.alone_with(seed);
        let folds = match self.folds {
            0 => TUNING_FOLDS,
            folds => folds,
        };
        // A silo that only tests has no model of its own.
        let reference = self.reference && rows.train > 0;
        let local = reference.then(|| LocalModels::tune(&**plain, &alone, folds, self.effort));
        let local = match local {
            Some(Err(error)) => {
                models.insert(ModelKind::Local, Err(error.to_string()));
                None
            }
            trained => trained.and_then(Result::ok),
        };
        let of_plain = |model: &Params| {
            let personal = plain.initial_personal(self.alone.initial);
            measured(plain, &(model.clone(), personal))
        };
        let compared = match (&local, &own) {
            (Some(local), Some(coalition)) if self.folds > 0 => {
                let learners = (plain, equipped);
                Some(self.compare(learners, &alone, local, (coalition, members)))
            }
            _ => None,
        };
        let own = own.as_ref();
        let adopted = own.map(|own| measured(equipped, own));
        let targets = match (own, &adopted) {
            (Some(own), Some(Ok(adopted))) => TrainingTargets::of(equipped, own, adopted),
            _ => None,
        };
        models.extend(self.itself.zip(adopted.clone()));
        let tuned = local.as_ref().and_then(|local| local.tuned.clone());
        models.extend(local.map(|local| (ModelKind::Local, measured(plain, &local.model))));
        models.extend(adopted.map(|adopted| (ModelKind::Coalition, adopted)));
        let pooled = self.pooled.as_ref();
        models.extend(pooled.map(|model| (ModelKind::Pooled, of_plain(model))));
        let failed = self.failed.iter();
        models.extend(
            failed.map(|(&kind, reason)| (kind, Err(format!("its training failed {reason}")))),
        );
        if rows.test == 0 {
            // What learns only is not measured.
            models.clear();
        }
        let result = SiloResult {
            name: String::new(),
            group: None,
            rows: RowCounts::default(),
            member: None,
            coalition_index: None,
            model: own.map(|(model, _)| Hash(model.hash())),
            never_trained: own.is_some_and(|(model, personal)| {
                is_never_trained(&**equipped, (model, personal), self.alone.initial)
            }),
            targets,
            models,
            served: None,
            tuned,
        };
        (result, compared)
    }

    /// Compares what a silo could serve: its local model, that of its coalition with so many members, or the
    /// mean of all coalitions.
    fn compare(
        &self,
        (plain, equipped): (&Arc<dyn Learner>, &Arc<dyn Learner>),
        alone: &Alone,
        local: &LocalModels,
        (coalition, members): (&OwnModel, usize),
    ) -> ComparedModels {
        let global = self
            .last
            .as_ref()
            .and_then(|last| mean_of_coalitions(&last.state.models, &last.assignment));
        CandidateComparison {
            plain: &**plain,
            equipped: &**equipped,
            alone,
            local,
            coalition,
            members,
            global: global.as_ref().zip(Some(self.entries())),
            folds: self.folds,
            adapted: self.adapted,
        }
        .compare()
    }

    fn alone_with(&self, seed: u64) -> Alone {
        Alone {
            seed,
            ..self.alone.clone()
        }
    }

    /// Returns how many entries of the last round are of this coalition.
    fn members_of(&self, coalition: u32) -> usize {
        let last = self.last.as_ref();
        last.map_or(0, |last| members_of(&last.assignment, coalition))
    }

    /// Entries of the last round.
    fn entries(&self) -> usize {
        self.last.as_ref().map_or(1, |last| last.assignment.len())
    }
}
