//! Cells of the tables of a comparison.

use lab::compare::{ComparisonRow, MeanDifference, MetricScope, Spread};
use lab::summary::Interval;

use super::super::numbers;

/// The mark of a gain that is not finished.
pub(super) const OPEN: &str = " *";

/// A table of text: a heading, names of columns, and rows of cells, the first of which is a name.
#[derive(Default)]
pub(super) struct TextTable {
    pub(super) title: String,
    pub(super) note: String,
    pub(super) columns: Vec<String>,
    /// The columns that the page shows beside the name, the one that decides first; the others are
    /// folded. If there are none, all columns are shown.
    pub(super) main: Vec<usize>,
    /// The rows in which the column that decides holds an interval with 0 in it: nothing is decided there.
    pub(super) undecided: Vec<usize>,
    pub(super) rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Returns whether a column holds anything; the first one, of names, does.
    pub(super) fn filled(&self, column: usize) -> bool {
        column == 0 || self.rows.iter().any(|row| !row[column].is_empty())
    }
}

/// A metric of the members, or of the unseen silos.
pub(super) fn scope(row: &ComparisonRow, at: usize, outside: bool) -> Option<&MetricScope> {
    row.metrics.get(at)?.scope(outside)
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

/// Decimals that show about three digits of the value nearest to 0: where one strategy fails, its large
/// loss is not to take the digits away by which the others differ.
pub(super) fn fine_decimals(values: impl Iterator<Item = f64>) -> usize {
    let sizes = values.map(f64::abs).filter(|value| value.is_finite());
    decimals(sizes.reduce(f64::min).into_iter())
}

/// A mean.
pub(super) fn value(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(String::new, |spread| numbers::value(spread.mean, decimals))
}

/// A mean with its standard deviation.
pub(super) fn with_deviation(spread: Option<Spread>, decimals: usize) -> String {
    let Some(spread) = spread else {
        return "no result".into();
    };
    let mean = numbers::value(spread.mean, decimals);
    if spread.sd > 0.0 {
        format!("{mean} ± {}", numbers::value(spread.sd, decimals))
    } else {
        mean
    }
}

/// The places of those of these intervals that hold 0.
pub(super) fn undecided(intervals: impl Iterator<Item = Option<Interval>>) -> Vec<usize> {
    let holds =
        |(_, interval): &(usize, Option<Interval>)| interval.is_some_and(|one| !one.is_clear());
    intervals
        .enumerate()
        .filter(holds)
        .map(|(at, _)| at)
        .collect()
}

/// A difference with its interval.
pub(super) fn interval_words(interval: &Interval, decimals: usize) -> String {
    let number = |value: f64| numbers::signed(value, decimals);
    format!(
        "{} [{}, {}]",
        number(interval.by),
        number(interval.low),
        number(interval.high)
    )
}

/// Silos that win, tie and lose.
pub(super) fn counts(difference: &MeanDifference) -> String {
    format!(
        "{}/{}/{}",
        difference.wins, difference.ties, difference.losses
    )
}
