//! The course of a metric over rounds as a table, where no chart can be drawn.

use lab::compare::{Comparison, ComparisonRow, CurvePoint, VariantTable};

use super::super::numbers;
use super::cells::{TextTable, fine_decimals};
use super::table::metric_words;

/// Rounds that are shown, and the last one.
const SHOWN: [u64; 10] = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200];

/// The most important metric after some of the rounds, of the unseen silos where there are any, and the
/// seconds of a training; nothing where no strategy has two rounds.
pub(super) fn table(comparison: &Comparison, variant: &VariantTable) -> Option<TextTable> {
    let outside = !variant.outside.is_empty();
    let rows: Vec<&ComparisonRow> = variant
        .strategies
        .iter()
        .filter(|row| row.curve.len() > 1)
        .collect();
    let last = rows
        .iter()
        .flat_map(|row| &row.curve)
        .map(|one| one.round)
        .max()?;
    let mut shown: Vec<u64> = SHOWN.into_iter().filter(|round| *round < last).collect();
    shown.push(last);
    let of = |point: &CurvePoint| if outside { point.outside } else { point.inside };
    let at = |row: &ComparisonRow, round: u64| {
        let mut points = row.curve.iter();
        points.find(|point| point.round == round).and_then(of)
    };
    let values = rows
        .iter()
        .flat_map(|row| shown.iter().filter_map(|round| at(row, *round)));
    let decimals = fine_decimals(values);
    let cells = |row: &&ComparisonRow| {
        let each = shown.iter().map(|round| {
            at(row, *round).map_or_else(String::new, |value| numbers::value(value, decimals))
        });
        let seconds = row
            .curve
            .iter()
            .filter_map(|point| point.seconds)
            .next_back();
        let seconds = seconds.map_or_else(String::new, numbers::seconds);
        let label = std::iter::once(row.label.clone());
        label.chain(each).chain([seconds]).collect()
    };
    let rounds = shown.iter().map(|round| format!("round {round}"));
    let who = if outside { "unseen silos" } else { "members" };
    Some(TextTable {
        title: format!("course of {}, {who}", metric_words(comparison.metrics[0])),
        note: "Each column: the mean over silos after that round, on test rows. seconds: how long one training took, \
               all rounds."
            .into(),
        columns: std::iter::once(String::new())
            .chain(rounds)
            .chain(["seconds".to_owned()])
            .collect(),
        rows: rows.iter().map(cells).collect(),
        ..TextTable::default()
    })
}
