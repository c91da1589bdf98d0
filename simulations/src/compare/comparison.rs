//! The result of an experiment, as one document that tables, pages and files are made from.

use std::collections::{BTreeMap, BTreeSet};

use learn::MetricName;
use serde::Serialize;
use serde_json::Value;

use super::differences::{Difference, Pair};
use super::experiment::{Entry, Experiment, POOLED};
use super::file::Tune;
use super::grouping::{stability, together};
use super::rows::{Statistic, StoredRows};
use super::spread::Spread;
use super::unit::{SiloResult, Tried, Unit, UnitResult};

/// Share of silos that are worse by an interval of 95 % where there is no difference at all.
pub const BY_CHANCE: f64 = 0.025;

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Its name.
    pub experiment: String,
    /// What it shows.
    pub description: String,
    /// The program's version.
    pub version: &'static str,
    /// Whether it is the experiment's reduced form, which is not to be quoted.
    pub quick: bool,
    /// Number of seeds.
    pub seeds: usize,
    /// How settings were chosen.
    pub tune: Tune,
    /// The scenario that all ways of learning share.
    pub scenario: Value,
    /// The metrics, the most important first.
    pub metrics: Vec<MetricName>,
    /// A table for every variant.
    pub variants: Vec<VariantTable>,
    /// Runs without a result: another part's, or not done yet.
    pub missing: Vec<Unit>,
    /// Wall-clock seconds of this start.
    pub seconds: f64,
}

/// The table of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantTable {
    /// Its name; empty where there is one only.
    pub name: String,
    /// Names of the members of the first seed.
    pub members: Vec<String>,
    /// Names of the silos outside.
    pub outside: Vec<String>,
    /// Test rows of the members, and of the silos outside, on average over seeds.
    pub rows: (f64, f64),
    /// The ways of learning.
    pub strategies: Vec<Row>,
}

/// A metric of the members, or of the silos outside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scope {
    /// The mean over silos; for metrics that single silos may lack, over those that have it.
    pub silos: Option<Spread>,
    /// The metric over the union of all rows.
    pub rows: Option<Spread>,
    /// The worst silo.
    pub worst: Option<Spread>,
    /// The mean over silos after the round that is best on test rows, which nobody knows beforehand.
    pub best: Option<Spread>,
}

/// One metric of a way of learning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricResult {
    /// The metric.
    pub metric: MetricName,
    /// Of the members.
    pub inside: Option<Scope>,
    /// Of the silos outside.
    pub outside: Option<Scope>,
}

/// How much better a way of learning is than a reference, in the most important metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// Label of the reference.
    pub over: String,
    /// For the members.
    pub inside: Option<Difference>,
    /// For the silos outside.
    pub outside: Option<Difference>,
}

/// Settings that were chosen, and by how many seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenSettings {
    /// The settings, by key.
    pub settings: BTreeMap<String, Value>,
    /// Number of seeds.
    pub seeds: usize,
}

/// Settings that were tried, with their mean result over the seeds that tried them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriedSettings {
    /// The settings, by key.
    pub settings: BTreeMap<String, Value>,
    /// Mean value of the choosing metric on validation rows.
    pub value: Option<f64>,
    /// Mean of the best round.
    pub round: Option<f64>,
    /// Number of seeds in which it failed.
    pub failed: usize,
}

/// A point of the mean course over rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The round.
    pub round: u64,
    /// Bytes that all members had sent.
    pub bytes: f64,
    /// Mean over members of the most important metric, on test rows.
    pub inside: Option<f64>,
    /// Mean over the silos outside.
    pub outside: Option<f64>,
}

