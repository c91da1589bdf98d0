//! The result of one strategy with one seed.

use std::collections::BTreeMap;

use methods::learner::Split;
use methods::serving::Candidate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use task::metrics::MetricName;

use super::measured_model::{MeasuredModel, MetricValues};
use super::rows::StoredRows;
use super::trial::TrainedFederation;
use crate::summary::NoiseBound;

/// A run of an experiment, by what tells it apart from the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExperimentUnit {
    /// Name of the variant; empty where there is one only.
    pub variant: String,
    /// Label of the strategy.
    pub strategy: String,
    /// The seed, from 0: the scenario's seed plus this.
    pub seed: usize,
}

/// Settings that were tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TriedPoint {
    /// The settings.
    pub(super) point: BTreeMap<String, Value>,
    /// The round with the best value.
    pub(super) round: Option<u64>,
    /// The first round with a value that is nearly as good.
    pub(super) near: Option<u64>,
    /// The value of the best round on validation rows.
    pub(super) value: Option<f64>,
    /// Reason for which there is none.
    pub(super) failed: Option<String>,
}

/// The mean over silos of a metric after a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredPoint {
    pub(super) round: u64,
    /// Bytes that all members had sent.
    pub(super) bytes: u64,
    /// Wall-clock seconds until then.
    #[serde(default)]
    pub(super) seconds: Option<f64>,
    /// Mean over the members of the first metric on test rows.
    pub(super) inside: Option<f64>,
    /// Mean over the unseen silos.
    pub(super) outside: Option<f64>,
    /// Coalition of every member.
    pub(super) coalitions: Vec<Option<u32>>,
}

/// A silo's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredSilo {
    pub(super) name: String,
    /// True if the silo took no part and was given a model.
    pub(super) outside: bool,
    /// Metrics on its test rows, with the model of the chosen round.
    pub(super) values: MetricValues,
    /// Metrics with the model of the round that is best on test rows.
    pub(super) best: MetricValues,
    /// Row by row, with the model of the chosen round.
    pub(super) rows: Option<StoredRows>,
    /// Model that the silo would serve, where it compared candidates.
    pub(super) served: Option<ServedResult>,
}

/// Model that a silo would serve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ServedResult {
    /// Candidate that the silo chose.
    pub(super) candidate: Candidate,
    /// The model that it makes alone.
    pub(super) own: ModelResult,
    /// The served model, where it is neither that nor the strategy's model of the chosen round.
    pub(super) other: Option<ModelResult>,
}

/// The results of one model at one silo.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelResult {
    /// Metrics on its test rows.
    pub(super) values: MetricValues,
    /// Row by row.
    pub(super) rows: Option<StoredRows>,
}

impl ModelResult {
    /// The results, without what is not finite: that cannot be written down, and is of no use for
    /// comparisons.
    pub(super) fn of(model: &MeasuredModel) -> Self {
        let mut values = model.values();
        values.retain(|_, value| value.is_finite());
        Self {
            values,
            rows: model.rows().filter(StoredRows::is_finite),
        }
    }
}

/// A model of a silo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SiloModel {
    /// The strategy's, of the chosen round.
    Strategy,
    /// The one that it would serve.
    Served,
    /// The one that it makes alone, against which it compares what it serves.
    Own,
}

impl StoredSilo {
    /// Metrics of a model, and its results row by row; `None` where there is no such model.
    pub(super) fn model(&self, which: SiloModel) -> Option<(&MetricValues, Option<&StoredRows>)> {
        let strategys = (&self.values, self.rows.as_ref());
        let served = match which {
            SiloModel::Strategy => return Some(strategys),
            SiloModel::Served | SiloModel::Own => self.served.as_ref()?,
        };
        let model = match (which, served.candidate) {
            (SiloModel::Served, Candidate::Coalition) => return Some(strategys),
            (SiloModel::Own, _) | (_, Candidate::Local) => &served.own,
            _ => served.other.as_ref()?,
        };
        Some((&model.values, model.rows.as_ref()))
    }
}

