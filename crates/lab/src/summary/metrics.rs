//! Metrics of adopted models on held-out data.

use std::collections::BTreeMap;
use std::sync::Arc;

use learn::Study;
use methods::learner::Split;
use methods::{Learner, Params, State};
use protocol::{MemberIndex, Time};
use silo::Notice;

use simulations::RunError;
use simulations::pool::Threads;

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
pub(crate) fn last_adopted(adopted: &[AdoptedModel], silos: usize) -> Vec<Option<AdoptedModel>> {
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

/// For each of these learners, the place of the first whose metrics of every model are the same: both are
/// those of their silos, without a wrapper, and the silos are tested on the same rows.
fn alike(study: &Study, learners: &[Arc<dyn Learner>]) -> Vec<usize> {
    let plain = |at: usize| Arc::ptr_eq(&study.silos[at].learner, &learners[at]);
    let first = |at: usize| {
        let same =
            |&one: &usize| plain(one) && plain(at) && study.silos[one].tests_like(&study.silos[at]);
        (0..at).find(same).unwrap_or(at)
    };
    (0..learners.len()).map(first).collect()
}

/// The study's metric of each of these models, by silo, on the held-out rows of that silo. `learners` are
/// those of its silos, with or without a wrapper.
pub(super) fn measure(
    study: &Study,
    learners: &[Arc<dyn Learner>],
    models: Vec<(usize, OwnModel)>,
    threads: &Arc<Threads>,
) -> Result<Vec<Option<f64>>, RunError> {
    let key = study.metric.name.key();
    let alike = alike(study, learners);
    let mut jobs = Vec::new();
    let mut known = BTreeMap::new();
    // A model that several silos adopted is measured once, where they are tested on the same rows.
    let places: Vec<usize> = models
        .into_iter()
        .map(|(silo, (model, personal))| {
            let silo = alike[silo];
            let same = (silo, model.hash(), personal.hash());
            *known.entry(same).or_insert_with(|| {
                let learner = learners[silo].clone();
                jobs.push(move || {
                    let metrics = learner.evaluate(&model, &personal, Split::Test).ok()?;
                    metrics.values.get(key).copied()
                });
                jobs.len() - 1
            })
        })
        .collect();
    let values = threads.all(jobs).map_err(RunError::Setup)?;
    Ok(places.into_iter().map(|place| values[place]).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use learn::TaskStudy;

    use super::*;
    use task::TaskConfig;

    #[test]
    fn only_plain_silos_with_the_same_test_rows_share_a_measurement() {
        #[derive(serde::Deserialize)]
        struct Named {
            task: TaskConfig,
        }
        let text = "task.table = { data = 'diabetes', model.linear = {} }";
        let Named { task } = toml::from_str(text).unwrap();
        let mut study = task.study(Some(2), None, 0).unwrap();
        let (first, other) = (study.silos[0].clone(), study.silos[1].clone());
        // The second and the fourth have the rows of the first; the fourth learns from wrong labels.
        study.silos = vec![first.clone(), first.clone(), other, first];
        let mut learners: Vec<_> = study
            .silos
            .iter()
            .map(|silo| silo.learner.clone())
            .collect();
        let table = study.silos[3].table.as_ref().unwrap();
        learners[3] = Arc::new(table.with_shuffled_targets(0));
        assert_eq!(alike(&study, &learners), [0, 0, 2, 3]);

        let layout = learners[0].layout();
        let models = [0.1, 0.7].map(|value| Params::build(&layout, |into| into.fill(value)));
        let all: Vec<_> = (0..4)
            .flat_map(|silo| models.clone().map(|model| (silo, (model, Params::empty()))))
            .collect();
        let threads = Threads::new(2);
        let measured = measure(&study, &learners, all.clone(), &threads).unwrap();
        let each = all.iter().map(|(silo, (model, own))| {
            let metrics = learners[*silo].evaluate(model, own, Split::Test);
            metrics
                .unwrap()
                .values
                .get(study.metric.name.key())
                .copied()
        });
        assert_eq!(measured, each.collect::<Vec<_>>());
        assert_ne!(measured[0], measured[1]);
    }
}
