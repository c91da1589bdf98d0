//! The agreement of a new federation: from a plan and the members known so far, without their data.

use ::agreement::{AddError, Draft, Joining, NewDraft, check_new, enough_patience};
use learn::TaskStudy;
use learn::external::external_study;
use methods::Params;
use methods::strategy::{Names, build};
use protocol::roster::Silo;
use task::{TaskConfig, data::DataError};

use super::plan::FederationPlan;
use crate::federation::{FederationStart, FirstError, TrainingPace, first, first_of, pace};

/// Members for which a new agreement is at least patient enough.
const USUAL: usize = 4;

/// Why an agreement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The task is not described well enough, or contradicts itself.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Task and strategy do not fit.
    #[error(transparent)]
    First(#[from] FirstError),
    /// A member that does not go with the others.
    #[error(transparent)]
    Member(#[from] AddError),
    /// A task of a benchmark, which has silos of its own.
    #[error(
        "the task of this scenario has data of its own, which no institution brings: write [task.table]"
    )]
    Task,
    /// The plan does not go with secure-aggregation rounds: the paths of keys, with what is wrong and what to choose.
    #[error("{}", listed(.0))]
    Masked(Vec<(&'static str, String)>),
    /// A value that TOML cannot express.
    #[error("this agreement cannot be written: {0}")]
    Toml(String),
}

/// All that does not fit, a line for each.
fn listed(faults: &[(&'static str, String)]) -> String {
    let lines = faults.iter().map(|(key, what)| format!("`{key}` {what}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A new agreement.
pub struct New {
    /// Text of the agreement, with comments.
    pub text: String,
    /// The model that the proposer's program holds, where the federation starts from it: every member
    /// needs it beside the agreement.
    pub start: Option<Params>,
    /// How long one training took here, where the `straggler-timeout` of the agreement follows from it.
    pub pace: Option<TrainingPace>,
}

/// Returns how long one training of the first silo takes here; `None` where the rows are not here, or are those of
/// a program: its institution's `rota check` measures it.
///
/// # Errors
/// [`DataError::Unanswered`]: what a person has to say about the rows first.
fn measured(
    plan: &FederationPlan,
    first: &FederationStart,
) -> Result<Option<TrainingPace>, DataError> {
    let task = match (&plan.task, plan.checked().task_of_rows()) {
        (TaskConfig::Table(table), Ok(task)) if table.data.is_some() => task,
        _ => return Ok(None),
    };
    let study = match task.study(plan.silos, None, plan.seed) {
        Err(error @ DataError::Unanswered(_)) => return Err(error),
        Err(_) => return Ok(None),
        Ok(study) => study,
    };
    let pace = || {
        let silo = study.silos.into_iter().next()?;
        let strategy = build(&plan.strategy, USUAL).ok()?;
        let learner = strategy.equip(silo.learner).ok()?;
        let patience = plan.protocol.heartbeat.0 * plan.protocol.usual_patience();
        pace(&*learner, &first.plan.task, plan.seed, patience).ok()?
    };
    Ok(pace())
}

/// The text of an agreement on a plan, with comments. More members may be added to
/// it. The plan's data are not part of it; every member reads its own rows by the schema. The hash
/// of the first state is computed.
///
/// # Errors
/// [`NewError`]: a plan without a schema, a strategy that does not go with the model, equal names
/// or keys.
pub fn agreement(plan: &FederationPlan, members: &[Joining]) -> Result<New, NewError> {
    let faults = plan.checked().privacy_faults();
    if !faults.is_empty() {
        return Err(NewError::Masked(faults));
    }
    let (mut task, domains) = match &plan.checked().task_of_rows()? {
        TaskConfig::Table(task) => {
            let mut task = task.clone();
            task.schema = task.agreed_schema()?;
            task.standardise = Some(task.scaling());
            task.data = None;
            let domains = task.domains.is_some();
            (TaskConfig::Table(task), domains)
        }
        TaskConfig::External(task) => (TaskConfig::External(task.clone()), false),
        TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => return Err(NewError::Task),
    };
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let (first, start) = start(&mut task, plan, &names)?;
    let protocol = &plan.protocol;
    let pace = measured(plan, &first)?;
    let longer =
        pace.filter(|pace| pace.heartbeats(protocol.heartbeat.0) > protocol.usual_patience());
    let wanted = protocol
        .usual_patience()
        .max(pace.map_or(0, |pace| pace.heartbeats(protocol.heartbeat.0)));
    let new = NewDraft {
        name: plan.name.clone(),
        rounds: plan.rounds,
        seed: plan.seed,
        start: first.start,
        heartbeat: protocol.heartbeat,
        patience: enough_patience(
            wanted,
            first.largest,
            // More may be added to the text.
            members.len().max(USUAL),
            protocol.heartbeat.0,
        ),
        view_timeout: protocol.view_timeout,
        min_contributions: protocol.min_contributions,
        keep_rounds: protocol.keep_rounds,
        blob_limit: first.largest,
        max_model_norm: protocol.max_model_norm,
        max_weight: protocol.max_weight,
        rotation: protocol.rotation.0,
        verification: protocol.verification.0,
        names_shown: first.names == Names::Shown,
        privacy: plan.privacy.clone(),
        task,
        strategy: plan.strategy.clone(),
        members: Vec::new(),
    };
    // Where every member's domain is given, all members are written at once.
    if domains {
        let members = members.to_vec();
        let silos = members.iter().map(|member| Silo {
            name: member.name.clone(),
            key: member.key,
            rows: member.rows,
        });
        let silos: Vec<_> = silos.collect();
        check_new(&[], &silos).map_err(AddError::Look)?;
        let text = Draft::text(&NewDraft { members, ..new }).map_err(NewError::Toml)?;
        return Ok(New {
            text,
            start,
            pace: longer,
        });
    }
    let mut text = Draft::text(&new).map_err(NewError::Toml)?;
    for member in members {
        text = Draft::add("federation.toml", &text, member)?;
    }
    Ok(New {
        text,
        start,
        pace: longer,
    })
}

/// The state that the first round starts from. Where the models are those of programs, the plan's
/// own program is asked what it holds, and the task gets what it says.
fn start(
    task: &mut TaskConfig,
    plan: &FederationPlan,
    names: &[String],
) -> Result<(FederationStart, Option<Params>), NewError> {
    let (strategy, seed) = (&plan.strategy, plan.seed);
    let (TaskConfig::External(_), Some(program)) = (&*task, &plan.learner) else {
        return Ok((first(task, strategy, seed, names)?, None));
    };
    let study = external_study(task, program, Some(1), None, seed, |_| seed)?;
    let none = || DataError::Config("the task has no silo".into());
    let silo = study.silos.into_iter().next().ok_or_else(none)?;
    let first = first_of(silo.learner, strategy, seed)?;
    let Some(proposed) = study.proposed else {
        return Ok((first, None));
    };
    *task = TaskConfig::External(Box::new(proposed.task.clone()));
    Ok((first, proposed.model.clone()))
}
