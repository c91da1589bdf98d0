//! The agreement of a federation that continues an earlier one, from a model of it.

use std::sync::Arc;

use agreement::{AgreedWork, Agreement, Continues, default_min_contributions};
use learn::{Study, TaskStudy};
use methods::Params;
use methods::strategy::{
    Names, StrategyConfig, StrategyError, build, largest_contribution, warm_started,
};
use protocol::charter::{Charter, CharterError, Epoch, Genesis, Privacy};
use protocol::roster::{Silo, faulty};
use protocol::{Hash, PublicKey};
use silo::genesis_outcome;
use task::external::{Initial, StartFrom};
use task::{TaskConfig, data::DataError};

/// What the new federation does differently from the earlier one.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Name of the new federation.
    pub name: Option<String>,
    /// Rounds of the new federation.
    pub rounds: Option<u64>,
    /// The strategy, with the same training and defaults for its own options.
    pub strategy: Option<String>,
    /// Members that come in, behind the others.
    pub joining: Vec<(String, PublicKey)>,
    /// Names of members that leave.
    pub leaving: Vec<String>,
}

/// Where the start model comes from.
#[derive(Debug, Clone)]
pub struct StartModel {
    /// The model: tensors of the agreed family.
    pub model: Params,
    /// The federation.
    pub federation: Hash,
    /// Name of the federation.
    pub name: String,
    /// The round after which it was adopted.
    pub round: u64,
    /// Hash of the final block of that round.
    pub block: Hash,
}

