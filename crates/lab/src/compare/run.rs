//! Runs an experiment: all of it or a part, on all cores, continued where it was interrupted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learn::{Study, study_of};
use task::TaskConfig;
use task::data::{DataError, DataSet};

use super::alone::AllAlone;
use super::comparison::Comparison;
use super::entry::ExperimentEntry;
use super::error::ExperimentError;
use super::experiment::Experiment;
use super::file::{RunSettings, Variant};
use super::kept::RecentValues;
use super::result::{ExperimentUnit, UnitResult};
use super::store::ResultStore;
use super::unit::Runs;
use crate::keep::KeepError;
use simulations::pool::Threads;
use simulations::scenario::Scenario;
use simulations::{Mesh, RunError};

/// A part of an experiment: part `index` (from 1) of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of this part, from 1.
    pub index: usize,
    /// Number of parts.
    pub of: usize,
}

/// Error of a part that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected two numbers such as 2/8, the first from 1 to the second, got {0:?}")]
pub struct ShardError(String);

/// As `2/8`.
impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Self { index, of }),
            _ => Err(ShardError(text.to_owned())),
        }
    }
}

/// Progress of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareProgress {
    /// Runs that are done, those of an earlier start included.
    pub done: usize,
    /// Runs in all.
    pub runs: usize,
    /// The run that ended last.
    pub last: ExperimentUnit,
    /// Time that the rest takes, judged by the runs so far; `None` before the first of this start.
    pub left: Option<Duration>,
}

/// Called after every run.
pub type OnProgress<'a> = dyn FnMut(&CompareProgress) + 'a;

/// Gives the rows of all silos for the seed of a scenario.
pub type MakeRows = dyn Fn(u64) -> Result<DataSet, DataError> + Send + Sync;

/// Options of a comparison.
pub struct CompareOptions<'a> {
    /// The folder of data sets that are files.
    pub data: Option<PathBuf>,
    /// Runs at a time. Their number changes how long it takes and nothing else.
    pub threads: usize,
    /// Folder in which the results of runs are kept; `None`: in memory.
    pub folder: Option<PathBuf>,
    /// True if results in the folder are continued.
    pub resume: bool,
    /// The part that is run.
    pub shard: Option<Shard>,
    /// Folder in which every run keeps what its federation learned in every round.
    pub keep: Option<PathBuf>,
    /// Rows in place of those of the scenario's task.
    pub rows: Option<Arc<MakeRows>>,
    /// Called after every run.
    pub progress: Box<OnProgress<'a>>,
}

impl Default for CompareOptions<'_> {
    /// All of it, on all cores, in memory.
    fn default() -> Self {
        Self {
            data: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            folder: None,
            resume: false,
            shard: None,
            keep: None,
            rows: None,
            progress: Box::new(|_| ()),
        }
    }
}

/// Returns the key of a scenario's rows, beside the silos and the seed: with noise they are read in another
/// way.
pub(super) fn rows_of(scenario: &Scenario) -> String {
    let task = serde_json::to_string(&scenario.task).unwrap_or_default();
    format!("{task} {}", scenario.is_noised())
}

/// Common parts of all runs.
struct SharedByRuns {
    experiment: Experiment,
    data: Option<PathBuf>,
    keep: Option<PathBuf>,
    rows: Option<Arc<MakeRows>>,
    /// Runs that differ in the strategy only have the same rows.
    studies: RecentValues<Study>,
    /// The models that silos make alone, which are also the same for runs that differ in the strategy only.
    alone: RecentValues<AllAlone>,
    /// Runs of the first seed that choose settings for the other seeds, which may wait for them.
    firsts: RecentValues<UnitResult>,
    store: Option<ResultStore>,
}

impl SharedByRuns {
    fn study(&self, scenario: &Scenario) -> Result<Arc<Study>, DataError> {
        let key = format!(
            "{} {:?} {}",
            rows_of(scenario),
            scenario.silos,
            scenario.seed
        );
        let folder = self.data.as_deref();
        let study = || match (&self.rows, scenario.task_of_rows()?) {
            (Some(rows), TaskConfig::Table(task)) => {
                study_of(&task, rows(scenario.seed)?, scenario.seed)
            }
            _ => scenario.study(folder),
        };
        self.studies.get(&key, study)
    }

    fn alone(&self, scenario: &Scenario) -> Result<Arc<AllAlone>, RunError> {
        let study = self.study(scenario)?;
        let rows = rows_of(scenario);
        let strategy = serde_json::to_string(&scenario.strategy).unwrap_or_default();
        let key = format!(
            "{rows} {strategy} {:?} {:?} {} {} {}",
            scenario.silos, scenario.outside, scenario.seed, scenario.rounds, scenario.serve.folds
        );
        self.alone.get(&key, || AllAlone::new(scenario, &study))
    }

    /// A run. One that others wait for is done once, whoever comes first.
    fn result(&self, unit: &ExperimentUnit) -> Result<UnitResult, ExperimentError> {
        if unit.seed > 0 || self.experiment.tune.every_seed {
            return self.done(unit);
        }
        let key = format!("{}\n{}", unit.variant, unit.strategy);
        let first = self.firsts.get(&key, || self.done(unit))?;
        Ok((*first).clone())
    }

