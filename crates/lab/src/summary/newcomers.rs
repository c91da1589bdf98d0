//! Unseen silos as newcomers of earlier rounds: the model that each would have been given
//! after a round, measured on its own held-out rows.

use std::sync::Arc;

use agreement::silo_seed;
use learn::Study;
use methods::learner::{LearnError, Split, Task};
use methods::robust::Radius;
use methods::serving::Alone;
use methods::strategy::{Newcomer, OwnRadius};
use methods::{Learner, State, Strategy};
use protocol::MemberIndex;
use serde::Serialize;

use crate::participation::ParticipatingSilos;
use simulations::Federation;
use simulations::RunError;
use simulations::pool::Threads;
use simulations::scenario::Scenario;

use super::metrics::{AdoptedModel, OwnModel};

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

/// The model that a silo which took no part is given of the state after the last of `alone`'s rounds. The
/// silo, as the strategy equips it, trains its personal parameters around that model, where the strategy
/// has some.
///
/// # Errors
/// [`LearnError`]: there is no model for it, or it cannot train.
pub(crate) fn given_model(
    strategy: &dyn Strategy,
    equipped: &dyn Learner,
    state: &State,
    radius: &Radius,
    alone: &Alone,
) -> Result<OwnModel, LearnError> {
    let personal = equipped.initial_personal(alone.initial);
    let round = alone.rounds.end() + 1;
    let newcomer = Newcomer {
        learner: equipped,
        personal: &personal,
        radius: &OwnRadius::from(radius.clone()),
        seed: equipped.seed(alone.seed, round),
    };
    let model = strategy.unseen(state, round, newcomer)?;
    alone.around(equipped, &model)
}

/// Every silo outside after each of the scenario's rounds for newcomers that became final, by round and
/// then in the order of the study.
pub(super) fn newcomers(
    scenario: &Scenario,
    study: &Study,
    participation: &ParticipatingSilos,
    federation: &Federation,
    adopted: &[AdoptedModel],
    threads: &Arc<Threads>,
) -> Result<Vec<NewcomerInfo>, RunError> {
    let strategy = &federation.members[0].strategy;
    let initial = federation.members[0].initial_seed;
    let first = scenario.strategy.first_training();
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
            let radius = scenario.protocol.radius.clone();
            let (state, strategy) = (after.state.clone(), strategy.clone());
            let silo = silo.name.clone();
            jobs.push(move || {
                let given = given_model(&*strategy, &*equipped, &state, &radius, &alone);
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
