//! The state that the first round of an agreement starts from.

use std::sync::Arc;

use agreement::Agreement;
use learn::TaskStudy;
use methods::Strategy;
use methods::learner::Learner;
use methods::strategy::{Names, Plan, StrategyConfig, StrategyError, build, largest_contribution};
use protocol::Hash;
use silo::genesis_outcome;
use task::machine_memory::machine_memory;
use task::{TaskConfig, data::DataError};

use formatting::numbers::bytes;

/// Models that a node holds at the same time, at least.
const MODELS: u64 = 3;
/// Bytes of a model that is made even where no member may send it: what would have to be written is said then.
const SMALL: u64 = 1 << 24;
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
    /// Models that nobody may send.
    #[error(
        "a model under this agreement has {}, and `protocol.blob-limit` allows {}: no member could take part",
        bytes(*size), bytes(*limit)
    )]
    Limit {
        /// Bytes of a model.
        size: u64,
        /// The largest contribution that the parameter set allows, in bytes.
        limit: u64,
    },
    /// Models that this machine cannot hold.
    #[error(
        "a model under this agreement has {}, and a node holds {MODELS} of them at a time: this machine has {} of \
         memory", bytes(*size), bytes(*memory)
    )]
    Memory {
        /// Bytes of a model.
        size: u64,
        /// Bytes of memory of this machine.
        memory: u64,
    },
    /// A task whose initial model comes from programs.
    #[error(
        "the model before the first round comes from a program: name it as `learner` in the scenario, or \
         write `initial` values of the tensors (`start = \"tensors\"`)"
    )]
    Programs,
    /// A task with data of its own, which are not read for this.
    #[error("the task has data of its own, which are not read for this")]
    OwnData,
}

/// Whether models of this size may be sent and can be held here, before one is made: a text from others may name any
/// size.
///
/// # Errors
/// [`FirstError::Limit`], [`FirstError::Memory`]; [`FirstError::Data`]: a task that contradicts itself.
fn fits(task: &TaskConfig, limit: u64) -> Result<(), FirstError> {
    let Some(layout) = learn::layout(task)? else {
        return Ok(());
    };
    let size = layout.document_len() as u64;
    if size > limit.max(SMALL) {
        return Err(FirstError::Limit { size, limit });
    }
    let memory = machine_memory();
    match size.checked_mul(MODELS) {
        Some(needed) if needed <= memory => Ok(()),
        _ => Err(FirstError::Memory { size, memory }),
    }
}

/// Why models of an agreement may not be sent under it, or cannot be held here, in a sentence without a full stop;
/// `None` where they can. Asked before an agreement is signed, and of every text before more of it is computed.
pub fn too_large(agreement: &Agreement) -> Option<String> {
    let fits = fits(&agreement.task, agreement.epoch.protocol.blob_limit);
    fits.err().map(|error| error.to_string())
}

/// Returns what follows from task, strategy and seed of an agreement.
///
/// # Errors
/// [`FirstError`]: a task or a strategy that cannot be used.
pub fn first_under(agreement: &Agreement) -> Result<FederationStart, FirstError> {
    fits(&agreement.task, agreement.epoch.protocol.blob_limit)?;
    let silos = agreement.epoch.roster.silos().iter();
    let names: Vec<String> = silos.map(|silo| silo.name.clone()).collect();
    let strategy = &agreement.strategy_config;
    first(&agreement.task, strategy, agreement.seed, &names)
}

/// Returns what follows from task, strategy and seed. `names` are those of the members, of whom some may be
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
    fits(task, u64::MAX)?;
    let learner = match task {
        TaskConfig::Table(table) => {
            // The first silo stands for all.
            let silos = table.domains.as_ref().map_or(1, Vec::len).max(names.len());
            let domain = table.domain(0, silos)?;
            let mut table = table.clone();
            table.domains = domain.map(|domain| vec![domain]);
            let name = names.first().cloned().unwrap_or_else(|| "0".into());
            table.stand_ins(&[name], seed)?.silos.swap_remove(0).learner
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

/// Returns what follows from a strategy and a seed, where this learner has the initial model.
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
    use methods::strategy::STRATEGIES;

    use super::super::begins::follows;
    use super::*;

    const EXAMPLE: &str = include_str!("../../examples/federation.toml");

    #[test]
    fn models_of_any_size_are_counted_and_none_is_made() {
        let model = "model = { linear = { loss = \"absolute\" } }";
        let network = |layers: &str, width: &str| {
            format!("model = {{ network = {{ layers = [{layers}], width = {width} }} }}")
        };
        let up = vec!["{ up-conv = 4 }"; 70].join(", ");
        let image = format!("model = {{ network = {{ layers = [{up}], image = [4, 1, 1] }} }}");
        let spelt = [
            "model = { mlp = { hidden = [1000000, 1000000] } }".to_owned(),
            "model = { mlp = { hidden = [4000000000, 4000000000] } }".to_owned(),
            "model = { mlp = { hidden = [9223372036854775807] } }".to_owned(),
            network("{ dense = 1000000 }, \"relu\", { dense = 1000000 }", "1.0"),
            network("{ dense = 1048576 }, { dense = 1048576 }", "1024.0"),
            image,
            "model = { network = { layers = [\"relu\"], image = [4294967296, 4294967296, 2] } }"
                .to_owned(),
        ];
        let task = "[task.constant]\nparameters = 9223372036854775807\n[other]";
        let begin = EXAMPLE.find("[task.table]").unwrap();
        let end = EXAMPLE.find("# ---- How it is learned").unwrap();
        let external = "[task.external]\ntensors = [{ name = \"w\", shape = [1000000, 1000000], role = \"weight\" }]\n";
        let mut texts: Vec<String> = spelt.map(|other| EXAMPLE.replace(model, &other)).into();
        for task in [task.trim_end_matches("[other]"), external] {
            texts.push(format!("{}{task}{}", &EXAMPLE[..begin], &EXAMPLE[end..]));
        }
        let mut refused = 0;
        for text in texts {
            for limit in ["392", "400000000000000", "9000000000000000000"] {
                let text = text.replace("blob-limit = 392", &format!("blob-limit = {limit}"));
                let Ok(agreement) = Agreement::parse("f.toml", &text) else {
                    continue;
                };
                let why = first_under(&agreement).map(|_| ()).unwrap_err().to_string();
                assert!(follows(&agreement).unwrap_err().to_string() == why, "{why}");
                // In words, too, nothing is computed with it.
                let _ = super::super::words::words(&agreement);
                refused += 1;
            }
        }
        assert!(refused > 12, "{refused}");
        let of = |model_of: &str, limit: &str| {
            let text = EXAMPLE
                .replace(model, model_of)
                .replace("blob-limit = 392", limit);
            too_large(&Agreement::parse("f.toml", &text).unwrap())
        };
        assert_eq!(of(model, "blob-limit = 392"), None);
        let large = "model = { mlp = { hidden = [100000, 215000] } }";
        let why = of(large, "blob-limit = 392").unwrap();
        assert!(
            why.contains("has 86") && why.contains("`protocol.blob-limit` allows 392"),
            "{why}"
        );
        let why = of(
            "model = { mlp = { hidden = [1000000, 1000000] } }",
            "blob-limit = 9000000000000",
        );
        assert!(why.unwrap().contains("of memory"));
    }

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
