//! One way of learning with one seed: settings tried and chosen on validation rows, then measured on
//! test rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use learn::{DataError, MetricName, Study, TaskConfig};
use methods::learner::Split;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::experiment::{Entry, Experiment};
use super::file::{Point, Variant};
use super::rows::StoredRows;
use super::trial::{Trial, Values, Way};
use crate::error::RunError;
use crate::scenario::Scenario;

/// Which run of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unit {
    /// Name of the variant; empty where there is one only.
    pub variant: String,
    /// Label of the way of learning.
    pub strategy: String,
    /// The seed, from 0: the scenario's seed plus this.
    pub seed: usize,
}

/// Settings that were tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Tried {
    /// The settings.
    pub(super) point: BTreeMap<String, Value>,
    /// The round with the best value.
    pub(super) round: Option<u64>,
    /// The value of that round on validation rows.
    pub(super) value: Option<f64>,
    /// Why there is none.
    pub(super) failed: Option<String>,
}

/// The mean over silos of a metric after a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CurvePoint {
    pub(super) round: u64,
    /// Bytes that all members had sent.
    pub(super) bytes: u64,
    /// Mean over the members of the first metric on test rows.
    pub(super) inside: Option<f64>,
    /// Mean over the silos outside.
    pub(super) outside: Option<f64>,
    /// Coalition of every member.
    pub(super) coalitions: Vec<Option<u32>>,
}

/// A silo's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SiloResult {
    pub(super) name: String,
    /// Whether it took no part and was given a model.
    pub(super) outside: bool,
    /// Metrics on its test rows, with the model of the chosen round.
    pub(super) values: Values,
    /// Metrics with the model of the round that is best on test rows.
    pub(super) best: Values,
    /// Row by row, with the model of the chosen round.
    pub(super) rows: Option<StoredRows>,
}

/// The result of one way of learning with one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct UnitResult {
    #[serde(flatten)]
    pub(super) unit: Unit,
    pub(super) tried: Vec<Tried>,
    /// The chosen settings.
    pub(super) point: BTreeMap<String, Value>,
    /// The chosen round, and the one that is best on test rows.
    pub(super) round: u64,
    pub(super) best_round: u64,
    /// Trainings of single silos that the choice took, and that the result took.
    pub(super) trainings: (u64, u64),
    pub(super) curve: Vec<CurvePoint>,
    /// Members first.
    pub(super) silos: Vec<SiloResult>,
    /// Trained parameters of a model.
    pub(super) parameters: u64,
    /// Wall-clock seconds: of the choice, and of the result.
    pub(super) seconds: (f64, f64),
    /// Numbers that the strategy kept after the chosen round.
    pub(super) memory: Values,
    /// The graph of members that it kept: pairs of members.
    pub(super) graph: Option<Vec<[u32; 2]>>,
    /// Why there is no result, or why it is not to be used.
    pub(super) failed: Option<String>,
}

/// What the runs of an experiment share.
pub(super) struct Runs<'a> {
    pub(super) experiment: &'a Experiment,
    /// Gives the silos of a scenario.
    pub(super) study: &'a dyn Fn(&Scenario) -> Result<Arc<Study>, DataError>,
    /// Gives the choice of the first seed, where it chooses for all.
    pub(super) first: &'a dyn Fn(&Unit) -> Result<Option<UnitResult>, RunError>,
}

/// The scenario that is measured, the chosen round of it, and the training if it is done already.
type Chosen = (Scenario, Option<u64>, Option<Trial>);

