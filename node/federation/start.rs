//! The state that the first round of an agreement starts from.

use std::sync::Arc;

use learn::TaskStudy;
use methods::Strategy;
use methods::learner::Learner;
use methods::strategy::{Names, Plan, StrategyConfig, StrategyError, build, largest_contribution};
use protocol::Hash;
use silo::genesis_outcome;
use task::{TaskConfig, data::DataError};

/// Members for whom a strategy is built while it is not known how many there are.
const MOST: usize = 1000;

/// What follows from task, strategy and seed, without anybody's data.
pub struct FederationStart {
    /// Hash of the state that the first round starts from.
    pub start: Hash,
    /// Largest contribution, in bytes.
    pub largest: u64,
    /// Numbers of a model.
    pub parameters: usize,
    /// Bytes of a model.
    pub model: u64,
    /// Whether the strategy needs the names of authors.
    pub names: Names,
    /// The plan of the first round that trains.
    pub plan: Plan,
}

/// Why it could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum FirstError {
    /// The task.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The strategy's options.
    #[error("strategy: {0}")]
    Strategy(#[from] StrategyError),
    /// A model with which the strategy cannot work.
    #[error("strategy: {0}")]
    Model(String),
    /// A task whose initial model comes from programs.
    #[error(
        "the model before the first round comes from a program: name it as `learner` in the scenario, or \
         write `initial` values of the tensors (`start = \"tensors\"`)"
    )]
    Programs,
    /// A task with data of its own.
    #[error("the task has data of its own, which are not read for this")]
    OwnData,
}

/// What follows from task, strategy and seed. `names` are those of the members, of whom some may be
/// missing.
///
/// # Errors
/// [`FirstError`]: a task or a strategy that cannot be used.
pub fn first(
    task: &TaskConfig,
    strategy: &StrategyConfig,
    seed: u64,
    names: &[String],
) -> Result<FederationStart, FirstError> {
    let learner = match task {
        TaskConfig::Table(table) => {
            // One stand-in for every domain, or one where there are none.
            let domains = table.domains.as_ref().map_or(1, Vec::len).max(names.len());
            let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| format!("{at}"));
            let names: Vec<String> = (0..domains).map(name).collect();
            table.stand_ins(&names, seed)?.silos.swap_remove(0).learner
        }
        TaskConfig::Constant { .. } => {
            task.study(Some(1), None, seed)?
                .silos
                .swap_remove(0)
                .learner
        }
        TaskConfig::External(task) if task.start_is_known() => {
            task.stand_ins(&["0".into()], seed)?
                .silos
                .swap_remove(0)
                .learner
        }
        TaskConfig::External(_) => return Err(FirstError::Programs),
        TaskConfig::Digits8Bench => return Err(FirstError::OwnData),
    };
    first_of(learner, strategy, seed)
}

/// What follows from a strategy and a seed, where this learner has the initial model.
///
/// # Errors
/// [`FirstError`]: a strategy that cannot be used.
pub fn first_of(
    learner: Arc<dyn Learner>,
    strategy: &StrategyConfig,
    seed: u64,
) -> Result<FederationStart, FirstError> {
    let built: Arc<dyn Strategy> = build(strategy, MOST)?.into();
    let equipped = built.equip(learner);
    let learner: Arc<dyn Learner> =
        equipped.map_err(|error| FirstError::Model(error.to_string()))?;
    let genesis = genesis_outcome(&*built, &*learner, seed);
    let layout = learner.layout();
    // A first round that agrees on a scale trains nothing.
    let training = strategy.first_training();
    Ok(FederationStart {
        start: genesis.0,
        largest: largest_contribution(&*built, &*learner),
        parameters: layout.len(),
        model: layout.document_len() as u64,
        names: built.names(),
        plan: built.plan(&genesis.1, training),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use agreement::Agreement;
    use methods::strategy::STRATEGIES;

    use super::*;

    const EXAMPLE: &str = include_str!("../../examples/federation.toml");

    #[test]
    fn every_strategy_has_a_plan_before_its_members_are_known() {
        let agreement = Agreement::parse("federation.toml", EXAMPLE).unwrap();
        let mut planned = 0;
        for info in STRATEGIES {
            let strategy = agreement.strategy_config.switch(info.name).unwrap();
            match first(&agreement.task, &strategy, 1, &[]) {
                Ok(first) => {
                    assert!(first.largest >= first.model, "{}", info.name);
                    planned += 1;
                }
                // Some need another kind of model than the example's.
                Err(error) => assert!(
                    matches!(error, FirstError::Model(_)),
                    "{}: {error}",
                    info.name
                ),
            }
        }
        assert!(planned > 20, "{planned}");
    }
}
