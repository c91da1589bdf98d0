//! What models are worth on data that training never saw, and what they are compared with.

use std::ops::ControlFlow;
use std::sync::Arc;

use learn::Study;
use methods::learner::{Split, Task};
use methods::{LearnError, Learner, Params};
use protocol::{MemberIndex, Time};
use silo::Notice;

use crate::federation::Federation;
use crate::pool::Threads;
use crate::run::{Recorded, RunError};
use crate::scenario::Scenario;

/// A model with what is personal to its silo.
pub(crate) type Owned = (Params, Params);

/// What a federation is compared with.
#[derive(Default)]
pub(crate) struct Reference {
    /// What the silos of a federation with one model for everybody told.
    pub(crate) global: Option<Vec<(Time, MemberIndex, Notice)>>,
    /// Models that silos trained alone.
    pub(crate) local: Vec<Option<Owned>>,
}

/// A model that a silo adopted.
#[derive(Clone)]
pub(super) struct AdoptedModel {
    pub(super) silo: usize,
    pub(super) round: u64,
    pub(super) coalition: u32,
    pub(super) model: Owned,
}

/// Every adoption, in the order of the notices.
pub(super) fn adopted(notices: &[(Time, MemberIndex, Notice)]) -> Vec<AdoptedModel> {
    notices
        .iter()
        .filter_map(|(_, silo, notice)| match notice {
            Notice::Adopted {
                round,
                coalition,
                model,
                personal,
                ..
            } => Some(AdoptedModel {
                silo: silo.at(),
                round: *round,
                coalition: *coalition,
                model: (model.clone(), personal.clone()),
            }),
            _ => None,
        })
        .collect()
}

/// The last model of every silo.
pub(super) fn last(adopted: &[AdoptedModel], silos: usize) -> Vec<Option<AdoptedModel>> {
    (0..silos)
        .map(|silo| {
            adopted
                .iter()
                .rev()
                .find(|model| model.silo == silo)
                .cloned()
        })
        .collect()
}

/// The model from which a silo trains alone: the initial one, on the common scale if there is one.
pub(crate) fn common_start(scenario: &Scenario, recorded: &Recorded) -> Option<Params> {
    let scaled = scenario.strategy.standardise;
    let first = adopted(&recorded.notices)
        .into_iter()
        .find(|adopted| adopted.round == 1)?;
    scaled.then_some(first.model.0)
}

/// Trains every silo alone, as it would without a strategy, for as many rounds as the federation
/// trained; `None` where a silo cannot train.
pub(crate) fn alone(
    scenario: &Scenario,
    study: &Study,
    federation: &Federation,
    start: Option<Params>,
    threads: &Arc<Threads>,
) -> Result<Vec<Option<Owned>>, RunError> {
    let first = 1 + u64::from(scenario.strategy.standardise);
    let rounds = first..=scenario.rounds;
    let silos = study.silos.iter().zip(&federation.members);
    let jobs = silos.map(|(silo, config)| {
        let (learner, seed, initial) = (silo.learner.clone(), config.seed, config.initial_seed);
        let start = start.clone().unwrap_or_else(|| learner.initial(initial));
        let task = Task::Train(scenario.strategy.training.clone());
        let rounds = rounds.clone();
        move || train(&*learner, start, initial, &task, seed, rounds).ok()
    });
    threads.all(jobs).map_err(RunError::Setup)
}

fn train(
    learner: &dyn Learner,
    start: Params,
    initial: u64,
    task: &Task,
    seed: u64,
    rounds: std::ops::RangeInclusive<u64>,
) -> Result<Owned, LearnError> {
    let (mut model, mut personal) = (start, learner.initial_personal(initial));
    for round in rounds {
        let seed = learner.seed(seed, round);
        let mut go_on = |_| ControlFlow::Continue(());
        let update = learner.train(&model, &personal, task, seed, &mut go_on)?;
        (model, personal) = (update.shared, update.personal);
    }
    Ok((model, personal))
}

/// What silos learn with, as a strategy equips them or not.
pub(super) type Learners = [Arc<dyn Learner>];

/// The study's metric of each of these models, which are of these learners, on its silo's held-out
/// rows.
pub(super) fn measure(
    study: &Study,
    learners: &Learners,
    models: Vec<(usize, Owned)>,
    threads: &Arc<Threads>,
) -> Result<Vec<Option<f64>>, RunError> {
    let key = study.metric.name.key();
    let jobs = models.into_iter().map(|(silo, (model, personal))| {
        let learner = learners[silo].clone();
        move || {
            let metrics = learner.evaluate(&model, &personal, Split::Test).ok()?;
            metrics.values.get(key).copied()
        }
    });
    threads.all(jobs).map_err(RunError::Setup)
}

/// [`measure`] where some silos have no model.
pub(super) fn measure_some(
    study: &Study,
    learners: &Learners,
    models: Vec<Option<Owned>>,
    threads: &Arc<Threads>,
) -> Result<Vec<Option<f64>>, RunError> {
    let mut values = vec![None; study.silos.len()];
    let there: Vec<_> = models
        .into_iter()
        .enumerate()
        .filter_map(|(silo, model)| Some((silo, model?)))
        .collect();
    let silos: Vec<_> = there.iter().map(|(silo, _)| *silo).collect();
    for (silo, value) in silos
        .into_iter()
        .zip(measure(study, learners, there, threads)?)
    {
        values[silo] = value;
    }
    Ok(values)
}
