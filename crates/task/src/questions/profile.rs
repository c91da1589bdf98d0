//! Distributions of the values of every column. Later rows are compared with them, so that a column in another
//! unit, or with its codes exchanged, is noticed. They say something of rows, and are for the institution that
//! has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{RowColumn, RowColumns, RowValues};
use crate::data::DataSet;

/// Fewest values of a column that are compared.
const FEWEST: usize = 10;
/// By how much two spreads differ that are not of one unit.
const SPREAD: f64 = 4.0;
/// The part of the rows that has to be in another level, or to lack a value, before it is told.
const MOVED: f64 = 0.5;
/// Parts of the values that lie below the numbers of [`ColumnProfile::below`].
const PARTS: [f64; 5] = [0.01, 0.1, 0.5, 0.9, 0.99];

/// Distributions of the values of every column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RowsProfile {
    /// By the agreed name of the column.
    pub columns: BTreeMap<String, ColumnProfile>,
}

/// Distribution of the values of a column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ColumnProfile {
    /// Rows with a value.
    pub rows: usize,
    /// Rows without one.
    pub missing: usize,
    /// Of numbers: below which of them 1, 10, 50, 90 and 99 of 100 lie; nothing of levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<[f64; 5]>,
    /// Of levels: the rows of each, by its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<usize>,
}

impl RowsProfile {
    /// The profile of all rows of a data set; empty without a schema.
    pub fn of(data: &DataSet) -> Self {
        let Some(rows) = RowColumns::of(data) else {
            return Self::default();
        };
        let names = rows.names.iter().enumerate();
        let features =
            names.map(|(at, name)| (name.clone(), ColumnProfile::of(&(rows.column)(at))));
        let targets = rows.targets.iter();
        let targets = targets.map(|(name, column)| (name.clone(), ColumnProfile::of(column)));
        Self {
            columns: features.chain(targets).collect(),
        }
    }

    /// Returns where later rows are of another kind than these, in sentences without a full stop.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let both = self.columns.iter();
        let both = both.filter_map(|(name, own)| Some((name, own, now.columns.get(name)?)));
        let differences = both.filter_map(|(name, own, now)| Some((name, own.difference(now)?)));
        differences
            .map(|(name, what)| format!("{name}: {what}"))
            .collect()
    }
}

impl ColumnProfile {
    fn of(column: &RowColumn) -> Self {
        let counted = column.counted();
        let rows = counted.iter().map(|(_, rows)| rows).sum();
        let mut levels = Vec::new();
        if column.kind != RowValues::Numbers {
            for (place, rows) in &counted {
                levels.resize(*place as usize + 1, 0);
                levels[*place as usize] = *rows;
            }
        }
        let below = |part: &f64| {
            let mut before = 0;
            let mut numbers = counted.iter();
            let number = numbers.find(|(_, times)| {
                before += times;
                before as f64 >= part * rows as f64
            });
            number.map_or(f64::NAN, |(number, _)| *number)
        };
        let numbers = column.kind == RowValues::Numbers && rows > 0;
        Self {
            rows,
            missing: column.values.len() - rows,
            below: numbers.then(|| PARTS.each_ref().map(below)),
            levels,
        }
    }

    /// Between which numbers a value lies that is like those of these rows: as far beyond 98 of 100 of them as they
    /// are apart. `None` of levels, and where there are few rows.
    pub fn plausible(&self) -> Option<[f64; 2]> {
        let [low, .., high] = self.below.filter(|_| self.rows >= FEWEST)?;
        let width = high - low;
        (width > 0.0).then_some([low - width, high + width])
    }

    /// Returns how later values differ from these, where they are hardly of one kind.
    fn difference(&self, now: &Self) -> Option<String> {
        let share = |of: &Self| of.missing as f64 / (of.rows + of.missing).max(1) as f64;
        if share(now) - share(self) > MOVED {
            return Some(format!(
                "{:.0} % of the values are missing now, {:.0} % were",
                100.0 * share(now),
                100.0 * share(self)
            ));
        }
        if self.rows < FEWEST || now.rows < FEWEST {
            return None;
        }
        if let (Some(before), Some(after)) = (self.below, now.below) {
            let other = is_beyond(before, after) || is_beyond(after, before);
            let [low, high] = [before, after].map(|below| (below[3] - below[1]).abs());
            let spread = low > 0.0 && high > 0.0 && (high > SPREAD * low || low > SPREAD * high);
            return (other || spread).then(|| {
                format!(
                    "the middle value is {} now, and 8 of 10 lie from {} to {}; it was {}, and they lay from {} to \
                     {}: is it in another unit?",
                    after[2], after[1], after[3], before[2], before[1], before[3]
                )
            });
        }
        let part = |of: &Self, at: usize| {
            let rows = of.levels.get(at).copied().unwrap_or_default();
            rows as f64 / of.rows as f64
        };
        let levels = self.levels.len().max(now.levels.len());
        let moved = (0..levels).map(|at| (part(self, at) - part(now, at)).abs());
        (moved.sum::<f64>() / 2.0 > MOVED).then(|| {
            "most rows are in other levels now than before: do its codes mean something else?"
                .into()
        })
    }
}