/// The result of one strategy with one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct UnitResult {
    #[serde(flatten)]
    pub(super) unit: ExperimentUnit,
    pub(super) tried: Vec<TriedPoint>,
    /// The chosen settings.
    pub(super) point: BTreeMap<String, Value>,
    /// The first round that was nearly as good on validation rows as the chosen one.
    pub(super) near: Option<u64>,
    /// The chosen round, and the one that is best on test rows.
    pub(super) round: u64,
    pub(super) best_round: u64,
    /// True where the federation ended by itself, which is then the chosen round.
    #[serde(default)]
    pub(super) ended: bool,
    /// Trainings of single silos that the choice took, and that the result took.
    pub(super) trainings: (u64, u64),
    pub(super) curve: Vec<StoredPoint>,
    /// Members first.
    pub(super) silos: Vec<StoredSilo>,
    /// Trained parameters of a model.
    pub(super) parameters: u64,
    /// Wall-clock seconds: of the choice, of the result, and of the choice of what is served.
    pub(super) seconds: (f64, f64, f64),
    /// Names of the subgroups of rows; empty where there are none.
    pub(super) subgroups: Vec<String>,
    /// Findings in the data, in sentences.
    #[serde(default)]
    pub(super) notes: Vec<String>,
    /// Of the models that silos make alone: the silos where none could be tuned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) untuned: Vec<String>,
    /// Numbers that the strategy kept after the chosen round.
    pub(super) memory: MetricValues,
    /// The graph of members that it kept: pairs of members.
    pub(super) graph: Option<Vec<[u32; 2]>>,
    /// Bound by the noise of its rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) noise: Option<NoiseBound>,
    /// Reason for which there is no result, or for which it is not to be used.
    pub(super) failed: Option<String>,
}

impl UnitResult {
    /// No result yet.
    pub(super) fn new(unit: &ExperimentUnit) -> Self {
        Self {
            unit: unit.clone(),
            tried: Vec::new(),
            point: BTreeMap::new(),
            near: None,
            round: 0,
            best_round: 0,
            ended: false,
            trainings: (0, 0),
            curve: Vec::new(),
            silos: Vec::new(),
            parameters: 0,
            seconds: (0.0, 0.0, 0.0),
            subgroups: Vec::new(),
            notes: Vec::new(),
            untuned: Vec::new(),
            memory: MetricValues::new(),
            graph: None,
            noise: None,
            failed: None,
        }
    }

    /// The point of the course after a round.
    pub(super) fn at(&self, round: u64) -> Option<&StoredPoint> {
        self.curve.iter().find(|point| point.round == round)
    }

    /// Returns whether a silo's test rows have groups, such as the visits of a person.
    pub(super) fn is_grouped(&self) -> bool {
        let mut rows = self.silos.iter().filter_map(|silo| silo.rows.as_ref());
        rows.any(|rows| !rows.groups.is_empty())
    }

    /// The members, or the unseen silos.
    pub(super) fn scope(&self, outside: bool) -> impl Iterator<Item = &StoredSilo> {
        let silos = self.silos.iter();
        silos.filter(move |silo| silo.outside == outside)
    }

    /// Measures the models of the chosen round, or of the last one, on test rows, and the course over
    /// all rounds. Returns the models of the chosen round, members first.
    pub(super) fn measure(
        &mut self,
        metrics: &[MetricName],
        trial: &TrainedFederation,
        round: Option<u64>,
    ) -> Vec<Option<MeasuredModel>> {
        self.seconds.1 = trial.seconds;
        self.trainings.1 = trainings(trial);
        self.parameters = trial.parameters();
        self.noise = trial.noise();
        let rounds = trial.rounds();
        let Some(&last) = rounds.last() else {
            self.failed = Some(
                trial
                    .failure()
                    .unwrap_or_else(|| "no model was trained".into()),
            );
            return Vec::new();
        };
        self.subgroups = trial.subgroups().to_vec();
        self.round = round.unwrap_or(last).min(last);
        self.ended = trial.ended();
        let honest = trial.honest();
        let chosen: Vec<Option<MeasuredModel>> = (0..trial.names().len())
            .map(|place| {
                if is_honest(&honest, place) {
                    trial.measured(place, self.round)
                } else {
                    None
                }
            })
            .collect();
        let all = self.follow(metrics.first(), trial, (&chosen, &honest));
        let higher = metrics
            .first()
            .is_some_and(|metric| metric.higher_is_better());
        self.best_round = self.best(last, higher);
        self.memory = trial.memory(self.round);
        let graph = trial.graph(self.round);
        self.graph = graph.map(|edges| among_honest(&edges, &honest));
        let unusable = trial.unusable(&chosen[..trial.members()]);
        self.add_silos(trial, (&chosen, &honest), all.get(&self.best_round));
        let members = honest.iter().filter(|honest| **honest).count();
        // A model with noise counts, however bad it is: the effect of noise is the question.
        let counts = self.noise.is_none() && 2 * unusable.len() >= members;
        if let Some((place, reason)) = unusable.first().filter(|_| counts) {
            self.failed = Some(format!(
                "the models of {} of {members} silos are of no use after round {}: at {}, {reason}",
                unusable.len(),
                self.round,
                trial.names()[*place],
            ));
        }
        self.failed = self.failed.take().or_else(|| trial.failure());
        self.memory.retain(|_, value| value.is_finite());
        chosen
    }