/// Why no agreement could be made.
#[derive(Debug, thiserror::Error)]
pub enum ContinueError {
    /// The task or the start model.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The strategy.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The members, or the numbers of the charter.
    #[error(transparent)]
    Charter(#[from] CharterError),
    /// A member that there is not.
    #[error("there is no member {0:?} to leave out; there are {1}")]
    NoMember(String, String),
    /// A task with data of its own.
    #[error("the task of this federation is a benchmark, which cannot be continued")]
    Task,
    /// Too few rounds for the strategy.
    #[error("the strategy {name} needs at least {least} rounds: give --rounds")]
    Rounds {
        /// The strategy.
        name: &'static str,
        /// The fewest rounds.
        least: u64,
    },
    /// Something that has no canonical form.
    #[error("this agreement cannot be encoded: {0}")]
    Encode(String),
}

/// The agreement of a new federation with the task and the charter of `earlier`, which starts from
/// `start`.
///
/// # Errors
/// [`ContinueError`]: members, strategy or model that do not go together.
pub fn continued(
    earlier: &Agreement,
    start: &StartModel,
    changes: &Changes,
) -> Result<Agreement, ContinueError> {
    let old = &earlier.epoch.charter;
    let silos = members(earlier, changes)?;
    let count = silos.len();
    let names: Vec<String> = silos.iter().map(|silo| silo.name.clone()).collect();
    let mut strategy_config = match &changes.strategy {
        Some(name) => earlier.strategy_config.switch(name)?,
        None => earlier.strategy_config.clone(),
    };
    (strategy_config.standardise, strategy_config.scale_agreed) =
        (false, earlier.task.common_scale());
    let rounds = changes.rounds.unwrap_or(old.rounds);
    strategy_config.set_rounds(rounds);
    let least = strategy_config.least_rounds();
    if rounds < least {
        let name = strategy_config.name();
        return Err(ContinueError::Rounds { name, least });
    }
    let built = build(&strategy_config, count)?;
    let (task, study) = family(earlier, &silos, &names[..1])?;
    let refused = |error: String| ContinueError::Data(DataError::Config(error));
    let plain = study.silos[0].learner.clone();
    let learner = warm_started(plain, &start.model).map_err(|error| refused(error.to_string()))?;
    let learner = built
        .equip(learner)
        .map_err(|error| refused(format!("the strategy: {error}")))?;
    let continues = Continues {
        name: start.name.clone(),
        federation: start.federation,
        round: start.round,
        block: start.block,
        model: Hash(start.model.hash()),
    };
    let charter = Charter {
        name: changes.name.clone().unwrap_or_else(|| old.name.clone()),
        work: work(&task, &strategy_config, earlier, &continues)?,
        start: genesis_outcome(&*built, &*learner, earlier.seed).0,
        rounds,
        view_timeout: fitting(old.view_timeout, earlier.epoch.roster.len(), count),
        min_contributions: contributions(old.min_contributions, earlier.epoch.roster.len(), count),
        privacy: Privacy::clear(built.names() == Names::Shown),
        blob_limit: largest_contribution(&*built, &*learner),
        ..old.clone()
    };
    let old = earlier.epoch.roster.silos();
    let reached = |silo: &Silo| {
        let at = old.iter().position(|own| own.key == silo.key)?;
        earlier.addresses.get(at).cloned()
    };
    let addresses = silos
        .iter()
        .map(|silo| reached(silo).unwrap_or_default())
        .collect();
    let epoch = Epoch::first(&Genesis { silos, charter })?;
    Ok(Agreement {
        epoch: Arc::new(epoch),
        task,
        strategy_config,
        strategy: built.into(),
        seed: earlier.seed,
        max_model_norm: earlier.max_model_norm,
        max_weight: earlier.max_weight,
        status: earlier.status,
        continues: Some(continues),
        addresses,
        unfit: None,
    })
}

/// The task for these members, and a stand-in with its models for each of `names`.
fn family(
    earlier: &Agreement,
    silos: &[Silo],
    names: &[String],
) -> Result<(TaskConfig, Study), ContinueError> {
    match &earlier.task {
        TaskConfig::Table(task) => {
            let mut stand_in = task.clone();
            stand_in.domains = None;
            let study = stand_in.stand_ins(names, earlier.seed)?;
            let mut task = domains(task, earlier, silos)?;
            if earlier.split_fault().is_some() {
                task.split = task.split.made_by_unit()?;
            }
            Ok((TaskConfig::Table(task), study))
        }
        TaskConfig::External(task) => {
            let mut task = task.clone();
            // The start is given, whatever the programs gave before.
            (task.start, task.model) = (Some(StartFrom::Tensors), None);
            // Nothing is drawn, so nothing has to be described.
            for tensor in &mut task.tensors {
                if let Initial::Held(_) = tensor.initial {
                    tensor.initial = Initial::default();
                }
            }
            let study = task.stand_ins(names, earlier.seed)?;
            Ok((TaskConfig::External(task), study))
        }
        TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => Err(ContinueError::Task),
    }
}

fn work(
    task: &TaskConfig,
    strategy: &StrategyConfig,
    earlier: &Agreement,
    continues: &Continues,
) -> Result<Vec<u8>, ContinueError> {
    let work = AgreedWork {
        task,
        strategy,
        max_model_norm: earlier.max_model_norm,
        max_weight: earlier.max_weight,
        status: earlier.status,
        seed: earlier.seed,
        continues: Some(continues),
    };
    work.encode()
        .map_err(|error| ContinueError::Encode(error.to_string()))
}

/// The members of the earlier federation that stay, then those that come in.
fn members(earlier: &Agreement, changes: &Changes) -> Result<Vec<Silo>, ContinueError> {
    let old = earlier.epoch.roster.silos();
    for name in &changes.leaving {
        if !old.iter().any(|silo| silo.name == *name) {
            let names: Vec<&str> = old.iter().map(|silo| silo.name.as_str()).collect();
            return Err(ContinueError::NoMember(name.clone(), names.join(", ")));
        }
    }
    let stays = old
        .iter()
        .filter(|silo| !changes.leaving.contains(&silo.name));
    let joins = changes.joining.iter().map(|(name, key)| Silo {
        name: name.clone(),
        key: *key,
        rows: None,
    });
    Ok(stays.cloned().chain(joins).collect())
}

/// The task for these members: domains are by member.
fn domains(
    task: &task::TableTask,
    earlier: &Agreement,
    silos: &[Silo],
) -> Result<Box<task::TableTask>, ContinueError> {
    let mut task = Box::new(task.clone());
    let Some(domains) = &task.domains else {
        return Ok(task);
    };
    let old = earlier.epoch.roster.silos();
    let of = |silo: &Silo| {
        let at = old.iter().position(|own| own.name == silo.name)?;
        domains.get(at).copied()
    };
    let found: Option<Vec<u32>> = silos.iter().map(of).collect();
    let missing = || {
        DataError::Config(
            "the task gives every member a domain, and there is none for a member that comes in: make \
             a new agreement with `rota federation new`"
                .into(),
        )
    };
    task.domains = Some(found.ok_or_else(missing)?);
    Ok(task)
}

/// As many beats as before, and one for each more member that may be Byzantine.
fn fitting(view_timeout: u32, before: usize, now: usize) -> u32 {
    view_timeout + faulty(now).saturating_sub(faulty(before)) as u32
}

/// As many contributions as before while the members are as many; otherwise the default.
fn contributions(least: u16, before: usize, now: usize) -> u16 {
    if before == now {
        least
    } else {
        default_min_contributions(now)
    }
}
