//! The agreement of a federation that continues an earlier one, from a model of it.

use std::sync::Arc;

use agreement::{AgreedWork, Agreement, Continues, Seen, default_min_contributions};
use learn::{Study, TaskStudy};
use methods::Params;
use methods::strategy::{
    Names, StrategyConfig, StrategyError, build, largest_contribution, warm_started,
};
use protocol::parameters::{
    Epoch, Genesis, Group, Masked, ParametersError, Privacy, ProtocolParameters, Sums,
};
use protocol::roster::{Silo, faulty};
use protocol::{Hash, PublicKey};
use silo::genesis_outcome;
use task::external::{Initial, StartFrom};
use task::{TaskConfig, data::DataError};

/// Fewest institutions of a group.
const SMALLEST_SUM: u16 = 3;

/// Differences of the new federation from the earlier one.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Name of the new federation.
    pub name: Option<String>,
    /// Rounds of the new federation.
    pub rounds: Option<u64>,
    /// The strategy, with the same training and defaults for its own options.
    pub strategy: Option<String>,
    /// Members that come in, behind the others, with the rows that they declare.
    pub joining: Vec<(String, PublicKey, Option<u64>)>,
    /// Names of members that leave.
    pub leaving: Vec<String>,
    /// Protection that the earlier federation had and the new one does not.
    pub given_up: Option<GivenUp>,
}

/// Protection of contributions that a federation had and the one that continues it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// Masks, and noise with them: every member sees every model.
    Masks,
    /// Noise: one sum of all members is opened, which bounds nothing.
    Noise,
}

/// Start model, with its origin.
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
    /// The groups whose models were added up without noise in the federation, and in those before it.
    pub summed: Vec<Group>,
}

/// Reason for which no agreement could be made.
#[derive(Debug, thiserror::Error)]
pub enum ContinueError {
    /// The task or the start model.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The strategy.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The members, or the numbers of the parameter set.
    #[error(transparent)]
    ProtocolParameters(#[from] ParametersError),
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
    /// All groups would lack somebody.
    #[error(
        "no group of this federation would be whole without {}: those who are left would be added up without it, and \
         the difference of the sums before and after is its model. Change the groups in the earlier federation, where \
         everybody of them approves it (`shows` in [privacy]), and continue then", .0.join(", ")
    )]
    GroupsEnd(Vec<String>),
    /// Protection is given up that there was not.
    #[error("the earlier federation has no {0} to give up: leave the option out")]
    NotThere(&'static str),
    /// Rules that do not go together, or with the members.
    #[error("{0}")]
    Refused(String),
    /// Something that has no canonical form.
    #[error("this agreement cannot be encoded: {0}")]
    Encode(String),
}

/// The agreement of a new federation with the task, the parameter set and the privacy of `earlier`, which starts from
/// `start`. Nothing of the earlier agreement is passed over: each of its parts is named here.
///
/// # Errors
/// [`ContinueError`]: members, strategy, rules or model that do not go together.
pub fn continued(
    earlier: &Agreement,
    start: &StartModel,
    changes: &Changes,
) -> Result<Agreement, ContinueError> {
    let Agreement {
        epoch,
        task: _,
        strategy_config,
        strategy: _,
        seed,
        max_model_norm,
        max_weight,
        status,
        continues: _,
        // They were asked of the rows of that time.
        questions: _,
        serving,
        addresses: _,
        unfit: _,
    } = earlier;
    let silos = members(earlier, changes)?;
    let (before, count) = (epoch.roster.len(), silos.len());
    let names: Vec<String> = silos.iter().map(|silo| silo.name.clone()).collect();
    let mut strategy_config = match &changes.strategy {
        Some(name) => strategy_config.switch(name)?,
        None => strategy_config.clone(),
    };
    (strategy_config.standardise, strategy_config.scale_agreed) =
        (false, earlier.task.common_scale());
    let learning = changes.rounds.unwrap_or(earlier.learning_rounds());
    strategy_config.set_rounds(learning);
    let least = strategy_config.least_rounds();
    if learning < least {
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
        seen: Seen::under(&epoch.protocol),
        summed: start.summed.clone(),
    };
    let ProtocolParameters {
        name,
        work: _,
        start: _,
        rounds: _,
        heartbeat_ms,
        patience,
        view_timeout,
        min_contributions,
        rotation,
        verification,
        privacy,
        blob_limit: _,
        keep_rounds,
        discovery,
    } = &epoch.protocol;
    let privacy = privacy_of(privacy, changes, &names, built.names() == Names::Shown)?;
    let (at_last, answer) = serving.as_ref().map_or((0, 0), |serving| {
        (serving.most_rounds(), serving.largest_answer())
    });
    let protocol = ProtocolParameters {
        name: changes.name.clone().unwrap_or_else(|| name.clone()),
        work: work(&task, &strategy_config, earlier, &continues)?,
        start: genesis_outcome(&*built, &*learner, *seed).0,
        rounds: learning + at_last,
        heartbeat_ms: *heartbeat_ms,
        patience: *patience,
        view_timeout: fitting(*view_timeout, before, count),
        min_contributions: match (&privacy, before == count) {
            (_, true) => *min_contributions,
            // As for a change of members: enough of them to open the sums.
            (Privacy::Masked(_), false) => {
                epoch.protocol.for_members(before, count).min_contributions
            }
            (_, false) => default_min_contributions(count),
        },
        rotation: *rotation,
        verification: *verification,
        privacy,
        blob_limit: largest_contribution(&*built, &*learner).max(answer),
        keep_rounds: *keep_rounds,
        discovery: *discovery,
    };
    let old = epoch.roster.silos();
    let reached = |silo: &Silo| {
        let at = old.iter().position(|own| own.key == silo.key)?;
        earlier.addresses.get(at).cloned()
    };
    let addresses = silos
        .iter()
        .map(|silo| reached(silo).unwrap_or_default())
        .collect();
    let first = Epoch::first_in(
        epoch.format.max(protocol.privacy.since()),
        &Genesis { silos, protocol },
    )?;
    checked(&Agreement {
        epoch: Arc::new(first),
        task,
        strategy_config,
        strategy: built.into(),
        seed: *seed,
        max_model_norm: *max_model_norm,
        max_weight: *max_weight,
        status: *status,
        continues: Some(continues),
        questions: Vec::new(),
        serving: serving.clone(),
        addresses,
        unfit: None,
    })
}