    /// Adds the course of a metric over all rounds. Returns the metrics of every silo by round, empty for
    /// those that are not honest.
    fn follow(
        &mut self,
        metric: Option<&MetricName>,
        trial: &TrainedFederation,
        (chosen, honest): (&[Option<MeasuredModel>], &[bool]),
    ) -> BTreeMap<u64, Vec<MetricValues>> {
        let members = trial.members();
        let key = metric.map_or("loss", |metric| metric.key());
        let mut all: BTreeMap<u64, Vec<MetricValues>> = BTreeMap::new();
        for round in trial.rounds() {
            let each = chosen.iter().enumerate().map(|(place, chosen)| {
                if !is_honest(honest, place) {
                    return MetricValues::new();
                }
                let values = if round == self.round {
                    chosen.as_ref().map(MeasuredModel::values)
                } else {
                    trial
                        .evaluate(place, round, Split::Test)
                        .map(|(_, values)| values)
                };
                values.unwrap_or_default()
            });
            let each: Vec<MetricValues> = each.collect();
            let mean = |silos: &[MetricValues]| {
                let known = silos.iter().filter_map(|values| values.get(key));
                let (count, sum) =
                    known.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
                (count > 0.0)
                    .then_some(sum / count)
                    .filter(|mean: &f64| mean.is_finite())
            };
            self.curve.push(StoredPoint {
                round,
                bytes: trial.bytes(round),
                seconds: trial.seconds_until(round),
                inside: mean(&each[..members]),
                outside: mean(&each[members..]),
                coalitions: of_honest(trial.coalitions(round), honest),
            });
            all.insert(round, each);
        }
        all
    }

    /// The round of the course that is best on test rows; the last one where none has a value.
    fn best(&self, last: u64, higher: bool) -> u64 {
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
        best.0
    }

    /// Adds the results of the honest silos, with their metrics after the best round.
    fn add_silos(
        &mut self,
        trial: &TrainedFederation,
        (chosen, honest): (&[Option<MeasuredModel>], &[bool]),
        best: Option<&Vec<MetricValues>>,
    ) {
        let named = trial.names().into_iter().zip(chosen).enumerate();
        for (place, (name, chosen)) in named.filter(|(place, _)| is_honest(honest, *place)) {
            let model = chosen.as_ref().map(ModelResult::of);
            let (values, rows) = model.map_or_else(Default::default, |own| (own.values, own.rows));
            let mut best = best
                .and_then(|silos| silos.get(place))
                .cloned()
                .unwrap_or_default();
            best.retain(|_, value| value.is_finite());
            self.silos.push(StoredSilo {
                name,
                outside: place >= trial.members(),
                values,
                best,
                rows,
                served: None,
            });
        }
    }
}

/// Returns whether the silo at this place is honest; unseen silos are.
pub(super) fn is_honest(honest: &[bool], place: usize) -> bool {
    honest.get(place).copied().unwrap_or(true)
}

/// Returns what belongs to the honest members.
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

/// Trainings of single silos in a trial.
pub(super) fn trainings(trial: &TrainedFederation) -> u64 {
    (trial.members() * trial.rounds().len()) as u64
}