    /// A run: taken from the folder, or run and put there.
    fn done(&self, unit: &ExperimentUnit) -> Result<UnitResult, ExperimentError> {
        if let Some(done) = self.store.as_ref().and_then(|store| store.get(unit)) {
            return Ok(done);
        }
        let (variant, entry) = self.experiment.of(unit);
        let study = |scenario: &Scenario| self.study(scenario);
        let alone = |scenario: &Scenario| self.alone(scenario);
        // The first seed may be another thread's work, or another machine's. Both get the same.
        let first = |unit: &ExperimentUnit| {
            self.result(unit).map_err(|error| match error {
                ExperimentError::Run(error) => error,
                error => RunError::Setup(error.to_string()),
            })
        };
        let runs = Runs {
            experiment: &self.experiment,
            keep: self.keep.as_deref(),
            study: &study,
            alone: &alone,
            first: &first,
        };
        let result = runs
            .run(variant, entry, unit)
            .map_err(|error| match error {
                KeepError::Run(RunError::Data(error)) => self.experiment.of_data(error).into(),
                KeepError::Run(error) => ExperimentError::from(error),
                KeepError::File { file, reason } => ExperimentError::Result {
                    what: "write",
                    path: file,
                    reason,
                },
            })?;
        if let Some(store) = &self.store {
            store.put(&result)?;
        }
        Ok(result)
    }
}

impl Experiment {
    /// All runs, those with the same rows one after another.
    pub(super) fn units(&self) -> Vec<ExperimentUnit> {
        let mut units = Vec::new();
        for variant in &self.variants {
            for seed in 0..self.seeds {
                units.extend(self.entries.iter().map(|entry| ExperimentUnit {
                    variant: variant.name.clone(),
                    strategy: entry.label.clone(),
                    seed,
                }));
            }
        }
        units
    }

    /// The kinds of network that its federations need.
    pub(super) fn meshes(&self) -> BTreeSet<&'static str> {
        let pairs = self.variants.iter().flat_map(|variant| {
            let entries = self.entries.iter();
            entries.map(move |entry| (variant, entry))
        });
        let scenarios = pairs.filter_map(|(variant, entry)| {
            self.scenario(variant, entry, &RunSettings::new(), 0).ok()
        });
        let mesh = |scenario: Scenario| {
            if scenario.needs_network() {
                Mesh::VIRTUAL.name
            } else {
                Mesh::DIRECT.name
            }
        };
        scenarios.map(mesh).collect()
    }

    /// The runs of a part. Where the first seed chooses the settings of all, all seeds of a strategy
    /// are in one part.
    fn part(&self, shard: Shard) -> Vec<ExperimentUnit> {
        let units = self.units();
        let group = |unit: &ExperimentUnit| -> (String, String, usize) {
            let seed = if self.tune.every_seed { unit.seed } else { 0 };
            (unit.variant.clone(), unit.strategy.clone(), seed)
        };
        let mut groups: Vec<_> = Vec::new();
        for unit in &units {
            let own = group(unit);
            if !groups.contains(&own) {
                groups.push(own);
            }
        }
        let mine = |unit: &ExperimentUnit| {
            let at = groups.iter().position(|own| *own == group(unit));
            at.is_some_and(|at| at % shard.of == shard.index - 1)
        };
        units.into_iter().filter(mine).collect()
    }

    fn of(&self, unit: &ExperimentUnit) -> (&Variant, &ExperimentEntry) {
        let variant = self.variants.iter().find(|one| one.name == unit.variant);
        let entry = self.entries.iter().find(|one| one.label == unit.strategy);
        (
            variant.expect("units name variants of their experiment"),
            entry.expect("units name strategies of their experiment"),
        )
    }
}

/// Runs an experiment, or a part of it, and compares what is there.
///
/// # Errors
/// [`ExperimentError`]: data that cannot be read, results that cannot be kept, a violated safety
/// property. A strategy that fails is part of the comparison.
pub fn compare(
    experiment: &Experiment,
    mut options: CompareOptions<'_>,
) -> Result<Comparison, ExperimentError> {
    let began = Instant::now();
    let mut progress = std::mem::replace(&mut options.progress, Box::new(|_| ()));
    let results = run_units(experiment, options, None, &mut *progress)?;
    Ok(Comparison::of(
        experiment,
        results,
        began.elapsed().as_secs_f64(),
    ))
}