/// One way of learning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its label.
    pub label: String,
    /// Name of the strategy.
    pub strategy: String,
    /// Number of seeds with a result.
    pub seeds: usize,
    /// Its metrics.
    pub metrics: Vec<MetricResult>,
    /// Its differences to the references.
    pub against: Vec<Against>,
    /// Settings that were chosen, the most frequent first.
    pub chosen: Vec<ChosenSettings>,
    /// Settings that were tried.
    pub tried: Vec<TriedSettings>,
    /// Trainings of single silos for the choice, on average over seeds.
    pub tuning: f64,
    /// The chosen round.
    pub round: Option<Spread>,
    /// The round that is best on test rows.
    pub best_round: Option<Spread>,
    /// Bytes that all members sent up to the chosen round.
    pub bytes: Option<Spread>,
    /// Trained parameters of a model.
    pub parameters: u64,
    /// Wall-clock seconds of the training that is measured; of the choice.
    pub seconds: (f64, f64),
    /// Number of coalitions after the chosen round.
    pub coalitions: Option<Spread>,
    /// Rounds, up to the chosen one, in which the grouping changed.
    pub changes: Option<Spread>,
    /// Agreement of the groupings of different seeds: the mean Rand index over pairs of seeds, 1 where
    /// all are the same; `None` for a single seed or silos that differ.
    pub stability: Option<f64>,
    /// Numbers that the strategy kept after the chosen round.
    pub memory: BTreeMap<String, Spread>,
    /// Share of the seeds in which two members are in one coalition after the chosen round, member by
    /// member; `None` where there is one coalition or members differ between seeds.
    pub together: Option<Vec<Vec<f64>>>,
    /// The graph of members that the strategy kept in the first seed: pairs of members.
    pub graph: Option<Vec<[u32; 2]>>,
    /// The mean course over rounds.
    pub curve: Vec<CurvePoint>,
    /// Seeds that failed, with the reason.
    pub failed: Vec<(usize, String)>,
}

/// Whether an entry is a reference that all others are compared with.
fn is_reference(entry: &Entry) -> bool {
    let plain =
        !entry.strategy.contains_key("personal") && !entry.strategy.contains_key("aggregation");
    match entry.name() {
        "local" | POOLED => true,
        "fedavg" => plain && entry.set.is_empty(),
        _ => false,
    }
}

impl Comparison {
    pub(super) fn of(experiment: &Experiment, results: Vec<UnitResult>, seconds: f64) -> Self {
        let metrics = match experiment.metrics.is_empty() {
            true => vec![own_metric(&results)],
            false => experiment.metrics.clone(),
        };
        let have: BTreeSet<&Unit> = results.iter().map(|result| &result.unit).collect();
        let missing = experiment
            .units()
            .into_iter()
            .filter(|unit| !have.contains(unit))
            .collect();
        let variants = experiment.variants.iter().map(|variant| {
            let of = |label: &str| -> Vec<&UnitResult> {
                let mut own: Vec<_> = results
                    .iter()
                    .filter(|one| one.unit.variant == variant.name && one.unit.strategy == label)
                    .collect();
                own.sort_by_key(|one| one.unit.seed);
                own
            };
            let all: Vec<(&Entry, Vec<&UnitResult>)> = experiment
                .entries
                .iter()
                .map(|entry| (entry, of(&entry.label)))
                .collect();
            VariantTable::of(&variant.name, &metrics, &all)
        });
        Self {
            experiment: experiment.name.clone(),
            description: experiment.description.clone(),
            version: env!("CARGO_PKG_VERSION"),
            quick: experiment.quick,
            seeds: experiment.seeds,
            tune: experiment.tune.clone(),
            scenario: serde_json::to_value(experiment.settings()).unwrap_or_default(),
            variants: variants.collect(),
            metrics,
            missing,
            seconds,
        }
    }

    /// Seeds of ways of learning that failed.
    pub fn failures(&self) -> usize {
        let rows = self.variants.iter().flat_map(|variant| &variant.strategies);
        rows.map(|row| row.failed.len()).sum()
    }
}

/// The metric of a task whose experiment names none.
fn own_metric(results: &[UnitResult]) -> MetricName {
    let silo = results.iter().flat_map(|result| &result.silos).next();
    let has = |name: MetricName| silo.is_some_and(|silo| silo.values.contains_key(name.key()));
    let candidates = [MetricName::LogLoss, MetricName::Mae, MetricName::Dice];
    candidates
        .into_iter()
        .find(|&name| has(name))
        .unwrap_or(MetricName::Loss)
}

