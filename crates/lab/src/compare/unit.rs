//! One strategy with one seed: settings tried and chosen on validation rows, then measured on
//! test rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use learn::Study;
use methods::learner::Split;
use task::{TaskConfig, data::DataError, metrics::MetricName};

use super::alone::AllAlone;
use super::entry::ExperimentEntry;
use super::experiment::Experiment;
use super::file::{RunSettings, Variant};
use super::result::{ExperimentUnit, TriedPoint, UnitResult, trainings};
use super::trial::{LearningWay, TrainedFederation};
use super::widen::{Edge, as_json, as_settings};
use crate::keep::KeepError;
use simulations::RunError;
use simulations::scenario::Scenario;

/// Common parts of the runs of an experiment.
pub(super) struct Runs<'a> {
    pub(super) experiment: &'a Experiment,
    /// Folder in which every run keeps what its federation learned.
    pub(super) keep: Option<&'a Path>,
    /// Gives the silos of a scenario.
    pub(super) study: &'a dyn Fn(&Scenario) -> Result<Arc<Study>, DataError>,
    /// Gives what the silos of a scenario make alone.
    pub(super) alone: &'a dyn Fn(&Scenario) -> Result<Arc<AllAlone>, RunError>,
    /// Gives the choice of the first seed, where it chooses for all.
    pub(super) first: &'a dyn Fn(&ExperimentUnit) -> Result<UnitResult, RunError>,
}

/// The scenario that is measured, the chosen round of it, and the training if it is done already.
type ChosenRound = (Scenario, Option<u64>, Option<TrainedFederation>);