/// The agreement as its members read it, which asks of every key whether it goes with the others.
fn checked(agreement: &Agreement) -> Result<Agreement, ContinueError> {
    let refused = |why: &dyn std::fmt::Display| ContinueError::Refused(why.to_string());
    let text = agreement.to_toml().map_err(ContinueError::Encode)?;
    let read = Agreement::parse("the new agreement", &text).map_err(|why| refused(&why))?;
    read.may_begin().map_err(|why| refused(&why))?;
    if read.epoch.federation == agreement.epoch.federation {
        Ok(read)
    } else {
        Err(refused(&"the new agreement is read back with another id"))
    }
}

/// Returns what members of the new federation see of each other's contributions: what those of the earlier one saw, in
/// those of its groups that are whole, unless protection is given up.
fn privacy_of(
    earlier: &Privacy,
    changes: &Changes,
    names: &[String],
    names_shown: bool,
) -> Result<Privacy, ContinueError> {
    let Privacy::Masked(masked) = earlier else {
        return match changes.given_up {
            None => Ok(Privacy::clear(names_shown)),
            Some(GivenUp::Masks) => Err(ContinueError::NotThere("masks")),
            Some(GivenUp::Noise) => Err(ContinueError::NotThere("noise")),
        };
    };
    let Masked {
        colluders,
        smallest_sum,
        shows: _,
        sums,
    } = masked;
    let sums = match (sums, changes.given_up) {
        (_, Some(GivenUp::Masks)) => return Ok(Privacy::clear(names_shown)),
        (Sums::Groups(_), Some(GivenUp::Noise)) => return Err(ContinueError::NotThere("noise")),
        (Sums::Groups(groups), None) => Sums::Groups(whole(groups, names)?),
        (Sums::Noised(noise), None) => Sums::Noised(noise.clone()),
        (Sums::Noised(_), Some(GivenUp::Noise)) => {
            let mut authors: Vec<_> = names.iter().map(|name| (name.clone(), 1)).collect();
            authors.sort();
            Sums::Groups(vec![Group { authors }])
        }
    };
    Ok(Privacy::Masked(Masked {
        colluders: *colluders,
        smallest_sum: match &sums {
            Sums::Groups(_) => (*smallest_sum).max(SMALLEST_SUM),
            Sums::Noised(_) => *smallest_sum,
        },
        // Updates that were shown there are shown; here nothing more is.
        shows: Vec::new(),
        sums,
    }))
}

/// The groups of which everybody is among these members. Who was in another one only helps to open sums.
fn whole(groups: &[Group], names: &[String]) -> Result<Vec<Group>, ContinueError> {
    let gone = |group: &Group| {
        let authors = group.authors.iter().map(|(name, _)| name.clone());
        authors
            .filter(|name| !names.contains(name))
            .collect::<Vec<_>>()
    };
    let stay: Vec<_> = groups
        .iter()
        .filter(|group| gone(group).is_empty())
        .cloned()
        .collect();
    if stay.is_empty() {
        return Err(ContinueError::GroupsEnd(
            groups.iter().flat_map(gone).collect(),
        ));
    }
    Ok(stay)
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
        questions: &[],
        serving: earlier.serving.as_ref(),
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
    let joins = changes.joining.iter().map(|(name, key, rows)| Silo {
        name: name.clone(),
        key: *key,
        rows: *rows,
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

/// As many heartbeats as before, and one for each more member that may be Byzantine.
fn fitting(view_timeout: u32, before: usize, now: usize) -> u32 {
    view_timeout + faulty(now).saturating_sub(faulty(before)) as u32
}
