//! Values far outside of those that a model was trained on: it answers for them, and the answer means little.

use std::collections::BTreeMap;

use task::questions::RowsProfile;
use task::schema::{Days, FeatureColumns, FeatureValues, ReadCells};

use super::card::Card;
use super::predictor::Predictor;
use super::rows::RowsToPredict;
use crate::data::Standardise;

/// Deviations from the mean beyond which a value is far outside.
const DEVIATIONS: f64 = 8.0;
/// Multiple of the spread of the usual values, beyond them, from which on a value is far outside.
const USUAL: f64 = 5.0;

/// Columns and rows with values far outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutsideRows {
    /// Values of each such column, in sentences without a full stop.
    pub columns: Vec<String>,
    /// Rows with at least one such value.
    pub rows: usize,
}

impl Card {
    /// Between which numbers the values of each column lie that are like those that the model was trained on, as far
    /// as anybody knows: by the own rows of the institution that asks, or else by the scale of the model, or by what
    /// is usual in the table that the schema was drafted from.
    pub fn plausible(&self, own: Option<&RowsProfile>) -> BTreeMap<String, [f64; 2]> {
        let schema = &self.task.schema;
        let scaled = matches!(
            self.task.standardise,
            Standardise::Silo | Standardise::Federation
        );
        let by_scale = |name: &str| {
            let column = self.columns.iter().find(|column| column.name == name)?;
            let far = DEVIATIONS * column.deviation;
            (scaled && far > 0.0).then_some([column.mean - far, column.mean + far])
        };
        let by_usual = |name: &str| {
            let [low, high] = *schema.usual.get(name)?;
            let far = USUAL * (high - low);
            (far > 0.0).then_some([low - far, high + far])
        };
        let by_own = |name: &str| own?.columns.get(name)?.plausible();
        let features = schema
            .columns()
            .flat_map(|(name, column)| column.kind.features(name));
        let numbers = features.filter_map(|feature| match feature.values {
            FeatureValues::Number { .. } => Some(feature.name),
            FeatureValues::Levels(_) => None,
        });
        let known = numbers.filter_map(|name| {
            let found = by_own(&name).or_else(|| by_scale(&name));
            let found = found.or_else(|| by_usual(&name))?;
            Some((name, found))
        });
        known.collect()
    }
}

impl Predictor {
    /// Returns the values of these rows that are far outside of what the model was trained on; `own` is known to the
    /// institution alone.
    pub fn outside(&self, rows: &RowsToPredict, own: Option<&RowsProfile>) -> OutsideRows {
        let card = self.card();
        let plausible = card.plausible(own);
        let names = card.columns.iter().enumerate();
        let columns: Vec<(usize, &str, [f64; 2])> = names
            .filter_map(|(at, column)| {
                let name = column.name.as_str();
                Some((at, name, *plausible.get(name)?))
            })
            .collect();
        let is_outside = |value: f64, [low, high]: [f64; 2]| value < low || value > high;
        let mut found = OutsideRows::default();
        for (at, name, [low, high]) in &columns {
            let values = rows.numbers().map(|row| row[*at]);
            let values: Vec<f64> = values
                .filter(|value| is_outside(*value, [*low, *high]))
                .collect();
            if values.is_empty() {
                continue;
            }
            let dates = dates_of(card.task.schema.columns(), name);
            // Parts of dates are plain numbers.
            let days = dates.filter(|(own, _)| own == name).map(|(_, days)| days);
            let shown = |value: f64| match days {
                Some(days) => days.day(value).to_string(),
                None => value.to_string(),
            };
            let about = |value: f64| {
                shown(if days.is_some() {
                    value
                } else {
                    rounded(value)
                })
            };
            let doubt = match dates {
                Some(_) => "are its dates written in another form (`dates`)?",
                None => "is it in another unit?",
            };
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (count, verb) = match values.len() {
                1 => ("1 row".to_owned(), "holds"),
                count => (format!("{count} rows"), "hold"),
            };
            let range = card.columns[*at].range;
            let agreed = range.map_or(String::new(), |[low, high]| {
                format!(", and agreed is {} to {}", shown(low), shown(high))
            });
            found.columns.push(format!(
                "{name}: {count} {verb} values from {} to {}, and the model was trained on values that lie \
                 about from {} to {}{agreed}: {doubt}",
                shown(least),
                shown(most),
                about(*low),
                about(*high),
            ));
        }
        let odd = |row: &&[f64]| {
            let mut columns = columns.iter();
            columns.any(|(at, _, range)| is_outside(row[*at], *range))
        };
        found.rows = rows.numbers().filter(odd).count();
        found
    }
}

/// The column of dates that becomes a number of this name.
fn dates_of<'a>(
    mut columns: impl Iterator<Item = (&'a str, &'a FeatureColumns)>,
    number: &str,
) -> Option<(&'a str, &'a Days)> {
    columns.find_map(|(name, column)| {
        let days = match column.kind.cells() {
            ReadCells::Days(days) => days,
            ReadCells::Numbers { .. } | ReadCells::Levels(_) => return None,
        };
        let features = column.kind.features(name);
        let own = features.iter().any(|feature| feature.name == number);
        own.then_some((name, days))
    })
}

/// A number with three digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    let step = 10_f64.powf(value.abs().log10().floor() - 2.0);
    (value / step).round() * step
}