impl Runs<'_> {
    /// Runs a unit. A federation that fails is a result that says so.
    ///
    /// # Errors
    /// [`RunError::Data`] and a violated safety property: nothing that a strategy is to blame for. A file of what
    /// is kept that cannot be written.
    pub(super) fn run(
        &self,
        variant: &Variant,
        entry: &ExperimentEntry,
        unit: &ExperimentUnit,
    ) -> Result<UnitResult, KeepError> {
        let mut result = UnitResult::new(unit);
        let chosen = self.choose(variant, entry, unit, &mut result)?;
        let Some((scenario, round, trial)) = chosen else {
            let first = result.tried.iter().find_map(|tried| tried.failed.clone());
            result.failed = Some(first.unwrap_or_else(|| "no settings gave a model".into()));
            return Ok(result);
        };
        let trial = match trial {
            Some(trial) => trial,
            None => match self.train(&scenario, (variant, entry, unit))? {
                Ok(trial) => trial,
                Err(why) => {
                    result.failed = Some(why);
                    return Ok(result);
                }
            },
        };
        if let Some(keep) = self.keep {
            trial.keep(&keep.join(self.place(unit)))?;
        }
        let study = (self.study)(&scenario).map_err(RunError::from)?;
        result.notes.clone_from(&study.notes);
        let models = result.measure(&self.experiment.metrics, &trial, round);
        if entry.is_own() {
            let alone = self.experiment.alone(variant, entry, &scenario, unit.seed);
            result.untuned = (self.alone)(&alone)?.untuned(&trial.names());
        }
        if result.failed.is_none() && self.experiment.serves(entry) && scenario.serve.folds > 0 {
            let began = Instant::now();
            let scenario = self.experiment.alone(variant, entry, &scenario, unit.seed);
            let alone = (self.alone)(&scenario)?;
            result.serve(&trial, &models, &alone.all());
            result.seconds.2 = began.elapsed().as_secs_f64();
        }
        Ok(result)
    }

    /// The folder of a run below that of all: the variant, where there are several, the strategy and the seed.
    /// Each begins with its number, because other names may become the same letters and signs.
    fn place(&self, unit: &ExperimentUnit) -> PathBuf {
        let Experiment {
            variants, entries, ..
        } = self.experiment;
        let variant = variants.iter().position(|one| one.name == unit.variant);
        let entry = entries.iter().position(|one| one.label == unit.strategy);
        let parts = [(variant, &unit.variant), (entry, &unit.strategy)];
        let named = parts.into_iter().filter(|(_, name)| !name.is_empty());
        let folder: PathBuf = named
            .map(|(at, name)| {
                let name = node::commands::file_name(name, "run");
                format!("{}-{name}", at.unwrap_or_default() + 1)
            })
            .collect();
        folder.join(format!("seed-{}", unit.seed))
    }

    /// Trains; the inner error is the strategy's failure, in a sentence.
    fn train(
        &self,
        scenario: &Scenario,
        (variant, entry, unit): (&Variant, &ExperimentEntry, &ExperimentUnit),
    ) -> Result<Result<TrainedFederation, String>, RunError> {
        let study = (self.study)(scenario)?;
        if entry.is_own() {
            let began = Instant::now();
            let alone = self.experiment.alone(variant, entry, scenario, unit.seed);
            let all = (self.alone)(&alone)?.all();
            let models = all
                .iter()
                .map(|own| Some((**own).as_ref()?.local.model.clone()));
            let trial = TrainedFederation::own(scenario, &study, models.collect(), began);
            return trial.map(|trial| Ok(trial.adapted(entry.adapted)));
        }
        let way = match (entry.is_constant(), entry.is_pooled()) {
            (true, _) => LearningWay::Constant,
            (_, true) => LearningWay::Pooled,
            _ => LearningWay::Federated,
        };
        match TrainedFederation::run(scenario, &study, way, self.keep.is_some()) {
            Ok(trial) => Ok(Ok(trial.adapted(entry.adapted))),
            Err(
                error @ (RunError::Training { .. } | RunError::Setup(_) | RunError::Stuck { .. }),
            ) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Tries settings and chooses; `None` where no settings give a model.
    fn choose(
        &self,
        variant: &Variant,
        entry: &ExperimentEntry,
        unit: &ExperimentUnit,
        result: &mut UnitResult,
    ) -> Result<Option<ChosenRound>, RunError> {
        let tune = &self.experiment.tune;
        let points = self.experiment.points(entry);
        let scenario =
            |point: &RunSettings, validation: Option<f64>| -> Result<Scenario, RunError> {
                let scenario = self.experiment.scenario(variant, entry, point, unit.seed);
                let mut scenario = scenario.map_err(|error| RunError::Setup(error.to_string()))?;
                if let (Some(share), TaskConfig::Table(task)) = (validation, &mut scenario.task) {
                    task.split.validation = share;
                }
                Ok(scenario)
            };
        let first = scenario(&points[0], None)?;
        // Without validation rows there is nothing to choose by: the first settings, the last round. Nor is
        // anything chosen by rows that noise protects.
        if entry.is_constant() || entry.is_own() || first.is_noised() || tune.validation == 0.0 {
            result.point = as_json(&points[0]);
            return Ok(Some((first, None, None)));
        }
        if !tune.every_seed && unit.seed > 0 {
            let Some((point, round)) = self.chosen_first(unit, result)? else {
                return Ok(None);
            };
            let validation = (!tune.again).then_some(tune.validation);
            return Ok(Some((scenario(&point, validation)?, round, None)));
        }
        self.can_choose(&first)?;
        let mut best: Option<UnitAttempt> = None;
        let mut untried = points;
        for widened in 0..=tune.widen {
            for point in untried {
                let held_out = scenario(&point, Some(tune.validation))?;
                let of = (variant, entry, unit);
                if let Some(attempt) = self.attempt(&held_out, of, point, result)?
                    && best
                        .as_ref()
                        .is_none_or(|best| attempt.is_ahead(best, tune.by))
                {
                    best = Some(attempt);
                }
            }
            untried = match &best {
                Some(best) if widened < tune.widen => {
                    self.wider((variant, entry), best, &result.tried)
                }
                _ => break,
            };
        }
        let Some(UnitAttempt { point, best, trial }) = best else {
            return Ok(None);
        };
        result.point = as_json(&point);
        result.near = Some(best.near);
        let round = (!trial.ended()).then_some(best.round);
        Ok(Some(if tune.again {
            (scenario(&point, None)?, round, None)
        } else {
            (scenario(&point, Some(tune.validation))?, round, Some(trial))
        }))
    }

    /// Refuses programs without validation rows before anything is trained: settings and rounds could not be chosen.
    ///
    /// # Errors
    /// [`RunError::Setup`]: what to do.
    fn can_choose(&self, scenario: &Scenario) -> Result<(), RunError> {
        if !matches!(scenario.task, TaskConfig::External(_)) {
            return Ok(());
        }
        let study = (self.study)(scenario)?;
        if study.silos.iter().any(|silo| silo.rows.validation > 0) {
            return Ok(());
        }
        Err(RunError::Setup(format!(
            "{}: {NO_VALIDATION} (in Python `validation=…`), or the experiment takes its settings and its last round \
             as they are: `[tune]` with `validation = 0`",
            scenario.file
        )))
    }

    /// Returns what is tried beyond the best settings so far: twice as many rounds, where the best one is the last, and
    /// the next value of each setting that is at the edge of what was tried.
    fn wider(
        &self,
        (variant, entry): (&Variant, &ExperimentEntry),
        best: &UnitAttempt,
        tried: &[TriedPoint],
    ) -> Vec<RunSettings> {
        let experiment = self.experiment;
        let own = as_json(&best.point);
        let last = best.trial.rounds().last() == Some(&best.best.round) && !best.trial.ended();
        if entry.fixed || entry.is_exact() {
            return Vec::new();
        }
        let longer = experiment.longer(variant, entry, &best.point);
        let edges = Edge::all(tried.iter().map(|one| &one.point)).into_iter();
        let beyond = edges
            .filter(|edge| edge.holds(&own))
            .filter_map(|edge| experiment.beyond(variant, entry, &best.point, &edge));
        let mut wider: Vec<_> = longer.filter(|_| last).into_iter().chain(beyond).collect();
        wider.retain(|point| tried.iter().all(|one| one.point != as_json(point)));
        wider
    }

    /// The settings and the round that the first seed chose for all, where it does not end by itself; `None` where no
    /// settings gave it a model.
    fn chosen_first(
        &self,
        unit: &ExperimentUnit,
        result: &mut UnitResult,
    ) -> Result<Option<(RunSettings, Option<u64>)>, RunError> {
        let first = ExperimentUnit {
            seed: 0,
            ..unit.clone()
        };
        let first = (self.first)(&first)?;
        if first.failed.is_some() {
            result.tried = first.tried;
            return Ok(None);
        }
        let point = as_settings(&first.point);
        (result.point, result.near) = (first.point, first.near);
        Ok(Some((point, (!first.ended).then_some(first.round))))
    }

    /// Trains with settings, and notes how good their best round is on validation rows; `None` where none
    /// is.
    fn attempt(
        &self,
        held_out: &Scenario,
        of: (&Variant, &ExperimentEntry, &ExperimentUnit),
        point: RunSettings,
        result: &mut UnitResult,
    ) -> Result<Option<UnitAttempt>, RunError> {
        let by = self.experiment.tune.by;
        let mut tried = TriedPoint {
            point: as_json(&point),
            round: None,
            near: None,
            value: None,
            failed: None,
        };
        let mut best = None;
        match self.train(held_out, of)? {
            Ok(trial) => {
                result.seconds.0 += trial.seconds;
                result.trainings.0 += trainings(&trial);
                match best_round(&trial, by, Split::Validation) {
                    Some(found) => {
                        tried.round = Some(found.round);
                        tried.near = Some(found.near);
                        tried.value = Some(found.value);
                        best = Some(UnitAttempt {
                            point,
                            best: found,
                            trial,
                        });
                    }
                    None => {
                        let why = trial.failure();
                        tried.failed = Some(why.unwrap_or_else(|| undecided(&trial, by)));
                    }
                }
            }
            Err(why) => tried.failed = Some(why),
        }
        result.tried.push(tried);
        Ok(best)
    }
}

const NO_VALIDATION: &str = "no silo has validation rows, by which settings and rounds are chosen: the learner has to \
                             have some of its own";

/// Returns the reason for which no round of a trial is the best one.
fn undecided(trial: &TrainedFederation, by: MetricName) -> String {
    if !trial.has_validation_rows() {
        return NO_VALIDATION.into();
    }
    format!(
        "its {} on validation rows is not a finite number in any round",
        by.key()
    )
}

/// Settings that gave a model.
struct UnitAttempt {
    point: RunSettings,
    best: Best,
    trial: TrainedFederation,
}

impl UnitAttempt {
    /// Returns whether these settings are chosen before the best ones so far. Of equals the first are, which took fewer
    /// rounds.
    fn is_ahead(&self, best: &Self, by: MetricName) -> bool {
        better(by, self.best.value, best.best.value)
    }
}

fn better(metric: MetricName, value: f64, than: f64) -> bool {
    if metric.higher_is_better() {
        value > than
    } else {
        value < than
    }
}

/// Distance from the best value within which one is nearly as good, as a share of the best.
const NEAR: f64 = 0.01;

/// The round that is best on some rows.
struct Best {
    round: u64,
    value: f64,
    /// The first round that is nearly as good.
    near: u64,
}

/// The round with the best mean over the honest members' rows, or the last one of a federation that ended by itself.
/// Rounds without a finite mean are left out.
fn best_round(trial: &TrainedFederation, metric: MetricName, split: Split) -> Option<Best> {
    let mut all: Vec<(u64, f64)> = Vec::new();
    let honest = trial.honest();
    let mut rounds = trial.rounds();
    if trial.ended() {
        rounds.drain(..rounds.len() - 1);
    }
    for round in rounds {
        let (mut sum, mut rows) = (0.0, 0.0);
        for place in (0..trial.members()).filter(|&place| honest[place]) {
            if let Some((samples, values)) = trial.evaluate(place, round, split) {
                // A silo with rows of one class has no area; a model that diverged has no loss.
                if let Some(value) = values.get(metric.key()) {
                    sum += samples as f64 * value;
                    rows += samples as f64;
                }
            }
        }
        let mean = sum / rows;
        if mean.is_finite() {
            all.push((round, mean));
        }
    }
    let ahead = |best: (u64, f64), one: (u64, f64)| {
        if better(metric, one.1, best.1) {
            one
        } else {
            best
        }
    };
    let (round, value) = all.iter().copied().reduce(ahead)?;
    let close = |one: &&(u64, f64)| (one.1 - value).abs() <= NEAR * value.abs();
    let near = all.iter().find(close).map_or(round, |one| one.0);
    Some(Best { round, value, near })
}
