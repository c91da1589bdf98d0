//! The agreement of a new federation: from a scenario and its members' public keys, without their
//! data.

use std::sync::Arc;

use ::agreement::Agreement;
use learn::{DataError, TaskConfig};
use protocol::PublicKey;
use protocol::charter::{Charter, CharterError, Epoch, Genesis};
use protocol::roster::Silo;
use simulations::{Federation, RunError, Scenario};

/// Why an agreement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The task is not described well enough, or contradicts itself.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The scenario makes no federation of so many members.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The members or the numbers of the charter.
    #[error(transparent)]
    Charter(#[from] CharterError),
    /// A task of a benchmark, which has silos of its own.
    #[error(
        "the task of this scenario has data of its own, which no institution brings: write [task.table]"
    )]
    Task,
}

/// The agreement of these members, in this order, on what the scenario learns. The scenario's data are
/// not part of it; every member reads its own rows by the schema. The hash of the first state is
/// computed.
///
/// # Errors
/// [`NewError`]: a scenario without a schema, a strategy or charter that does not go with so many
/// members, equal names or keys.
pub fn agreement(
    scenario: &Scenario,
    members: &[(String, PublicKey)],
) -> Result<Agreement, NewError> {
    let TaskConfig::Table(task) = &scenario.task else {
        return Err(NewError::Task);
    };
    let names: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
    let study = task.stand_ins(&names, scenario.seed)?;
    let mut task = task.clone();
    task.schema = task.agreed_schema()?;
    task.standardise = Some(task.scaling());
    task.data = None;
    let scenario = Scenario {
        task: TaskConfig::Table(task),
        ..scenario.clone()
    };
    // With keys for trying out; all that does not depend on keys is taken from it.
    let tried = Federation::of(&scenario, &study)?;
    let charter = Charter::clone(&tried.epoch.charter);
    let silos = members.iter().map(|(name, key)| Silo {
        name: name.clone(),
        key: *key,
    });
    let silos = silos.collect();
    let epoch = Epoch::first(&Genesis { silos, charter })?;
    Ok(Agreement {
        epoch: Arc::new(epoch),
        task: scenario.task,
        strategy_config: scenario.strategy,
        strategy: tried.members[0].strategy.clone(),
        seed: scenario.seed,
        max_model_norm: scenario.charter.max_model_norm,
        continues: None,
    })
}