/// Returns whether the middle of one spread lies beyond nearly all of another one that has a spread at all.
fn is_beyond(spread: [f64; 5], other: [f64; 5]) -> bool {
    let [low, .., high] = spread;
    low < high && !(low..=high).contains(&other[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> ColumnProfile {
        ColumnProfile::of(&RowColumn {
            values: values.into_iter().collect(),
            kind: RowValues::Numbers,
        })
    }

    fn differs(before: &[f64], change: impl Fn(f64) -> f64) -> bool {
        let now = of(before.iter().map(|value| change(*value)));
        of(before.iter().copied()).difference(&now).is_some()
    }

    #[test]
    fn another_unit_is_noticed_whatever_it_is() {
        let ages: Vec<f64> = (0..60).map(|at| f64::from(20 + at)).collect();
        let glucose: Vec<f64> = (0..80)
            .map(|at| 4.0 + f64::from(at * 37 % 80) / 16.0)
            .collect();
        let counts: Vec<f64> = (0..90).map(|at| f64::from((at % 9).max(4) - 4)).collect();
        let degrees: Vec<f64> = (0..50).map(|at| 36.0 + f64::from(at) / 15.0).collect();
        assert!(differs(&ages, |age| 12.0 * age), "months for years");
        assert!(differs(&ages, |age| 2024.0 - age), "the year of birth");
        assert!(differs(&glucose, |value| 18.0 * value), "mg/dl for mmol/l");
        assert!(
            differs(&counts, |value| 18.0 * value),
            "a count, most of which are 0"
        );
        assert!(differs(&degrees, |value| value * 1.8 + 32.0), "Fahrenheit");
        assert!(differs(&degrees, |value| value + 273.15), "Kelvin");
        assert!(differs(&glucose, |value| value / 1000.0), "l for ml");
        assert!(differs(&ages, |_| f64::NAN), "no values");
        let lipids: Vec<f64> = (0..70)
            .map(|at| 3.0 + f64::from(at * 29 % 70) / 20.0)
            .collect();
        let pressures: Vec<f64> = (0..90).map(|at| f64::from(95 + at)).collect();
        let kilograms: Vec<f64> = (0..60).map(|at| f64::from(50 + at * 17 % 60)).collect();
        let centimetres: Vec<f64> = (0..50).map(|at| f64::from(150 + at)).collect();
        let stays: Vec<f64> = (0..99).map(|at| f64::from(1 + at % 9)).collect();
        assert!(
            differs(&lipids, |value| 38.67 * value),
            "mg/dl for mmol/l of another kind"
        );
        assert!(
            differs(&pressures, |value| value / 7.500_62),
            "kPa for mmHg"
        );
        assert!(differs(&kilograms, |value| 2.204_62 * value), "pounds");
        assert!(differs(&centimetres, |value| value / 2.54), "inches");
        assert!(differs(&centimetres, |value| value / 100.0), "metres");
        assert!(differs(&stays, |days| 24.0 * days), "hours for days");
        assert!(
            differs(&ages, |age| 1.0 - age / 100.0),
            "a share, and the other way round"
        );
    }

    #[test]
    fn more_rows_of_one_kind_are_not() {
        let ages: Vec<f64> = (0..60).map(|at| f64::from(20 + at)).collect();
        assert!(!differs(&ages, |age| age));
        assert!(!differs(&ages, |age| age + 5.0));
        assert!(!differs(&ages, |age| if age > 75.0 {
            f64::NAN
        } else {
            age
        }));
        let more = of((0..600).map(|at| f64::from(18 + at % 70)));
        assert_eq!(of(ages.clone()).difference(&more), None);
        // Two rows tell nothing, nor does a column that never changes.
        assert_eq!(of([1.0, 2.0]).difference(&more), None);
        assert_eq!(of([1.0; 20]).difference(&of([1.0; 30])), None);
    }

    #[test]
    fn levels_that_are_exchanged_are_noticed() {
        let column = |rows: [usize; 3]| ColumnProfile {
            rows: rows.iter().sum(),
            levels: rows.to_vec(),
            ..ColumnProfile::default()
        };
        let before = column([90, 10, 0]);
        assert!(before.difference(&column([10, 90, 0])).is_some());
        assert_eq!(before.difference(&column([60, 30, 10])), None);
    }

    #[test]
    fn a_value_is_plausible_near_those_that_were_there() {
        let ages = of((0..100).map(|at| f64::from(20 + at % 60)));
        let [low, high] = ages.plausible().unwrap_or_default();
        assert!(low < 0.0 && high > 100.0 && high < 180.0, "{low} to {high}");
        assert_eq!(of([1.0; 20]).plausible(), None);
    }
}
