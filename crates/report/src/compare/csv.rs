//! A comparison as one CSV file: a line for every strategy, model, metric, group of silos and
//! reference, and for every subgroup of rows.

use lab::compare::{
    Against, Comparison, ComparisonRow, CostToReach, MeanDifference, MetricResult, MetricScope,
    Spread, SubgroupResult,
};
use lab::summary::NO_BOUND;

use super::super::download;

const COLUMNS: [&str; 35] = [
    "variant",
    "strategy",
    "model",
    "metric",
    "silos",
    "subgroup",
    "subgroup_rows",
    "seeds",
    "mean",
    "sd",
    "rows_mean",
    "rows_sd",
    "worst_mean",
    "worst_sd",
    "apart_mean",
    "best_round_mean",
    "over",
    "better_by",
    "low",
    "high",
    "wins",
    "ties",
    "losses",
    "near_round",
    "near_bytes",
    "near_parameters",
    "round",
    "bytes",
    "parameters",
    "all_rounds",
    "all_bytes",
    "all_parameters",
    "epsilon",
    "epsilon_alone",
    "delta",
];

/// The CSV.
pub fn csv(comparison: &Comparison) -> String {
    let mut lines = Vec::new();
    for variant in &comparison.variants {
        for row in &variant.strategies {
            let name = &variant.name;
            add(
                &mut lines,
                name,
                row,
                "strategy",
                &row.metrics,
                &row.against,
            );
            if let Some(served) = &row.served {
                add(&mut lines, name, row, "own", &served.own, &[]);
                let of = |gain: &Option<lab::compare::ServedGain>| {
                    gain.as_ref().map(|gain| gain.difference.clone())
                };
                let mut against = vec![Against {
                    over: "local model".into(),
                    inside: of(&served.inside),
                    outside: of(&served.outside),
                }];
                against.extend(served.against.iter().cloned());
                add(&mut lines, name, row, "served", &served.metrics, &against);
            }
        }
    }
    download::csv(&COLUMNS, lines)
}

/// The lines of one model. Differences are of the first metric.
fn add(
    lines: &mut Vec<[String; 35]>,
    variant: &str,
    row: &ComparisonRow,
    model: &str,
    metrics: &[MetricResult],
    against: &[Against],
) {
    for (at, metric) in metrics.iter().enumerate() {
        for (group, scope) in [("members", &metric.inside), ("outside", &metric.outside)] {
            let Some(scope) = scope else { continue };
            let start = [variant, &row.label, model, metric.metric.key(), group];
            let start = start.map(str::to_owned);
            let line = |subgroup: Option<&SubgroupResult>, against: Option<&Against>| {
                let mut cells = start.to_vec();
                cells.extend(values(row, scope, subgroup));
                let difference = against.and_then(|one| match group {
                    "members" => one.inside.as_ref(),
                    _ => one.outside.as_ref(),
                });
                cells.extend(compared(against, difference));
                cells.extend(reaches(row));
                cells.extend(bounds(row));
                cells
                    .try_into()
                    .unwrap_or_else(|_| std::array::from_fn(|_| String::new()))
            };
            if at == 0 && !against.is_empty() {
                lines.extend(against.iter().map(|one| line(None, Some(one))))
            } else {
                lines.push(line(None, None))
            }
            lines.extend(scope.subgroups.iter().map(|one| line(Some(one), None)));
        }
    }
}

fn number(spread: Option<Spread>, of: fn(Spread) -> f64) -> String {
    download::number(spread.map(of))
}

fn mean(spread: Spread) -> f64 {
    spread.mean
}

fn sd(spread: Spread) -> f64 {
    spread.sd
}

/// Of a scope, or of one subgroup.
fn values(
    row: &ComparisonRow,
    scope: &MetricScope,
    subgroup: Option<&SubgroupResult>,
) -> Vec<String> {
    let seeds = row.seeds.to_string();
    if let Some(one) = subgroup {
        let rows = one.rows.map_or_else(
            || format!("fewer than {}", lab::compare::LEAST_ROWS),
            |rows| download::number(Some(rows)),
        );
        let mut cells = vec![one.name.clone(), rows, seeds, String::new(), String::new()];
        cells.extend([number(one.value, mean), number(one.value, sd)]);
        cells.resize(11, String::new());
        return cells;
    }
    vec![
        String::new(),
        String::new(),
        seeds,
        number(scope.silos, mean),
        number(scope.silos, sd),
        number(scope.rows, mean),
        number(scope.rows, sd),
        number(scope.worst, mean),
        number(scope.worst, sd),
        number(scope.apart, mean),
        number(scope.best, mean),
    ]
}

fn compared(against: Option<&Against>, difference: Option<&MeanDifference>) -> Vec<String> {
    let interval = difference.and_then(|one| one.interval());
    let count = |of: fn(&MeanDifference) -> usize| {
        difference.map_or_else(String::new, |one| of(one).to_string())
    };
    vec![
        against.map_or_else(String::new, |one| one.over.clone()),
        download::number(interval.map(|one| one.by)),
        download::number(interval.map(|one| one.low)),
        download::number(interval.map(|one| one.high)),
        count(|one| one.wins),
        count(|one| one.ties),
        count(|one| one.losses),
    ]
}

fn reaches(row: &ComparisonRow) -> Vec<String> {
    let of = |reach: &Option<CostToReach>| {
        let one = |of: fn(&CostToReach) -> Spread| {
            download::number(reach.as_ref().map(|reach| of(reach).mean))
        };
        [
            one(|reach| reach.rounds),
            one(|reach| reach.bytes),
            one(|reach| reach.parameters),
        ]
    };
    [&row.to_near, &row.to_best, &row.to_end]
        .into_iter()
        .flat_map(of)
        .collect()
}

/// Returns what noise bounds, as it is measured; empty without noise.
fn bounds(row: &ComparisonRow) -> [String; 3] {
    let noise = row.noise.as_ref();
    [
        bound(noise.map(|noise| noise.epsilon)),
        bound(noise.map(|noise| noise.epsilon_alone)),
        download::number(noise.map(|noise| noise.delta)),
    ]
}

/// A bound as a number, or that there is none in words; nothing without noise.
fn bound(of_noise: Option<Option<f64>>) -> String {
    match of_noise {
        Some(None) => NO_BOUND.into(),
        number => download::number(number.flatten()),
    }
}
