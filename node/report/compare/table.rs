//! The tables of a comparison as text cells, for the terminal and the page alike.

use learn::MetricName;
use simulations::compare::{
    Against, BY_CHANCE, Comparison, Difference, Row, Scope, Spread, VariantTable,
};
use simulations::summary::Interval;

use super::super::numbers;

/// A table of text: a heading, names of columns, and rows of cells, the first of which is a name.
pub(super) struct TextTable {
    pub(super) title: String,
    pub(super) note: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// All tables of a variant.
pub(super) fn tables(comparison: &Comparison, variant: &VariantTable) -> Vec<TextTable> {
    let metric = comparison.metrics[0];
    let mut tables = Vec::new();
    for outside in [false, true] {
        if outside && variant.outside.is_empty() {
            continue;
        }
        tables.push(results(metric, variant, outside));
        if comparison.metrics.len() > 1 {
            tables.push(others(&comparison.metrics[1..], variant, outside));
        }
    }
    tables.push(costs(variant));
    tables
}

/// A metric in words, with its direction.
pub(super) fn metric_words(metric: MetricName) -> String {
    let better = match metric.higher_is_better() {
        true => "higher is better",
        false => "lower is better",
    };
    format!("{} ({better})", metric.key())
}

fn scope(row: &Row, at: usize, outside: bool) -> Option<&Scope> {
    let metric = row.metrics.get(at)?;
    match outside {
        true => metric.outside.as_ref(),
        false => metric.inside.as_ref(),
    }
}

fn difference(against: &Against, outside: bool) -> Option<&Difference> {
    match outside {
        true => against.outside.as_ref(),
        false => against.inside.as_ref(),
    }
}

/// The most important metric, and the differences to local training and to the other references.
fn results(metric: MetricName, variant: &VariantTable, outside: bool) -> TextTable {
    let rows = &variant.strategies;
    let all = rows.iter().filter_map(|row| scope(row, 0, outside));
    let values = all.flat_map(|scope| [scope.silos, scope.rows, scope.worst].into_iter().flatten());
    let decimals = decimals(values.map(|spread| spread.mean));
    let who = match outside {
        true => numbers::plural(variant.outside.len(), "silo") + " outside",
        false => numbers::plural(variant.members.len(), "member"),
    };
    let test_rows = if outside {
        variant.rows.1
    } else {
        variant.rows.0
    };
    let mut columns: Vec<String> = ["", "silos", "rows", "worst", "best round"]
        .map(str::to_owned)
        .to_vec();
    let local = rows.iter().find(|row| row.strategy == "local");
    if let Some(local) = local {
        columns.push(format!("vs {} (95 %)", local.label));
        columns.push("+/=/−".to_owned());
    }
    let cells = |row: &Row| {
        let own = scope(row, 0, outside);
        let cell = |spread: Option<Spread>| value(spread, decimals);
        let mean = own.and_then(|own| own.silos);
        let mut cells = vec![
            row.label.clone(),
            with_deviation(mean, decimals),
            cell(own.and_then(|own| own.rows)),
            cell(own.and_then(|own| own.worst)),
            cell(own.and_then(|own| own.best)),
        ];
        if let Some(local) = local {
            let against = row
                .against
                .iter()
                .find(|against| against.over == local.label);
            let difference = against.and_then(|against| difference(against, outside));
            let interval = difference.and_then(|one| one.per_silo.or(one.per_row));
            cells.push(interval.map_or_else(String::new, |one| interval_words(&one, decimals)));
            cells.push(difference.map_or_else(String::new, counts));
        }
        cells
    };
    let tested = rows
        .iter()
        .flat_map(|row| &row.against)
        .filter(|against| local.is_some_and(|local| local.label == against.over))
        .filter_map(|against| difference(against, outside))
        .map(|one| one.wins + one.ties + one.losses)
        .max()
        .unwrap_or(0);
    let chance = BY_CHANCE * tested as f64;
    let what = "silos: mean over silos, each counting once. rows: over all test rows. worst: the worst silo. \
                best round: silos, after the round that is best on test rows.";
    let note = match tested {
        0 => what.to_owned(),
        _ => format!(
            "{what} vs: mean gain per silo. +/=/−: silos whose own 95 % interval is wholly better, \
             includes no difference, is wholly worse (harmed); by chance about {chance:.1} of {tested} \
             would be harmed."
        ),
    };
    TextTable {
        title: format!("{who}, {test_rows:.0} test rows: {}", metric_words(metric)),
        note,
        columns,
        rows: rows.iter().map(cells).collect(),
    }
}

/// The other metrics: means over silos, or over all rows where single silos may lack the metric.
fn others(metrics: &[MetricName], variant: &VariantTable, outside: bool) -> TextTable {
    let rows = &variant.strategies;
    let spread = |row: &Row, at: usize| {
        let own = scope(row, at + 1, outside)?;
        match is_union(metrics[at]) {
            true => own.rows.or(own.silos),
            false => own.silos.or(own.rows),
        }
    };
    let decimals: Vec<usize> = (0..metrics.len())
        .map(|at| decimals(rows.iter().filter_map(|row| Some(spread(row, at)?.mean))))
        .collect();
    let name = |metric: &MetricName| match is_union(*metric) {
        true => format!("{}, all rows", metric.key()),
        false => metric.key().to_owned(),
    };
    let mut columns = vec![String::new()];
    columns.extend(metrics.iter().map(name));
    let cells = |row: &Row| {
        let values = (0..metrics.len()).map(|at| with_deviation(spread(row, at), decimals[at]));
        std::iter::once(row.label.clone()).chain(values).collect()
    };
    TextTable {
        title: match outside {
            true => "other metrics, silos outside".into(),
            false => "other metrics".into(),
        },
        note: String::new(),
        columns,
        rows: rows.iter().map(cells).collect(),
    }
}

/// Metrics that a silo with rows of one class does not have, or that need many rows.
fn is_union(metric: MetricName) -> bool {
    ["roc-auc", "balanced-accuracy", "calibration-error"].contains(&metric.key())
}

/// What it took, and how stable the grouping is.
fn costs(variant: &VariantTable) -> TextTable {
    let columns = [
        "",
        "round",
        "sent",
        "parameters",
        "tuning",
        "seconds",
        "coalitions",
        "regroupings",
        "same in seeds",
    ];
    let cells = |row: &Row| {
        let one = |spread: Option<Spread>| value(spread, 1);
        let grouped = row
            .coalitions
            .is_some_and(|own| own.mean > 1.0 || own.sd > 0.0);
        vec![
            row.label.clone(),
            one(row.round),
            row.bytes
                .filter(|bytes| bytes.mean > 0.0)
                .map_or_else(String::new, |bytes| numbers::bytes(bytes.mean as u64)),
            numbers::count(row.parameters),
            numbers::count(row.tuning.round() as u64),
            numbers::seconds(row.seconds.0),
            one(row.coalitions),
            one(row.changes.filter(|_| grouped)),
            row.stability
                .filter(|_| grouped)
                .map_or_else(String::new, |same| format!("{:.0} %", 100.0 * same)),
        ]
    };
    TextTable {
        title: "cost and grouping".into(),
        note: "round: the one chosen on validation rows. sent: by all members up to it. tuning: trainings of \
               single silos for the choice of settings. same in seeds: pairs of silos that two seeds \
               group alike."
            .into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: variant.strategies.iter().map(cells).collect(),
    }
}

/// Settings that were chosen and numbers that strategies report, a line for each strategy.
pub(super) fn settings(variant: &VariantTable) -> Vec<(String, String)> {
    let line = |row: &Row| {
        let chosen = row.chosen.iter().filter(|one| !one.settings.is_empty());
        let chosen = chosen.map(|one| {
            let each = one.settings.iter().map(|(key, value)| {
                let short = key.rsplit('.').next().unwrap_or(key);
                format!("{short} {value}")
            });
            let each = each.collect::<Vec<_>>().join(", ");
            format!("{each} (in {})", numbers::plural(one.seeds, "seed"))
        });
        let memory = row
            .memory
            .iter()
            .map(|(name, spread)| format!("{name} {:.3}", spread.mean));
        let chosen = chosen.chain(memory).collect::<Vec<_>>().join("; ");
        (!chosen.is_empty()).then(|| (row.label.clone(), chosen))
    };
    variant.strategies.iter().filter_map(line).collect()
}

/// Seeds that failed, a line for each way of learning.
pub(super) fn failures(variant: &VariantTable) -> Vec<String> {
    let line = |row: &Row| {
        let (seed, reason) = row.failed.first()?;
        let seeds = numbers::plural(row.failed.len(), "seed");
        Some(format!(
            "{} failed in {seeds}, first in seed {seed}: {reason}",
            row.label
        ))
    };
    variant.strategies.iter().filter_map(line).collect()
}

/// Decimals that show about three digits of these values.
pub(super) fn decimals(values: impl Iterator<Item = f64>) -> usize {
    let largest = values
        .map(f64::abs)
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    match largest {
        largest if largest < 2.0 => 3,
        largest if largest < 20.0 => 2,
        largest if largest < 200.0 => 1,
        _ => 0,
    }
}

fn value(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(String::new, |spread| numbers::value(spread.mean, decimals))
}

fn with_deviation(spread: Option<Spread>, decimals: usize) -> String {
    let Some(spread) = spread else {
        return "no result".into();
    };
    let mean = numbers::value(spread.mean, decimals);
    match spread.sd > 0.0 {
        true => format!("{mean} ± {}", numbers::value(spread.sd, decimals)),
        false => mean,
    }
}

pub(super) fn interval_words(interval: &Interval, decimals: usize) -> String {
    let number = |value: f64| numbers::signed(value, decimals);
    format!(
        "{} [{}, {}]",
        number(interval.by),
        number(interval.low),
        number(interval.high)
    )
}

fn counts(difference: &Difference) -> String {
    format!(
        "{}/{}/{}",
        difference.wins, difference.ties, difference.losses
    )
}