/// The results of all runs of the part, in no order; of those that end before `until`, if it is given.
pub(super) fn run_units(
    experiment: &Experiment,
    options: CompareOptions<'_>,
    until: Option<Instant>,
    progress: &mut OnProgress<'_>,
) -> Result<Vec<UnitResult>, ExperimentError> {
    let store = options.folder.as_deref();
    let store = store
        .map(|folder| ResultStore::open(folder, experiment, options.resume))
        .transpose()?;
    let threads = options.threads.max(1);
    let shared = Arc::new(SharedByRuns {
        experiment: experiment.clone(),
        data: options.data.clone(),
        keep: options.keep.clone(),
        rows: options.rows.clone(),
        studies: RecentValues::new(2 * threads),
        alone: RecentValues::new(2 * threads),
        // The next seed of a strategy comes after all other ways.
        firsts: RecentValues::new(experiment.entries.len() + threads),
        store,
    });
    let units = match options.shard {
        Some(shard) => experiment.part(shard),
        None => experiment.units(),
    };
    let mut results: Vec<UnitResult> = Vec::new();
    let mut to_do = Vec::new();
    for unit in units {
        match shared.store.as_ref().and_then(|store| store.get(&unit)) {
            Some(done) => results.push(done),
            None => to_do.push(unit),
        }
    }
    if !to_do.is_empty() {
        experiment.check_programs(&|scenario: &Scenario| shared.study(scenario))?;
    }
    let (earlier, runs) = (results.len(), results.len() + to_do.len());
    let pool = Threads::new(threads);
    let (sender, done) = std::sync::mpsc::channel();
    for unit in to_do {
        let (shared, sender, name) = (shared.clone(), sender.clone(), unit.clone());
        // Nobody waits for runs that begin too late.
        let late = move || until.is_some_and(|until| Instant::now() >= until);
        let job = move || (!late()).then(|| shared.result(&unit)).transpose();
        // The receiver is gone where another run has failed, or where time is over.
        pool.run(job, move |result| drop(sender.send((name, result))));
    }
    drop(sender);
    let started = Instant::now();
    let next = || match until {
        None => done.recv().ok(),
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            done.recv_timeout(left).ok()
        }
    };
    while let Some((unit, result)) = next() {
        let Some(result) = result.map_err(RunError::Setup)?? else {
            continue;
        };
        results.push(result);
        let new = results.len() - earlier;
        let rest = (runs - results.len()) as f64 / new as f64;
        progress(&CompareProgress {
            done: results.len(),
            runs,
            last: unit,
            left: Some(started.elapsed().mul_f64(rest)),
        });
    }
    Ok(results)
}

/// Puts the results of parts together and compares them; `into` names a folder in which they are kept
/// together. Returns the experiment, too.
///
/// # Errors
/// [`ExperimentError`]: no folder, one without results, or results of different experiments.
pub fn merge(
    parts: &[PathBuf],
    into: Option<&Path>,
) -> Result<(Experiment, Comparison), ExperimentError> {
    let began = Instant::now();
    let mut stores = Vec::new();
    let mut experiment: Option<Experiment> = None;
    for part in parts {
        let (store, own) = ResultStore::read(part)?;
        match &experiment {
            Some(first) if first.origin != own.origin => {
                return Err(ExperimentError::Other(part.clone()));
            }
            _ => experiment = Some(own),
        }
        stores.push(store);
    }
    let experiment = experiment.ok_or_else(|| ExperimentError::Experiment {
        file: "merge".into(),
        what: "name at least one folder with results".into(),
    })?;
    let into = into.map(|folder| ResultStore::open(folder, &experiment, true));
    let into = into.transpose()?;
    let mut results = Vec::new();
    for unit in experiment.units() {
        if let Some(result) = stores.iter().find_map(|store| store.get(&unit)) {
            if let Some(into) = &into {
                into.put(&result)?;
            }
            results.push(result);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let comparison = Comparison::of(&experiment, results, seconds);
    Ok((experiment, comparison))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::super::Choices;
    use super::super::tests::SMALL;
    use super::*;
    use crate::fixture::NOISED;

    /// One strategy whose first seed chooses for all four, so that threads wait for it at once.
    fn chosen_by_the_first() -> Experiment {
        let (text, _) = SMALL.split_once("[[strategy]]").unwrap();
        let text = text.replace("seeds = 2", "seeds = 4");
        let text = text.replace("points = 2", "points = 2\nevery-seed = false");
        let text = text + "[[strategy]]\nname = \"local\"\n";
        Experiment::parse("one.toml", &text, Path::new(""), &Choices::default()).unwrap()
    }

    #[test]
    fn threads_that_need_the_first_seeds_choice_do_not_conflict() {
        let experiment = chosen_by_the_first();
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let options = CompareOptions {
                threads: 4,
                folder: Some(folder.path().to_owned()),
                resume: true,
                ..CompareOptions::default()
            };
            let comparison = compare(&experiment, options).unwrap();
            assert!(comparison.missing.is_empty() && comparison.failures() == 0);
            let files = std::fs::read_dir(folder.path().join("runs")).unwrap();
            assert_eq!(files.count(), 4);
        }
    }

    #[test]
    fn runs_with_noise_and_without_do_not_share_rows() {
        let noised = Scenario::parse("noised.toml", NOISED).unwrap();
        let clear = Scenario {
            privacy: None,
            ..noised.clone()
        };
        assert_ne!(rows_of(&clear), rows_of(&noised));
    }
}
