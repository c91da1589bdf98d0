//! Metrics of a strategy over silos and seeds, and its differences to references.

use std::collections::BTreeMap;

use task::metrics::MetricName;

use super::comparison::{Against, LEAST_ROWS, MetricResult, MetricScope, SubgroupResult};
use super::differences::{ComparedPair, MeanDifference};
use super::result::{SiloModel, StoredSilo, UnitResult};
use super::row_draws::SharedDraws;
use super::rows::StoredRows;
use super::spread::Spread;
use crate::statistic::Statistic;

/// References that strategies are compared with.
#[derive(Clone)]
pub(super) struct ReferenceResults<'a> {
    /// Labels and results of the references.
    pub(super) all: Vec<(&'a str, Vec<&'a UnitResult>)>,
    /// Draws of rows that all comparisons share.
    pub(super) draws: &'a SharedDraws,
}

/// The results in `metrics` of one model of every silo.
pub(super) fn metric_results(
    metrics: &[MetricName],
    results: &[&UnitResult],
    which: SiloModel,
) -> Vec<MetricResult> {
    let metrics = metrics.iter();
    let of = |&metric: &MetricName| MetricResult {
        metric,
        inside: scope(metric, results, which, false),
        outside: scope(metric, results, which, true),
    };
    metrics.map(of).collect()
}

impl Against {
    /// Returns how much better one model of every silo is than each reference.
    pub(super) fn all(
        metric: MetricName,
        ours: &[&UnitResult],
        which: SiloModel,
        references: &ReferenceResults<'_>,
    ) -> Vec<Self> {
        let draws = references.draws;
        let against = |(label, theirs): &(&str, Vec<&UnitResult>)| Self {
            over: (*label).to_owned(),
            inside: difference(
                metric,
                (ours, which),
                (theirs, SiloModel::Strategy),
                false,
                draws,
            ),
            outside: difference(
                metric,
                (ours, which),
                (theirs, SiloModel::Strategy),
                true,
                draws,
            ),
        };
        references.all.iter().map(against).collect()
    }
}

/// Returns how much better one model is than another.
pub(super) fn difference(
    metric: MetricName,
    ours: (&[&UnitResult], SiloModel),
    theirs: (&[&UnitResult], SiloModel),
    outside: bool,
    draws: &SharedDraws,
) -> Option<MeanDifference> {
    let pair = ComparedPair {
        metric: metric.key(),
        higher_is_better: metric.higher_is_better(),
        outside,
        ours,
        theirs,
        draws,
    };
    pair.difference()
}

fn scope(
    metric: MetricName,
    results: &[&UnitResult],
    which: SiloModel,
    outside: bool,
) -> Option<MetricScope> {
    let each = |of: &dyn Fn(&UnitResult) -> Option<f64>| {
        Spread::of(results.iter().filter_map(|one| of(one)))
    };
    let known = |one: &UnitResult| -> Vec<f64> {
        let silos = one.scope(outside);
        silos
            .filter_map(|silo| value(silo, which, metric))
            .collect()
    };
    let best = |one: &UnitResult| -> Vec<f64> {
        let silos = one.scope(outside).filter(|_| which == SiloModel::Strategy);
        silos
            .filter_map(|silo| silo.best.get(metric.key()).copied())
            .collect()
    };
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let worst = |one: &UnitResult| {
        let values = known(one).into_iter();
        if metric.higher_is_better() {
            values.reduce(f64::min)
        } else {
            values.reduce(f64::max)
        }
    };
    let apart = |one: &UnitResult| {
        let values = known(one);
        let several = values.len() > 1;
        Spread::of(values)
            .filter(|_| several)
            .map(|spread| spread.sd)
    };
    let union = |one: &UnitResult| over(metric, &all_rows(one, which, outside)?);
    let (subgroups, gap) = subgroups(metric, results, which, outside);
    let scope = MetricScope {
        silos: each(&|one| mean(known(one))),
        rows: each(&union),
        worst: each(&worst),
        apart: each(&apart),
        best: each(&|one| mean(best(one))),
        subgroups,
        gap,
    };
    (scope.silos.is_some() || scope.rows.is_some()).then_some(scope)
}

/// The rows of all silos whose model was measured, if all of these give results row by row.
fn all_rows(one: &UnitResult, which: SiloModel, outside: bool) -> Option<Vec<&StoredRows>> {
    let models = one.scope(outside).filter_map(|silo| silo.model(which));
    let measured = models.filter(|(values, rows)| !values.is_empty() || rows.is_some());
    measured.map(|(_, rows)| rows).collect()
}

/// A metric over rows, if it has a finite value.
fn over(metric: MetricName, rows: &[&StoredRows]) -> Option<f64> {
    let value = Statistic::of(metric.key(), rows)?.measured();
    value.is_finite().then_some(value)
}

/// A metric of one silo, as it was measured, or from its rows.
fn value(silo: &StoredSilo, which: SiloModel, metric: MetricName) -> Option<f64> {
    let (values, rows) = silo.model(which)?;
    let measured = values.get(metric.key()).copied();
    measured.or_else(|| over(metric, &[rows?]))
}

/// A subgroup in one seed.
struct InSeed {
    seed: usize,
    rows: usize,
    /// Persons, or rows where these have none.
    units: usize,
    value: Option<f64>,
}

/// The metric by subgroup, and the gap between the best and the worst one. A subgroup that has too few rows,
/// or persons, in a seed is suppressed in all.
fn subgroups(
    metric: MetricName,
    results: &[&UnitResult],
    which: SiloModel,
    outside: bool,
) -> (Vec<SubgroupResult>, Option<Spread>) {
    let mut found = BTreeMap::<&str, Vec<InSeed>>::new();
    for (seed, one) in results.iter().enumerate() {
        let rows = all_rows(one, which, outside).unwrap_or_default();
        for (at, name) in one.subgroups.iter().enumerate() {
            let own = rows.iter().map(|rows| rows.of_subgroup(at as u16));
            let own: Vec<StoredRows> = own.filter(|rows| rows.len() > 0).collect();
            found.entry(name).or_default().push(InSeed {
                seed,
                rows: own.iter().map(StoredRows::len).sum(),
                units: own.iter().map(|rows| rows.together().len()).sum(),
                value: over(metric, &own.iter().collect::<Vec<_>>()),
            });
        }
    }
    // A subgroup of nobody here is none of these silos'.
    found.retain(|_, seeds| seeds.iter().any(|one| one.rows > 0));
    let enough = |seeds: &[InSeed]| {
        seeds.len() == results.len() && seeds.iter().all(|one| one.units >= LEAST_ROWS)
    };
    let shown = found.values().filter(|seeds| enough(seeds));
    let mut by_seed = vec![Vec::new(); results.len()];
    for one in shown.flatten() {
        by_seed[one.seed].extend(one.value);
    }
    let gaps = by_seed.iter().filter(|values| values.len() > 1);
    let gaps = gaps.map(|values| {
        let (least, most) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &one| {
                (least.min(one), most.max(one))
            });
        most - least
    });
    let gap = Spread::of(gaps);
    let result = |(name, seeds): (&str, Vec<InSeed>)| {
        let seeds = Some(seeds).filter(|seeds| enough(seeds));
        let rows = seeds.as_ref().and_then(|seeds| {
            let rows = Spread::of(seeds.iter().map(|one| one.rows as f64));
            rows.map(|rows| rows.mean)
        });
        SubgroupResult {
            name: name.to_owned(),
            rows,
            value: Spread::of(seeds.into_iter().flatten().filter_map(|one| one.value)),
        }
    };
    (found.into_iter().map(result).collect(), gap)
}
