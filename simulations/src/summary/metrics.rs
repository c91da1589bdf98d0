//! Metrics of adopted models on held-out data.

use std::sync::Arc;

use learn::Study;
use methods::learner::Split;
use methods::{Learner, Params, State};
use protocol::{MemberIndex, Time};
use silo::Notice;

use crate::error::RunError;
use crate::pool::Threads;

/// A model and the personal parameters of its silo.
pub(crate) type OwnModel = (Params, Params);

/// A model that a silo adopted.
#[derive(Clone)]
pub(crate) struct AdoptedModel {
    pub(crate) silo: usize,
    pub(crate) round: u64,
    pub(crate) coalition: u32,
    pub(crate) model: OwnModel,
    pub(crate) state: Arc<State>,
    pub(crate) assignment: Arc<[u32]>,
}

/// Every adoption, in the order of the notices.
pub(crate) fn adopted_models(notices: &[(Time, MemberIndex, Notice)]) -> Vec<AdoptedModel> {
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
pub(super) fn last_adopted(adopted: &[AdoptedModel], silos: usize) -> Vec<Option<AdoptedModel>> {
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

/// The learners of silos, with or without the strategy's wrappers.
pub(super) type Learners = [Arc<dyn Learner>];

/// The study's metric of each of these models, by silo, on the held-out rows of that silo.
pub(super) fn measure(
    study: &Study,
    learners: &Learners,
    models: Vec<(usize, OwnModel)>,
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
