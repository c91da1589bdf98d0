//! The result of every silo, members and outsiders: the model that it adopted or was given, and the
//! references that it is compared with.

use std::sync::Arc;

use agreement::silo_seed;
use learn::{RowCounts, Study};
use methods::learner::{Split, Task};
use methods::robust::Radius;
use methods::serving::{Alone, Candidate, Comparison, alone_start, mean_of_coalitions, members_of};
use methods::strategy::{Newcomer, OwnRadius};
use methods::{Learner, Params};
use protocol::{Hash, MemberIndex};

use crate::error::RunError;
use crate::federate::RunRecord;
use crate::federation::Federation;
use crate::participation::Participation;
use crate::pool::Threads;
use crate::scenario::Scenario;

use super::ServedInfo;
use super::metrics::{AdoptedModel, OwnModel, adopted_models, last_adopted};

/// The references that a federation is compared with.
#[derive(Default)]
pub(crate) struct Reference {
    /// Whether references are computed.
    pub(crate) wanted: bool,
    /// One global model, without what a strategy's wrappers add to it.
    pub(crate) global: Option<Params>,
}

/// The result of one silo, with metrics on its own held-out rows.
pub(super) struct SiloResult {
    pub(super) name: String,
    pub(super) rows: RowCounts,
    /// Its position among the members; `None` for a silo outside.
    pub(super) member: Option<usize>,
    pub(super) coalition_index: Option<u32>,
    pub(super) model: Option<Hash>,
    pub(super) local: Option<f64>,
    pub(super) global: Option<f64>,
    pub(super) coalition: Option<f64>,
    pub(super) pooled: Option<f64>,
    pub(super) served: Option<ServedInfo>,
}

/// What the measurements of all silos share.
struct Context {
    key: &'static str,
    alone: Alone,
    folds: usize,
    reference: bool,
    global: Option<Params>,
    pooled: Option<Params>,
    last: Option<AdoptedModel>,
    radius: Radius,
}

/// Measures the members and then the silos outside, in the order of the study.
pub(super) fn silo_results(
    scenario: &Scenario,
    study: &Study,
    participation: &Participation,
    federation: &Federation,
    recorded: &RunRecord,
    reference: &Reference,
    threads: &Arc<Threads>,
) -> Result<Vec<SiloResult>, RunError> {
    let n = participation.members.len();
    let finals = last_adopted(&adopted_models(&recorded.notices), n);
    let newest = finals.iter().flatten().max_by_key(|adopted| adopted.round);
    let initial = federation.members[0].initial_seed;
    let first = 1 + u64::from(scenario.strategy.standardise);
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
    let pooled = study.pooled.as_ref().filter(|_| reference.wanted);
    let pooled = pooled.map(|pooled| {
        let (learner, alone) = (pooled(&participation.members), alone.clone());
        move || alone.train(&*learner).ok().map(|(model, _)| model)
    });
    let pooled = threads.all(pooled).map_err(RunError::Setup)?;
    let context = Arc::new(Context {
        key: study.metric.name.key(),
        alone,
        folds: scenario.serve.folds,
        reference: reference.wanted,
        global: reference.global.clone(),
        pooled: pooled.into_iter().flatten().next(),
        last: newest.cloned(),
        radius: scenario.charter.radius.clone(),
    });
    let members = participation.members.iter().map(|&at| (at, true));
    let others = participation.others.iter().map(|&at| (at, false));
    let strategy = &federation.members[0].strategy;
    let mut jobs = Vec::new();
    for (nth, (at, takes_part)) in members.chain(others).enumerate() {
        let silo = &study.silos[at];
        let plain = silo.learner.clone();
        let (equipped, adopted) = match takes_part {
            true => (federation.members[nth].learner.clone(), finals[nth].clone()),
            false => {
                let equipped = strategy.equip(plain.clone());
                (
                    equipped.map_err(|error| RunError::Setup(error.to_string()))?,
                    None,
                )
            }
        };
        let silo = (silo.name.clone(), silo.rows);
        let seed = silo_seed(federation.seed, MemberIndex(nth as u16));
        let (context, strategy) = (context.clone(), strategy.clone());
        jobs.push(move || {
            let coalition_index = adopted.as_ref().map(|adopted| adopted.coalition);
            let own = match (adopted, &context.last) {
                (Some(adopted), _) => Some(adopted.model),
                (None, Some(last)) if !takes_part => {
                    let personal = equipped.initial_personal(initial);
                    let radius = OwnRadius::from(context.radius.clone());
                    let newcomer = Newcomer {
                        learner: &*equipped,
                        personal: &personal,
                        radius: &radius,
                        seed: equipped.seed(seed, last.round + 1),
                    };
                    let given = strategy.unseen(&last.state, last.round + 1, newcomer);
                    // The newcomer trains its personal parameters around the model that it is
                    // given.
                    let alone = context.alone_with(seed);
                    given
                        .and_then(|model| alone.around(&*equipped, &model))
                        .ok()
                }
                _ => None,
            };
            let (name, rows) = silo;
            let shared = coalition_index.is_none_or(|own| context.shares(own));
            let mut result = context.measure(&*plain, &*equipped, seed, own, shared);
            (result.name, result.rows, result.coalition_index) = (name, rows, coalition_index);
            result.member = takes_part.then_some(nth);
            result
        });
    }
    threads.all(jobs).map_err(RunError::Setup)
}

impl Context {
    fn measure(
        &self,
        plain: &dyn Learner,
        equipped: &dyn Learner,
        seed: u64,
        own: Option<OwnModel>,
        shared: bool,
    ) -> SiloResult {
        let value = |learner: &dyn Learner, (model, personal): &OwnModel| {
            let metrics = learner.evaluate(model, personal, Split::Test).ok()?;
            metrics.values.get(self.key).copied()
        };
        let alone = self.alone_with(seed);
        let local = self.reference.then(|| alone.train(plain).ok()).flatten();
        let of_plain = |model: &Params| {
            let personal = plain.initial_personal(self.alone.initial);
            value(plain, &(model.clone(), personal))
        };
        let global = self
            .last
            .as_ref()
            .and_then(|last| mean_of_coalitions(&last.state.models, &last.assignment));
        let served = match (&local, &own) {
            (Some(local), Some(coalition)) if self.folds > 0 => {
                let comparison = Comparison {
                    plain,
                    equipped,
                    alone: &alone,
                    local,
                    coalition,
                    shared,
                    global: global.as_ref(),
                    folds: self.folds,
                }
                .serve();
                let learner = match comparison.candidate {
                    Candidate::Local => plain,
                    _ => equipped,
                };
                Some(ServedInfo {
                    candidate: comparison.candidate,
                    metric: value(learner, &comparison.model),
                    measured: comparison.measured,
                })
            }
            _ => None,
        };
        SiloResult {
            name: String::new(),
            rows: RowCounts::default(),
            member: None,
            coalition_index: None,
            model: own.as_ref().map(|(model, _)| Hash(model.hash())),
            local: local.as_ref().and_then(|local| value(plain, local)),
            global: self.global.as_ref().and_then(of_plain),
            coalition: own.as_ref().and_then(|own| value(equipped, own)),
            pooled: self.pooled.as_ref().and_then(of_plain),
            served,
        }
    }

    fn alone_with(&self, seed: u64) -> Alone {
        Alone {
            seed,
            ..self.alone.clone()
        }
    }

    /// Whether several entries of the last round are of this coalition.
    fn shares(&self, coalition: u32) -> bool {
        let last = self.last.as_ref();
        last.is_some_and(|last| members_of(&last.assignment, coalition) > 1)
    }
}
