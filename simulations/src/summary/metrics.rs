//! What models are worth on data that training never saw.

use std::sync::Arc;

use learn::Study;
use methods::learner::Split;
use methods::{Learner, Params, State};
use protocol::{MemberIndex, Time};
use silo::Notice;

use crate::error::RunError;
use crate::federate::Recorded;
use crate::pool::Threads;
use crate::scenario::Scenario;

/// A model with what is personal to its silo.
pub(crate) type Owned = (Params, Params);

/// A model that a silo adopted.
#[derive(Clone)]
pub(super) struct AdoptedModel {
    pub(super) silo: usize,
    pub(super) round: u64,
    pub(super) coalition: u32,
    pub(super) model: Owned,
    pub(super) state: Arc<State>,
    pub(super) assignment: Arc<[u32]>,
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
                state,
                assignment,
                ..
            } => Some(AdoptedModel {
                silo: silo.at(),
                round: *round,
                coalition: *coalition,
                model: (model.clone(), personal.clone()),
                state: state.clone(),
                assignment: assignment.clone(),
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

/// The last model of a federation with one for all.
pub(crate) fn final_model(recorded: &Recorded) -> Option<Params> {
    let adopted = adopted(&recorded.notices).into_iter();
    Some(adopted.max_by_key(|adopted| adopted.round)?.model.0)
}