impl Runs<'_> {
    /// Runs a unit. A federation that fails is a result that says so.
    ///
    /// # Errors
    /// [`RunError::Data`] and a violated safety property: nothing that a strategy is to blame for.
    pub(super) fn run(
        &self,
        variant: &Variant,
        entry: &Entry,
        unit: &Unit,
    ) -> Result<UnitResult, RunError> {
        let mut result = UnitResult {
            unit: unit.clone(),
            tried: Vec::new(),
            point: BTreeMap::new(),
            round: 0,
            best_round: 0,
            trainings: (0, 0),
            curve: Vec::new(),
            silos: Vec::new(),
            parameters: 0,
            seconds: (0.0, 0.0),
            memory: Values::new(),
            graph: None,
            failed: None,
        };
        let chosen = self.choose(variant, entry, unit, &mut result)?;
        let Some((scenario, round, trial)) = chosen else {
            let first = result.tried.iter().find_map(|tried| tried.failed.clone());
            result.failed = Some(first.unwrap_or_else(|| "no settings gave a model".into()));
            return Ok(result);
        };
        let trial = match trial {
            Some(trial) => trial,
            None => match self.train(&scenario, entry)? {
                Ok(trial) => trial,
                Err(why) => {
                    result.failed = Some(why);
                    return Ok(result);
                }
            },
        };
        result.measure(self.experiment, &trial, round);
        Ok(result)
    }

    /// Trains; the inner error is the strategy's failure, in a sentence.
    fn train(&self, scenario: &Scenario, entry: &Entry) -> Result<Result<Trial, String>, RunError> {
        let study = (self.study)(scenario)?;
        let way = match (entry.is_constant(), entry.is_pooled()) {
            (true, _) => Way::Constant,
            (_, true) => Way::Pooled,
            _ => Way::Federated,
        };
        match Trial::run(scenario, &study, way) {
            Ok(trial) => Ok(Ok(trial)),
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
        entry: &Entry,
        unit: &Unit,
        result: &mut UnitResult,
    ) -> Result<Option<Chosen>, RunError> {
        let tune = &self.experiment.tune;
        let points = self.experiment.points(entry);
        let scenario = |point: &Point, validation: Option<f64>| -> Result<Scenario, RunError> {
            let scenario = self.experiment.scenario(variant, entry, point, unit.seed);
            let mut scenario = scenario.map_err(|error| RunError::Setup(error.to_string()))?;
            if let (Some(share), TaskConfig::Table(task)) = (validation, &mut scenario.task) {
                task.split.validation = share;
            }
            Ok(scenario)
        };
        // Without validation rows there is nothing to choose by: the first settings, the last round.
        if entry.is_constant() || tune.validation == 0.0 {
            result.point = json(&points[0]);
            return Ok(Some((scenario(&points[0], None)?, None, None)));
        }
        if !tune.every_seed && unit.seed > 0 {
            let first = Unit {
                seed: 0,
                ..unit.clone()
            };
            let Some(first) = (self.first)(&first)? else {
                return Ok(None);
            };
            let point = points.iter().find(|point| json(point) == first.point);
            let Some(point) = point.filter(|_| first.failed.is_none()) else {
                result.tried = first.tried;
                return Ok(None);
            };
            result.point = first.point;
            let validation = (!tune.again).then_some(tune.validation);
            return Ok(Some((
                scenario(point, validation)?,
                Some(first.round),
                None,
            )));
        }
        let mut best: Option<(f64, usize, u64, Trial)> = None;
        for (at, point) in points.iter().enumerate() {
            let held_out = scenario(point, Some(tune.validation))?;
            let mut tried = Tried {
                point: json(point),
                round: None,
                value: None,
                failed: None,
            };
            match self.train(&held_out, entry)? {
                Ok(trial) => {
                    result.seconds.0 += trial.seconds;
                    result.trainings.0 += trainings(&trial);
                    match best_round(&trial, tune.by, Split::Validation) {
                        Some((round, value)) => {
                            (tried.round, tried.value) = (Some(round), Some(value));
                            let ahead = best
                                .as_ref()
                                .is_none_or(|(least, ..)| better(tune.by, value, *least));
                            if ahead {
                                best = Some((value, at, round, trial));
                            }
                        }
                        None => {
                            let why = trial.failure();
                            tried.failed = Some(why.unwrap_or_else(|| diverged(tune.by)));
                        }
                    }
                }
                Err(why) => tried.failed = Some(why),
            }
            result.tried.push(tried);
        }
        let Some((_, at, round, trial)) = best else {
            return Ok(None);
        };
        result.point = json(&points[at]);
        Ok(Some(match tune.again {
            true => (scenario(&points[at], None)?, Some(round), None),
            false => (
                scenario(&points[at], Some(tune.validation))?,
                Some(round),
                Some(trial),
            ),
        }))
    }
}

fn diverged(by: MetricName) -> String {
    format!(
        "its {} on validation rows is not a finite number in any round",
        by.key()
    )
}

fn json(point: &Point) -> BTreeMap<String, Value> {
    let value = |value: &toml::Value| serde_json::to_value(value).unwrap_or_default();
    point
        .iter()
        .map(|(key, one)| (key.clone(), value(one)))
        .collect()
}

fn better(metric: MetricName, value: f64, than: f64) -> bool {
    match metric.higher_is_better() {
        true => value > than,
        false => value < than,
    }
}

fn trainings(trial: &Trial) -> u64 {
    (trial.members() * trial.rounds().len()) as u64
}

/// The round with the best mean over the honest members' rows, and that mean. Rounds without a finite mean
/// are left out.
fn best_round(trial: &Trial, metric: MetricName, split: Split) -> Option<(u64, f64)> {
    let mut best: Option<(u64, f64)> = None;
    let honest = trial.honest();
    for round in trial.rounds() {
        let (mut sum, mut rows) = (0.0, 0.0);
        for place in (0..trial.members()).filter(|&place| honest[place]) {
            if let Some(measured) = trial.measure(place, round, split) {
                let value = measured.values.get(metric.key()).copied();
                // A silo with rows of one class has no area; a model that diverged has no loss.
                if let Some(value) = value {
                    sum += measured.samples as f64 * value;
                    rows += measured.samples as f64;
                }
            }
        }
        let mean = sum / rows;
        if mean.is_finite() && best.is_none_or(|(_, least)| better(metric, mean, least)) {
            best = Some((round, mean));
        }
    }
    best
}

