//! The silos of a task whose models are trained by programs.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::config::LearnerConfig;
use super::frozen::Frozen;
use super::learner::{Absent, ExternalLearner};
use super::programs::Programs;
use super::table::TableByProgram;
use super::task::{ExternalTask, StartFrom};
use crate::data::DataError;
use crate::metrics::Metric;
use crate::task::{RowCounts, SILOS, Silo, Study, TaskConfig};

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
            external.stand_ins(&names(silos.unwrap_or(SILOS)))?
        }
        task => task.study(silos, folder, seed)?,
    };
    let of = study.silos.len();
    let chosen = chosen(&study.silos, &learner.silos)?;
    let programs = Programs::new(learner, chosen.len())?;
    // Without an agreed digest of frozen tensors, that of the first silo holds.
    let mut frozen = match task {
        TaskConfig::External(task) if task.frozen.is_some() => Frozen::Agreed(task.frozen.clone()),
        _ => Frozen::Open,
    };
    for place in chosen {
        let silo = &mut study.silos[place];
        let seeds = (own(place), seed);
        let (opened, found) = opened(task, frozen, silo, &programs, (place, of), seeds)?;
        (*silo, frozen) = (opened, Frozen::Agreed(found));
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
    silo: &Silo,
    programs: &Arc<Programs>,
    place: (usize, usize),
    seeds: (u64, u64),
) -> Result<Silo, DataError> {
    let frozen = match task {
        TaskConfig::External(task) => Frozen::Agreed(task.frozen.clone()),
        _ => Frozen::Open,
    };
    let (silo, _) = opened(task, frozen, silo, programs, place, seeds)?;
    Ok(silo)
}

/// The silo with a program, and the digest of the program's frozen tensors.
fn opened(
    task: &TaskConfig,
    frozen: Frozen,
    silo: &Silo,
    programs: &Arc<Programs>,
    (place, of): (usize, usize),
    seeds: (u64, u64),
) -> Result<(Silo, Option<String>), DataError> {
    let whose = (place, of, silo.name.as_str());
    let programs = programs.clone();
    if let TaskConfig::External(task) = task {
        let task = Arc::new((**task).clone());
        let learner = ExternalLearner::with_frozen(&task, frozen, programs, whose, seeds)?;
        let found = learner.frozen();
        let silo = Silo {
            rows: learner.rows(),
            learner: Arc::new(learner),
            ..silo.clone()
        };
        return Ok((silo, found));
    }
    let Some(table) = &silo.table else {
        return Err(DataError::Config(
            "`learner` goes with [task.external] or [task.table]".into(),
        ));
    };
    let learner = TableByProgram::open(table, programs, whose, seeds)?;
    let silo = Silo {
        learner: Arc::new(learner),
        ..silo.clone()
    };
    Ok((silo, None))
}

fn names(silos: usize) -> Vec<String> {
    (1..=silos).map(|number| format!("silo {number}")).collect()
}

/// Positions of the silos with these names or positions; of all where there are none.
fn chosen(silos: &[Silo], names: &[String]) -> Result<Vec<usize>, DataError> {
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

impl ExternalTask {
    /// Stand-ins for silos whose programs are elsewhere.
    ///
    /// # Errors
    /// [`DataError::Config`]: tensors that make no model.
    pub fn stand_ins(&self, names: &[String]) -> Result<Study, DataError> {
        let task = Arc::new(self.clone());
        let layout = self.layout()?;
        let silo = |name: &String| Silo {
            name: name.clone(),
            learner: Arc::new(Absent {
                task: task.clone(),
                layout: layout.clone(),
                initial: OnceLock::new(),
            }),
            rows: RowCounts::default(),
            preparation: None,
            group: None,
            table: None,
        };
        Ok(Study {
            silos: names.iter().map(silo).collect(),
            metric: Metric {
                name: self.metric,
                unit: self.unit.clone(),
            },
            pooled: None,
            notes: Vec::new(),
            classes: Vec::new(),
            subgroups: Vec::new(),
        })
    }

    /// Whether the model before the first round is known without a program.
    pub fn start_is_known(&self) -> bool {
        self.start == StartFrom::Tensors
    }
}
