//! Silos outside the federation as newcomers of earlier rounds: the model that each would have been given
//! after a round, measured on its own held-out rows.

use std::sync::Arc;

use agreement::silo_seed;
use learn::Study;
use methods::learner::{Split, Task};
use methods::serving::Alone;
use methods::strategy::{Newcomer, OwnRadius};
use protocol::MemberIndex;
use serde::Serialize;

use crate::error::RunError;
use crate::federation::Federation;
use crate::participation::Participation;
use crate::pool::Threads;
use crate::scenario::Scenario;

use super::metrics::AdoptedModel;

/// What a silo outside the federation would have got as a newcomer after a round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewcomerInfo {
    /// The silo.
    pub silo: String,
    /// The round after which it is given a model.
    pub round: u64,
    /// Held-out metric of that model; `None` where there is no model for it, or it cannot be measured.
    pub metric: Option<f64>,
}

/// Every silo outside after each of the scenario's rounds for newcomers that became final, by round and
/// then in the order of the study. As at the end of a run, a newcomer trains its personal parameters,
/// where the strategy has some, around the model that it is given.
pub(super) fn newcomers(
    scenario: &Scenario,
    study: &Study,
    participation: &Participation,
    federation: &Federation,
    adopted: &[AdoptedModel],
    threads: &Arc<Threads>,
) -> Result<Vec<NewcomerInfo>, RunError> {
    let strategy = &federation.members[0].strategy;
    let initial = federation.members[0].initial_seed;
    let first = 1 + u64::from(scenario.strategy.standardise);
    let key = study.metric.name.key();
    let mut rounds = scenario.newcomers.clone();
    rounds.sort_unstable();
    rounds.dedup();
    let mut jobs = Vec::new();
    for round in rounds {
        let Some(after) = adopted.iter().find(|adopted| adopted.round == round) else {
            continue;
        };
        for (nth, &at) in participation.others.iter().enumerate() {
            let silo = &study.silos[at];
            let equipped = strategy.equip(silo.learner.clone());
            let equipped = equipped.map_err(|error| RunError::Setup(error.to_string()))?;
            let nth = participation.members.len() + nth;
            let seed = silo_seed(federation.seed, MemberIndex(nth as u16));
            let alone = Alone {
                start: silo.learner.initial(initial),
                initial,
                task: Task::Train(scenario.strategy.training.clone()),
                seed,
                rounds: first..=round,
            };
            let radius = OwnRadius::from(scenario.charter.radius.clone());
            let (state, strategy) = (after.state.clone(), strategy.clone());
            let silo = silo.name.clone();
            jobs.push(move || {
                let personal = equipped.initial_personal(initial);
                let newcomer = Newcomer {
                    learner: &*equipped,
                    personal: &personal,
                    radius: &radius,
                    seed: equipped.seed(seed, round + 1),
                };
                let given = strategy.unseen(&state, round + 1, newcomer);
                let given = given.and_then(|model| alone.around(&*equipped, &model));
                let metrics = given.and_then(|(model, personal)| {
                    equipped.evaluate(&model, &personal, Split::Test)
                });
                let metric = metrics.ok();
                let metric = metric.and_then(|metrics| metrics.values.get(key).copied());
                NewcomerInfo {
                    silo,
                    round,
                    metric,
                }
            });
        }
    }
    threads.all(jobs).map_err(RunError::Setup)
}