impl VariantTable {
    fn of(name: &str, metrics: &[MetricName], all: &[(&Entry, Vec<&UnitResult>)]) -> Self {
        let first = all
            .iter()
            .flat_map(|(_, results)| results)
            .find(|one| !one.silos.is_empty());
        let names = |outside: bool| -> Vec<String> {
            let silos = first.into_iter().flat_map(|result| &result.silos);
            let chosen = silos.filter(|silo| silo.outside == outside);
            chosen.map(|silo| silo.name.clone()).collect()
        };
        let rows = |outside: bool| {
            let results = all.iter().map(|(_, results)| results);
            let measured = results
                .max_by_key(|results| results.len())
                .into_iter()
                .flatten();
            let each = measured.map(|result| {
                let silos = result.silos.iter().filter(|silo| silo.outside == outside);
                silos
                    .filter_map(|silo| Some(silo.rows.as_ref()?.len() as f64))
                    .sum::<f64>()
            });
            Spread::of(each).map_or(0.0, |spread| spread.mean)
        };
        let references: Vec<(&str, Vec<&UnitResult>)> = all
            .iter()
            .filter(|(entry, _)| is_reference(entry))
            .map(|(entry, results)| (entry.label.as_str(), usable(results)))
            .collect();
        let strategies = all
            .iter()
            .map(|(entry, results)| Row::of(entry, metrics, results, &references));
        Self {
            name: name.into(),
            members: names(false),
            outside: names(true),
            rows: (rows(false), rows(true)),
            strategies: strategies.collect(),
        }
    }
}

fn usable<'a>(results: &[&'a UnitResult]) -> Vec<&'a UnitResult> {
    results
        .iter()
        .copied()
        .filter(|result| result.failed.is_none())
        .collect()
}

impl Row {
    fn of(
        entry: &Entry,
        metrics: &[MetricName],
        results: &[&UnitResult],
        references: &[(&str, Vec<&UnitResult>)],
    ) -> Self {
        let good = usable(results);
        let spread = |of: &dyn Fn(&UnitResult) -> f64| Spread::of(good.iter().map(|one| of(one)));
        let mean = |of: &dyn Fn(&UnitResult) -> f64| {
            Spread::of(results.iter().map(|one| of(one))).map_or(0.0, |spread| spread.mean)
        };
        let metric = metrics[0];
        let against = references.iter().filter(|(label, _)| *label != entry.label);
        let against = against.map(|(label, theirs)| {
            let pair = |outside: bool| {
                let pair = Pair {
                    metric: metric.key(),
                    higher_is_better: metric.higher_is_better(),
                    outside,
                    ours: &good,
                    theirs,
                };
                pair.difference()
            };
            Against {
                over: (*label).to_owned(),
                inside: pair(false),
                outside: pair(true),
            }
        });
        let names: BTreeSet<&String> = good.iter().flat_map(|one| one.memory.keys()).collect();
        let memory = names.into_iter().filter_map(|name| {
            let values = good.iter().filter_map(|one| one.memory.get(name).copied());
            Some((name.clone(), Spread::of(values)?))
        });
        Self {
            label: entry.label.clone(),
            strategy: entry.name().into(),
            seeds: good.len(),
            metrics: metrics
                .iter()
                .map(|&metric| MetricResult::of(metric, &good))
                .collect(),
            against: against.collect(),
            chosen: chosen(&good),
            tried: tried(results),
            tuning: mean(&|one| one.trainings.0 as f64),
            round: spread(&|one| one.round as f64),
            best_round: spread(&|one| one.best_round as f64),
            bytes: spread(&|one| {
                one.at(one.round)
                    .map_or(f64::NAN, |point| point.bytes as f64)
            }),
            parameters: good.first().map_or(0, |one| one.parameters),
            seconds: (mean(&|one| one.seconds.1), mean(&|one| one.seconds.0)),
            coalitions: spread(&|one| {
                let point = one.at(one.round);
                point.map_or(f64::NAN, |point| {
                    let own: BTreeSet<&Option<u32>> = point.coalitions.iter().collect();
                    own.len() as f64
                })
            }),
            changes: spread(&|one| one.changes() as f64),
            stability: stability(&good),
            memory: memory.collect(),
            together: together(&good),
            graph: good.first().and_then(|one| one.graph.clone()),
            curve: curve(&good),
            failed: results
                .iter()
                .filter_map(|one| Some((one.unit.seed, one.failed.clone()?)))
                .collect(),
        }
    }
}

impl UnitResult {
    pub(super) fn at(&self, round: u64) -> Option<&super::unit::CurvePoint> {
        self.curve.iter().find(|point| point.round == round)
    }

