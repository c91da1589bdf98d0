//! The silos of a task whose models are trained by programs.

use std::path::Path;
use std::sync::Arc;

use task::TaskConfig;
use task::external::{ExternalTask, StartFrom};

use super::absent::absent;
use super::agreed::{Agreed, Begins};
use super::config::LearnerConfig;
use super::learner::{Doubt, ExternalLearner, hex};
use super::metric::{measured_here, measured_somewhere};
use super::programs::Programs;
use super::proposed::Proposed;
use super::table::TableByProgram;
use crate::data::DataError;
use crate::of_task::TaskStudy;
use crate::study::{SILOS, Study, StudySilo};

/// Most frozen tensors whose digests an agreement names one by one.
pub const MOST_HELD: usize = 300;

/// All silos of a task in a simulation, those that `learner` names with its program. `seed` is that
/// of the simulation, and `own` gives the seed of the silo at a position.
///
/// # Errors
/// [`DataError`]: data that cannot be read, a program that cannot be started, or one with another
/// model.
pub fn external_study(
    task: &TaskConfig,
    learner: &LearnerConfig,
    silos: Option<usize>,
    folder: Option<&Path>,
    seed: u64,
    own: impl Fn(usize) -> u64,
) -> Result<Study, DataError> {
    let mut study = match task {
        TaskConfig::External(external) => {
            if !learner.silos.is_empty() {
                return Err(DataError::Config(
                    "`learner.silos` goes with a task whose model Rota knows, such as [task.table]: \
                     in [task.external] every silo learns with the program"
                        .into(),
                ));
            }
            absent(external, &names(silos.unwrap_or(SILOS)))?
        }
        task => task.study(silos, folder, seed)?,
    };
    let of = study.silos.len();
    let chosen = chosen(&study.silos, &learner.silos)?;
    let programs = Programs::new(learner, chosen.len())?;
    // What is not agreed is as the first silo's program says it.
    let mut agreed = match task {
        TaskConfig::External(task) => Some(Agreed::before(task)),
        _ => None,
    };
    let mut doubts = [(Doubt::Columns, vec![]), (Doubt::Outputs, vec![])];
    for (nth, place) in chosen.into_iter().enumerate() {
        let silo = &mut study.silos[place];
        let seeds = (own(place), seed);
        let TaskConfig::External(task) = task else {
            *silo = of_table(silo, &programs, (place, of), seeds)?;
            continue;
        };
        let held = agreed.take().unwrap_or_else(|| Agreed::by(task));
        let (opened, learner) = of_program(task, held, silo, &programs, (place, of), seeds)?;
        *silo = opened;
        for (doubt, about) in &mut doubts {
            if learner.doubts.contains(doubt) {
                about.push(silo.name.clone());
            }
        }
        let next = learner.agreed();
        if nth == 0 {
            let proposed = proposed(task, &next);
            if let Some(hash) = &proposed.task.model {
                study.notes.push(format!(
                    "all silos start from the values that the program of {} holds (hash {})",
                    silo.name,
                    &hash[..8]
                ));
            }
            study.proposed = Some(Arc::new(proposed));
        }
        agreed = Some(next);
    }
    let doubts = doubts.iter();
    let doubts = doubts.filter_map(|(doubt, about)| doubt.of(about));
    study.notes.extend(doubts);
    if let TaskConfig::External(task) = task {
        measured_somewhere(&study.silos, task.metric, seed)?;
    }
    // Rows of programs cannot be pooled.
    if matches!(task, TaskConfig::External(_)) {
        study.pooled = None;
    }
    Ok(study)
}

/// This silo, at position `place` of `of`, with a program. `own` is the silo's seed, `start` that of
/// the initial model.
///
/// # Errors
/// [`DataError::Config`]: a task that takes no program, a program that cannot be started, or one
/// with another model or other frozen tensors.
pub fn external_silo(
    task: &TaskConfig,
    silo: &StudySilo,
    programs: &Arc<Programs>,
    place: (usize, usize),
    seeds: (u64, u64),
) -> Result<StudySilo, DataError> {
    let TaskConfig::External(task) = task else {
        return of_table(silo, programs, place, seeds);
    };
    let (silo, learner) = of_program(task, Agreed::by(task), silo, programs, place, seeds)?;
    let name = [silo.name.clone()];
    let doubts = learner.doubts.iter();
    doubts
        .filter_map(|doubt| doubt.of(&name))
        .for_each(|doubt| tracing::warn!("{doubt}"));
    measured_here(&silo, task.metric, seeds.1)?;
    Ok(silo)
}

/// A silo of a task of its own with its program.
fn of_program(
    task: &ExternalTask,
    agreed: Agreed,
    silo: &StudySilo,
    programs: &Arc<Programs>,
    (place, of): (usize, usize),
    seeds: (u64, u64),
) -> Result<(StudySilo, Arc<ExternalLearner>), DataError> {
    let whose = (place, of, silo.name.as_str());
    let task = Arc::new(task.clone());
    let learner = ExternalLearner::with(&task, agreed, programs.clone(), whose, seeds)?;
    let learner = Arc::new(learner);
    let silo = StudySilo {
        rows: learner.rows(),
        learner: learner.clone(),
        ..silo.clone()
    };
    Ok((silo, learner))
}

/// A silo of a table with a program that trains.
fn of_table(
    silo: &StudySilo,
    programs: &Arc<Programs>,
    (place, of): (usize, usize),
    seeds: (u64, u64),
) -> Result<StudySilo, DataError> {
    let Some(table) = &silo.table else {
        return Err(DataError::Config(
            "`learner` goes with [task.external] or [task.table]".into(),
        ));
    };
    let whose = (place, of, silo.name.as_str());
    let learner = TableByProgram::open(table, programs.clone(), whose, seeds)?;
    Ok(StudySilo {
        learner: Arc::new(learner),
        ..silo.clone()
    })
}

/// The task with what the first silo's program said.
fn proposed(task: &ExternalTask, agreed: &Agreed) -> Proposed {
    let mut task = task.clone();
    task.frozen = agreed.frozen.digest().or(task.frozen);
    let held = agreed.frozen.each();
    if task.held.is_empty() && held.len() <= MOST_HELD {
        task.held = held.clone();
    }
    task.columns = agreed.columns.clone();
    task.classes = agreed.classes.clone();
    task.trial = agreed.trial.clone();
    let model = match &agreed.begins {
        Begins::Copy(model) => Some(model.clone()),
        _ => None,
    };
    if let Some(model) = &model {
        task.start = Some(StartFrom::Proposer);
        task.model = Some(hex(&model.hash()));
    }
    Proposed { task, model }
}

fn names(silos: usize) -> Vec<String> {
    (1..=silos).map(|number| format!("silo {number}")).collect()
}

/// Positions of the silos with these names or positions; of all where there are none.
fn chosen(silos: &[StudySilo], names: &[String]) -> Result<Vec<usize>, DataError> {
    if names.is_empty() {
        return Ok((0..silos.len()).collect());
    }
    let position = |name: &String| {
        let named = silos.iter().position(|silo| silo.name == *name);
        let numbered = || name.parse().ok().filter(|&at: &usize| at < silos.len());
        named.or_else(numbered).ok_or_else(|| {
            let known: Vec<_> = silos.iter().map(|silo| silo.name.as_str()).collect();
            DataError::Config(format!(
                "`learner.silos` names {name:?}; there are {}",
                known.join(", ")
            ))
        })
    };
    let mut places: Vec<usize> = names.iter().map(position).collect::<Result<_, _>>()?;
    places.sort_unstable();
    places.dedup();
    Ok(places)
}
