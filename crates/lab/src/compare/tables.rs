//! The tables of a comparison: one row for every strategy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use task::metrics::MetricName;

use super::comparison::{
    Against, BestOf, ChosenSettings, ComparisonRow, CostToReach, CurvePoint, ServedSummary,
    TriedSettings, VariantTable,
};
use super::entry::{ExperimentEntry, LOCAL, OWN, POOLED, is_alone};
use super::experiment::Experiment;
use super::file::Variant;
use super::grouping::{agreement, stability, together};
use super::result::{SiloModel, TriedPoint, UnitResult};
use super::row_draws::SharedDraws;
use super::scope::{ReferenceResults, metric_results};
use super::spread::Spread;
use super::unfinished::unfinished;
use super::widen::{Edge, as_settings};

/// Returns whether an entry is a reference that all others are compared with.
fn is_reference(entry: &ExperimentEntry) -> bool {
    let plain =
        !entry.strategy.contains_key("personal") && !entry.strategy.contains_key("aggregation");
    match entry.name() {
        LOCAL | POOLED | OWN => true,
        "fedavg" => plain && entry.set.is_empty(),
        _ => false,
    }
}

impl VariantTable {
    pub(super) fn of(
        experiment: &Experiment,
        variant: &Variant,
        metrics: &[MetricName],
        all: &[(&ExperimentEntry, Vec<&UnitResult>)],
    ) -> Self {
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
            let count = |result: &UnitResult| {
                let silos = result.silos.iter().filter(|silo| silo.outside == outside);
                silos
                    .filter_map(|silo| Some(silo.rows.as_ref()?.len() as f64))
                    .sum::<f64>()
            };
            // Outputs that are drawn at random have no results row by row.
            let by_row = |results: &[&UnitResult]| results.iter().any(|one| count(one) > 0.0);
            let results = all.iter().map(|(_, results)| results);
            let measured = results.max_by_key(|results| (by_row(results), results.len()));
            let each = measured.into_iter().flatten();
            Spread::of(each.map(|result| count(result))).map_or(0.0, |spread| spread.mean)
        };
        let notes = first.map_or_else(Vec::new, |result| result.notes.clone());
        let references = ReferenceResults {
            all: all
                .iter()
                .filter(|(entry, _)| is_reference(entry))
                .map(|(entry, results)| (entry.label.as_str(), usable(results)))
                .collect(),
            draws: &SharedDraws::default(),
        };
        let strategies = all.iter().map(|(entry, results)| {
            let row = ComparisonRow::of(entry, metrics, results, &references);
            let allowed = |point: &BTreeMap<String, Value>, edge: &Edge| {
                let point = as_settings(point);
                experiment.beyond(variant, entry, &point, edge).is_some()
            };
            ComparisonRow {
                unfinished: unfinished(&usable(results), entry.is_exact(), allowed),
                ..row
            }
        });
        let strategies: Vec<ComparisonRow> = strategies.collect();
        let alone = best_alone(metrics[0], &strategies);
        let first = || references.all.first().map(|(label, _)| (*label).to_owned());
        let alone = alone.or_else(first);
        Self {
            name: variant.name.clone(),
            members: names(false),
            outside: names(true),
            rows: (rows(false), rows(true)),
            grouped: all
                .iter()
                .flat_map(|(_, results)| results)
                .any(|one| one.is_grouped()),
            notes,
            strategies,
            best: alone
                .as_deref()
                .and_then(|alone| BestOf::of(metrics[0], all, (&references, alone))),
            alone,
            papers: Vec::new(),
        }
    }
}

/// The label of the models with the best mean over the members, of those that silos make alone.
fn best_alone(metric: MetricName, rows: &[ComparisonRow]) -> Option<String> {
    let alone = rows
        .iter()
        .filter(|row| is_alone(&row.strategy) && row.failed.is_empty());
    let mean = |row: &ComparisonRow| Some(row.metrics.first()?.inside.as_ref()?.silos?.mean);
    let sign = if metric.higher_is_better() { -1.0 } else { 1.0 };
    let means = alone.filter_map(|row| Some((sign * mean(row)?, &row.label)));
    let best = means.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, label)| label.clone())
}

fn usable<'a>(results: &[&'a UnitResult]) -> Vec<&'a UnitResult> {
    results
        .iter()
        .copied()
        .filter(|result| result.failed.is_none())
        .collect()
}