    pub(super) fn scope(&self, outside: bool) -> impl Iterator<Item = &SiloResult> {
        self.silos
            .iter()
            .filter(move |silo| silo.outside == outside)
    }
}

impl MetricResult {
    fn of(metric: MetricName, results: &[&UnitResult]) -> Self {
        let scope = |outside: bool| {
            let each = |of: &dyn Fn(&UnitResult) -> Option<f64>| {
                Spread::of(results.iter().filter_map(|one| of(one)))
            };
            let known = |one: &UnitResult, best: bool| -> Vec<f64> {
                let silos = one.scope(outside);
                silos
                    .filter_map(|silo| match best {
                        true => silo.best.get(metric.key()).copied(),
                        false => value(silo, metric),
                    })
                    .collect()
            };
            let mean = |values: Vec<f64>| {
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            let worst = |one: &UnitResult| {
                let values = known(one, false).into_iter();
                match metric.higher_is_better() {
                    true => values.reduce(f64::min),
                    false => values.reduce(f64::max),
                }
            };
            let union = |one: &UnitResult| {
                let rows: Option<Vec<&StoredRows>> =
                    one.scope(outside).map(|silo| silo.rows.as_ref()).collect();
                let value = Statistic::of(metric.key(), &rows?)?.measured();
                value.is_finite().then_some(value)
            };
            let scope = Scope {
                silos: each(&|one| mean(known(one, false))),
                rows: each(&union),
                worst: each(&worst),
                best: each(&|one| mean(known(one, true))),
            };
            (scope.silos.is_some() || scope.rows.is_some()).then_some(scope)
        };
        Self {
            metric,
            inside: scope(false),
            outside: scope(true),
        }
    }
}

/// A metric of one silo, as it was measured, or from its rows.
fn value(silo: &SiloResult, metric: MetricName) -> Option<f64> {
    let measured = silo.values.get(metric.key()).copied();
    measured.or_else(|| {
        let value = Statistic::of(metric.key(), &[silo.rows.as_ref()?])?.measured();
        value.is_finite().then_some(value)
    })
}

fn chosen(results: &[&UnitResult]) -> Vec<ChosenSettings> {
    let mut counted: Vec<ChosenSettings> = Vec::new();
    for result in results {
        match counted.iter_mut().find(|one| one.settings == result.point) {
            Some(one) => one.seeds += 1,
            None => counted.push(ChosenSettings {
                settings: result.point.clone(),
                seeds: 1,
            }),
        }
    }
    counted.sort_by_key(|one| std::cmp::Reverse(one.seeds));
    counted
}

fn tried(results: &[&UnitResult]) -> Vec<TriedSettings> {
    let mut order: Vec<&BTreeMap<String, Value>> = Vec::new();
    let all = || results.iter().flat_map(|result| &result.tried);
    for tried in all() {
        if !order.contains(&&tried.point) {
            order.push(&tried.point);
        }
    }
    let of = |point: &&BTreeMap<String, Value>| {
        let own: Vec<&Tried> = all().filter(|tried| tried.point == **point).collect();
        let mean = |of: &dyn Fn(&Tried) -> Option<f64>| {
            Spread::of(own.iter().filter_map(|tried| of(tried))).map(|spread| spread.mean)
        };
        TriedSettings {
            settings: (*point).clone(),
            value: mean(&|tried| tried.value),
            round: mean(&|tried| tried.round.map(|round| round as f64)),
            failed: own.iter().filter(|tried| tried.failed.is_some()).count(),
        }
    };
    order.iter().map(of).collect()
}

fn curve(results: &[&UnitResult]) -> Vec<CurvePoint> {
    let rounds: BTreeSet<u64> = results
        .iter()
        .flat_map(|one| one.curve.iter().map(|point| point.round))
        .collect();
    let of = |round: u64| {
        let points = || results.iter().filter_map(move |one| one.at(round));
        let mean = |of: &dyn Fn(&super::unit::CurvePoint) -> Option<f64>| {
            Spread::of(points().filter_map(of)).map(|spread| spread.mean)
        };
        CurvePoint {
            round,
            bytes: mean(&|point| Some(point.bytes as f64)).unwrap_or_default(),
            inside: mean(&|point| point.inside),
            outside: mean(&|point| point.outside),
        }
    };
    rounds.into_iter().map(of).collect()
}
