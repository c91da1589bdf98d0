//! A comparison as one CSV file: a line for every way of learning, metric and group of silos.

use simulations::compare::{Against, Comparison, MetricResult, Row, Scope, Spread};

use super::super::download;

const COLUMNS: [&str; 21] = [
    "variant",
    "strategy",
    "metric",
    "silos",
    "seeds",
    "mean",
    "sd",
    "rows_mean",
    "rows_sd",
    "worst_mean",
    "worst_sd",
    "best_round_mean",
    "over",
    "better_by",
    "low",
    "high",
    "wins",
    "ties",
    "losses",
    "round",
    "bytes",
];

/// The CSV.
pub fn csv(comparison: &Comparison) -> String {
    let mut lines = Vec::new();
    for variant in &comparison.variants {
        for row in &variant.strategies {
            for (at, metric) in row.metrics.iter().enumerate() {
                for (group, scope) in [("members", &metric.inside), ("outside", &metric.outside)] {
                    let Some(scope) = scope else { continue };
                    let start = cells(&variant.name, row, metric, group, scope);
                    let none = || line(&start, None, group, row);
                    // Differences are of the most important metric.
                    match at == 0 && !row.against.is_empty() {
                        true => lines.extend(
                            row.against
                                .iter()
                                .map(|one| line(&start, Some(one), group, row)),
                        ),
                        false => lines.push(none()),
                    }
                }
            }
        }
    }
    download::csv(&COLUMNS, lines)
}

fn cells(
    variant: &str,
    row: &Row,
    metric: &MetricResult,
    group: &str,
    scope: &Scope,
) -> Vec<String> {
    let number = |spread: Option<Spread>, of: fn(Spread) -> f64| download::number(spread.map(of));
    let mean: fn(Spread) -> f64 = |one| one.mean;
    let sd: fn(Spread) -> f64 = |one| one.sd;
    vec![
        variant.to_owned(),
        row.label.clone(),
        metric.metric.key().to_owned(),
        group.to_owned(),
        row.seeds.to_string(),
        number(scope.silos, mean),
        number(scope.silos, sd),
        number(scope.rows, mean),
        number(scope.rows, sd),
        number(scope.worst, mean),
        number(scope.worst, sd),
        number(scope.best, mean),
    ]
}

fn line(start: &[String], against: Option<&Against>, group: &str, row: &Row) -> [String; 21] {
    let difference = against.and_then(|one| match group {
        "members" => one.inside.as_ref(),
        _ => one.outside.as_ref(),
    });
    let interval = difference.and_then(|one| one.per_silo.or(one.per_row));
    let count = |of: fn(&simulations::compare::Difference) -> usize| {
        difference.map_or_else(String::new, |one| of(one).to_string())
    };
    let mut cells = start.to_vec();
    cells.push(against.map_or_else(String::new, |one| one.over.clone()));
    cells.push(download::number(interval.map(|one| one.by)));
    cells.push(download::number(interval.map(|one| one.low)));
    cells.push(download::number(interval.map(|one| one.high)));
    cells.push(count(|one| one.wins));
    cells.push(count(|one| one.ties));
    cells.push(count(|one| one.losses));
    cells.push(download::number(row.round.map(|one| one.mean)));
    cells.push(download::number(row.bytes.map(|one| one.mean)));
    cells
        .try_into()
        .unwrap_or_else(|_| std::array::from_fn(|_| String::new()))
}