/// What belongs to the honest members.
fn of_honest<T>(members: Vec<T>, honest: &[bool]) -> Vec<T> {
    let each = members.into_iter().zip(honest);
    each.filter_map(|(one, &honest)| honest.then_some(one))
        .collect()
}

/// The edges between honest members, which are counted from 0 without the others.
fn among_honest(edges: &[[u32; 2]], honest: &[bool]) -> Vec<[u32; 2]> {
    let place = |member: u32| {
        let before = honest.get(..member as usize)?;
        let is_honest = *honest.get(member as usize)?;
        is_honest.then(|| before.iter().filter(|honest| **honest).count() as u32)
    };
    let edges = edges.iter();
    edges
        .filter_map(|&[one, other]| Some([place(one)?, place(other)?]))
        .collect()
}

impl UnitResult {
    /// Measures the models of the chosen round, or of the last one, on test rows, and the course over
    /// all rounds.
    fn measure(&mut self, experiment: &Experiment, trial: &Trial, round: Option<u64>) {
        self.seconds.1 = trial.seconds;
        self.trainings.1 = trainings(trial);
        self.parameters = trial.parameters();
        let rounds = trial.rounds();
        let Some(&last) = rounds.last() else {
            self.failed = Some(
                trial
                    .failure()
                    .unwrap_or_else(|| "no model was trained".into()),
            );
            return;
        };
        self.round = round.unwrap_or(last).min(last);
        let names = trial.names();
        let members = trial.members();
        let honest = trial.honest();
        let is_honest = |place: usize| honest.get(place).copied().unwrap_or(true);
        let key = experiment
            .metrics
            .first()
            .map_or("loss", |metric| metric.key());
        let higher = experiment
            .metrics
            .first()
            .is_some_and(|metric| metric.higher_is_better());
        let mut all: BTreeMap<u64, Vec<Values>> = BTreeMap::new();
        for &round in &rounds {
            let each = (0..names.len()).map(|place| {
                if !is_honest(place) {
                    return Values::new();
                }
                let measured = trial.measure(place, round, Split::Test);
                measured.map_or_else(Values::new, |measured| measured.values)
            });
            let each: Vec<Values> = each.collect();
            let mean = |silos: &[Values]| {
                let known = silos.iter().filter_map(|values| values.get(key));
                let (count, sum) =
                    known.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
                (count > 0.0)
                    .then_some(sum / count)
                    .filter(|mean: &f64| mean.is_finite())
            };
            self.curve.push(CurvePoint {
                round,
                bytes: trial.bytes(round),
                inside: mean(&each[..members]),
                outside: mean(&each[members..]),
                coalitions: of_honest(trial.coalitions(round), &honest),
            });
            all.insert(round, each);
        }
        let mut best = (last, None::<f64>);
        for point in &self.curve {
            // Where silos are outside, they are what the papers choose the round by.
            let value = point.outside.or(point.inside);
            if let Some(value) = value {
                let ahead = best
                    .1
                    .is_none_or(|than| if higher { value > than } else { value < than });
                if ahead {
                    best = (point.round, Some(value));
                }
            }
        }
        self.best_round = best.0;
        self.memory = trial.memory(self.round);
        let graph = trial.graph(self.round);
        self.graph = graph.map(|edges| among_honest(&edges, &honest));
        let values = |round: u64, place: usize| {
            all.get(&round)
                .and_then(|silos| silos.get(place))
                .cloned()
                .unwrap_or_default()
        };
        let named = names.into_iter().enumerate();
        for (place, name) in named.filter(|&(place, _)| is_honest(place)) {
            self.silos.push(SiloResult {
                name,
                outside: place >= members,
                values: values(self.round, place),
                best: values(self.best_round, place),
                rows: trial.rows(place, self.round),
            });
        }
        let measured: Vec<Values> = (0..members)
            .map(|place| values(self.round, place))
            .collect();
        let mut unusable = trial.unusable(self.round, &measured);
        unusable.retain(|(place, _)| is_honest(*place));
        let members = honest.iter().filter(|honest| **honest).count();
        if let Some((place, reason)) = unusable.first().filter(|_| 2 * unusable.len() >= members) {
            self.failed = Some(format!(
                "the models of {} of {members} silos are of no use after round {}: at {}, {reason}",
                unusable.len(),
                self.round,
                trial.names()[*place],
            ));
        }
        self.failed = self.failed.take().or_else(|| trial.failure());
        // What is not finite cannot be written down, and is of no use for comparisons.
        for silo in &mut self.silos {
            silo.values.retain(|_, value| value.is_finite());
            silo.best.retain(|_, value| value.is_finite());
            silo.rows = silo.rows.take().filter(StoredRows::is_finite);
        }
        self.memory.retain(|_, value| value.is_finite());
    }
}