impl ComparisonRow {
    fn of(
        entry: &ExperimentEntry,
        metrics: &[MetricName],
        results: &[&UnitResult],
        references: &ReferenceResults<'_>,
    ) -> Self {
        let good = usable(results);
        let spread = |of: &dyn Fn(&UnitResult) -> f64| Spread::of(good.iter().map(|one| of(one)));
        let mean = |of: &dyn Fn(&UnitResult) -> Option<f64>| {
            Spread::of(results.iter().filter_map(|one| of(one))).map_or(0.0, |spread| spread.mean)
        };
        // Where the first seed chooses for all, the others tried nothing.
        let tried_any = |one: &UnitResult| one.trainings.0 > 0;
        let mut others = references.clone();
        others.all.retain(|(label, _)| *label != entry.label);
        let names: BTreeSet<&String> = good.iter().flat_map(|one| one.memory.keys()).collect();
        let memory = names.into_iter().filter_map(|name| {
            let values = good.iter().filter_map(|one| one.memory.get(name).copied());
            Some((name.clone(), Spread::of(values)?))
        });
        Self {
            label: entry.label.clone(),
            strategy: entry.name().into(),
            seeds: good.len(),
            metrics: metric_results(metrics, &good, SiloModel::Strategy),
            against: Against::all(metrics[0], &good, SiloModel::Strategy, &others),
            served: ServedSummary::of(metrics, &good, references),
            chosen: chosen(&good),
            tried: tried(results),
            tuning: mean(&|one| tried_any(one).then_some(one.trainings.0 as f64)),
            to_best: reach(&good, |one| Some(one.round)),
            to_near: reach(&good, |one| one.near),
            to_end: reach(&good, |one| Some(one.curve.last()?.round)),
            best_round: spread(&|one| one.best_round as f64),
            parameters: good.first().map_or(0, |one| one.parameters),
            seconds: (
                mean(&|one| Some(one.seconds.1)),
                mean(&|one| tried_any(one).then_some(one.seconds.0)),
            ),
            coalitions: spread(&|one| {
                let point = one.at(one.round);
                point.map_or(f64::NAN, |point| {
                    let own: BTreeSet<&Option<u32>> = point.coalitions.iter().collect();
                    own.len() as f64
                })
            }),
            changes: spread(&|one| one.changes() as f64),
            stability: stability(&good),
            agreement: agreement(&good),
            memory: memory.collect(),
            together: together(&good),
            graph: good.first().and_then(|one| one.graph.clone()),
            noise: good.first().and_then(|one| one.noise.clone()),
            unfinished: Vec::new(),
            curve: curve(&good),
            failed: results
                .iter()
                .filter_map(|one| Some((one.unit.seed, one.failed.clone()?)))
                .collect(),
        }
    }
}

/// The cost of getting to a round, where all seeds know it.
fn reach(
    results: &[&UnitResult],
    round: impl Fn(&UnitResult) -> Option<u64>,
) -> Option<CostToReach> {
    let rounds: Vec<u64> = results
        .iter()
        .map(|one| round(one))
        .collect::<Option<_>>()?;
    let all = || results.iter().zip(&rounds);
    let trained = |one: &UnitResult, until: u64| {
        let trained = one.curve.iter().filter(|point| point.round <= until);
        trained.count() as u64 * one.parameters
    };
    let bytes = all().filter_map(|(one, &until)| Some(one.at(until)?.bytes as f64));
    Some(CostToReach {
        rounds: Spread::of(rounds.iter().map(|&round| round as f64))?,
        bytes: Spread::of(bytes)?,
        parameters: Spread::of(all().map(|(one, &until)| trained(one, until) as f64))?,
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
        let own: Vec<&TriedPoint> = all().filter(|tried| tried.point == **point).collect();
        let mean = |of: &dyn Fn(&TriedPoint) -> Option<f64>| {
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
        let mean = |of: &dyn Fn(&super::result::StoredPoint) -> Option<f64>| {
            Spread::of(points().filter_map(of)).map(|spread| spread.mean)
        };
        CurvePoint {
            round,
            bytes: mean(&|point| Some(point.bytes as f64)).unwrap_or_default(),
            seconds: mean(&|point| point.seconds),
            inside: mean(&|point| point.inside),
            outside: mean(&|point| point.outside),
        }
    };
    rounds.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::super::tests::SMALL;
    use super::super::{Choices, CompareOptions, Experiment, compare};

    #[test]
    fn test_rows_are_counted_where_the_last_strategy_lacks_them() {
        let text = SMALL.replace("linear = { loss = \"absolute\" }", "mlp = { hidden = [4] }");
        let text = text.replace(
            "label = \"groups\"\nname = \"cs-rcfl\"\ncoalitions = 2",
            "name = \"fedsr\"",
        );
        let choices = Choices {
            quick: true,
            ..Choices::default()
        };
        let experiment = Experiment::parse("drawn.toml", &text, Path::new(""), &choices).unwrap();
        let table = &compare(&experiment, CompareOptions::default())
            .unwrap()
            .variants[0];
        assert_eq!(table.strategies.last().unwrap().strategy, "fedsr");
        assert!(table.rows.0 > 10.0, "{:?}", table.rows);
    }
}
