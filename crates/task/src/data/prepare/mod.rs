//! Turns a silo's table into rows that a model takes: split, completed, standardised.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::moments::{Moments, largest};
use super::split::Parts;
use super::{DataError, Rows, ShiftConfig, SplitConfig, Table, Target};
use crate::random::{normal, stream};
use crate::schema::Fill;

/// How features, and a target that is a number, are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standardise {
    /// No scaling.
    None,
    /// Every silo scales by its own training rows. It scales a target that is a number, too: models
    /// then predict how far a row is from its own silo's mean.
    Silo,
    /// All silos use a common scale: in a first round they contribute counts, sums and squares, and the
    /// model carries the resulting scale in buffers.
    Federation,
    /// By the ranges that the schema agrees on: the middle of a range becomes 0, its ends −½ and ½. It
    /// says nothing of anybody's rows, so it can be used with noise.
    Ranges,
}

/// A silo's rows, ready for any model.
pub struct Prepared {
    /// Number of features of a row.
    pub features: usize,
    /// The target.
    pub target: Target,
    /// Training rows.
    pub train: Arc<Rows>,
    /// Validation rows.
    pub validation: Arc<Rows>,
    /// Test rows.
    pub test: Arc<Rows>,
    /// Preparation by which the rows became numbers of this scale.
    pub preparation: Preparation,
    /// Columns that hold one value in all training rows.
    pub constant: Vec<String>,
    /// Columns without a value in any training row, which count as average.
    pub absent: Vec<String>,
    /// Summaries of the training rows in every column, before it is scaled; of the target, where that is a
    /// number, too.
    pub columns: Vec<ColumnSummary>,
}

/// Summary of a column in a silo's training rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnSummary {
    /// Rows, mean and spread.
    pub moments: Moments,
    /// `true` if all of them are 0 or 1.
    pub binary: bool,
}

/// Transformation of a silo's encoded rows to the inputs of its models: missing values are filled, and features
/// and target are scaled where the silo does that itself. A common scale is in the model instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preparation {
    /// Replacements of missing values, by column.
    pub fills: Vec<f64>,
    /// Number that is subtracted from each column; 0 where the silo does not scale.
    pub means: Vec<f64>,
    /// By what the difference is divided; 1 where the silo does not scale.
    pub deviations: Vec<f64>,
    /// The target's number that a model calls 0.
    pub target_mean: f64,
    /// Length of a model's unit 1, in the target's own units.
    pub target_deviation: f64,
}

impl Preparation {
    /// Of rows that are taken as they are.
    pub fn none(columns: usize) -> Self {
        Self {
            fills: vec![0.0; columns],
            means: vec![0.0; columns],
            deviations: vec![1.0; columns],
            target_mean: 0.0,
            target_deviation: 1.0,
        }
    }

    /// A row's features as a model takes them; NaN stands for a missing value.
    ///
    /// # Panics
    /// If the row has another number of columns.
    pub fn features<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f32> + 'a {
        self.exact(row).map(|value| value as f32)
    }

    /// The features as [`features`](Self::features) gives them, before they are rounded.
    fn exact<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        assert_eq!(row.len(), self.fills.len(), "one value per column");
        row.iter().enumerate().map(|(column, &value)| {
            let value = if value.is_nan() {
                self.fills[column]
            } else {
                value
            };
            (value - self.means[column]) / self.deviations[column]
        })
    }

    /// A number to predict, as a model knows it.
    pub fn target(&self, value: f64) -> f32 {
        self.exact_target(value) as f32
    }

    fn exact_target(&self, value: f64) -> f64 {
        (value - self.target_mean) / self.target_deviation
    }
}

impl Prepared {
    /// Splits `table` by `seed`, fills what is missing, and scales if the silo is to do that.
    ///
    /// # Errors
    /// [`DataError::TooFewRows`]; [`DataError::AllMissing`] where there is no mean to put in.
    pub fn new(
        silo: &str,
        table: &Table,
        target: Target,
        split: &SplitConfig,
        standardise: Standardise,
        seed: u64,
    ) -> Result<Self, DataError> {
        let Parts {
            train,
            validation,
            test,
        } = split.parts(table, &classes(table, &target), seed, silo)?;
        // A silo that only tests has nothing else to learn its columns from.
        let basis = if train.is_empty() { &test } else { &train };
        let numbers = matches!(target, Target::Number { .. } | Target::Numbers { .. });
        if train.is_empty() && numbers && standardise == Standardise::Silo {
            return Err(DataError::Config(format!(
                "silo {silo:?} has test rows only, so it cannot scale the numbers to predict by its own \
                 training rows: use `standardise = \"federation\"` or `\"none\"`"
            )));
        }
        let basis = Basis {
            silo,
            table,
            standardise,
            rows: basis,
            trained: train.len(),
        };
        let mut learned = LearnedColumns::nothing();
        for (column, name) in table.columns.iter().enumerate() {
            learned.column(&basis, column, name)?;
        }
        if numbers {
            learned.target(&basis)?;
        }
        let preparation = learned.preparation();
        let rows = |part: &[usize], features: Vec<f64>| {
            Arc::new(rows_of(table, part, features, &preparation, standardise))
        };
        let plain = |part: &[usize]| prepared(table, part, &preparation);
        let mut shifted = plain(&test);
        if let Some(shift) = split.shift {
            let seed = split.seed.unwrap_or(seed);
            let mut noise = stream(seed, &format!("shift {silo}"));
            learned.shift(&mut shifted, shift, &mut noise);
        }
        Ok(Self {
            features: table.columns.len(),
            train: rows(&train, plain(&train)),
            validation: rows(&validation, plain(&validation)),
            test: rows(&test, shifted),
            target,
            preparation: preparation.clone(),
            constant: learned.constant,
            absent: learned.absent,
            columns: learned.columns,
        })
    }
}

/// The class of every row, or whether it has an event; the same number for all others.
pub(super) fn classes(table: &Table, target: &Target) -> Vec<usize> {
    match target {
        Target::Number { .. } | Target::Numbers { .. } | Target::Mask { .. } => {
            vec![0; table.len()]
        }
        // Every part gets its share of the events.
        Target::Survival { .. } => {
            let event = |row: usize| table.targets(row)[0] as usize;
            (0..table.len()).map(event).collect()
        }
        Target::Classes(_) => table.target.iter().map(|&class| class as usize).collect(),
    }
}

/// The features of a part, row by row.
pub(super) fn prepared(table: &Table, part: &[usize], preparation: &Preparation) -> Vec<f64> {
    let mut features = Vec::with_capacity(part.len() * table.columns.len());
    for &row in part {
        features.extend(preparation.exact(table.row(row)));
    }
    features
}

/// The rows that a silo learns its columns from.
struct Basis<'a> {
    silo: &'a str,
    table: &'a Table,
    standardise: Standardise,
    rows: &'a [usize],
    /// Training rows of the silo.
    trained: usize,
}

impl Basis<'_> {
    /// Returns what is subtracted from a column or target of these moments and this agreed range, and what divides
    /// the difference.
    fn scale(
        &self,
        moments: &Moments,
        range: Option<[f64; 2]>,
        what: &str,
    ) -> Result<(f64, f64), DataError> {
        match self.standardise {
            Standardise::Silo => Ok((moments.mean, moments.deviation())),
            Standardise::None | Standardise::Federation => Ok((0.0, 1.0)),
            Standardise::Ranges => match range {
                Some([low, high]) => Ok((f64::midpoint(low, high), high - low)),
                None => Err(without_range(what)),
            },
        }
    }
}

/// That numbers are to be scaled by their ranges, and these have none.
pub(crate) fn without_range(what: &str) -> DataError {
    DataError::Config(format!(
        "`standardise = \"ranges\"` scales by the ranges of the schema, and there is none of {what}: write `range = \
         [low, high]` there, by what is known of such numbers in general and not by own rows"
    ))
}

/// Statistics that a silo has computed of its columns.
pub(super) struct LearnedColumns {
    /// Fill, mean and deviation of every column.
    pub(super) scales: Vec<(f64, f64, f64)>,
    /// Mean and deviation of the target.
    target: (f64, f64),
    constant: Vec<String>,
    absent: Vec<String>,
    pub(super) columns: Vec<ColumnSummary>,
}

impl LearnedColumns {
    /// No column yet, and a target that is not scaled.
    pub(super) fn nothing() -> Self {
        Self {
            scales: Vec::new(),
            target: (0.0, 1.0),
            constant: Vec::new(),
            absent: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Learns the next column.
    fn column(&mut self, basis: &Basis<'_>, column: usize, name: &str) -> Result<(), DataError> {
        let (table, rows) = (basis.table, basis.rows);
        let values = rows.iter().map(|&row| table.row(row)[column]);
        let mut present: Vec<f64> = values.clone().filter(|value| !value.is_nan()).collect();
        if present.is_empty() && basis.standardise == Standardise::Silo {
            // On the scale of a silo 0 is the average, and held-out values have no scale either.
            self.absent.push(name.to_owned());
            self.scales.push((0.0, 0.0, f64::MAX));
            self.columns.push(ColumnSummary {
                moments: Moments::of(std::iter::empty()),
                binary: false,
            });
            return Ok(());
        }
        if present.is_empty() {
            return Err(DataError::AllMissing {
                silo: basis.silo.into(),
                column: name.to_owned(),
            });
        }
        let fill = match table.fills[column] {
            Fill::Mean => Moments::of(present.iter().copied()).mean,
            Fill::Median => median(&mut present),
            // Whoever reads rows writes it in their place: it is noted for predictions elsewhere.
            Fill::Middle => {
                table.ranges[column].map_or(0.0, |[low, high]| f64::midpoint(low, high))
            }
        };
        let complete = values.map(|value| if value.is_nan() { fill } else { value });
        let moments = match table.fills[column] {
            // Filling in means changes neither the mean nor what a squared deviation adds up to.
            Fill::Mean => Moments {
                count: rows.len() as u64,
                ..Moments::of(present.iter().copied())
            },
            Fill::Median | Fill::Middle => Moments::of(complete),
        };
        if moments.squares == 0.0 && basis.trained > 1 {
            self.constant.push(name.to_owned());
        }
        self.columns.push(ColumnSummary {
            moments,
            binary: present.iter().all(|&value| value == 0.0 || value == 1.0),
        });
        if basis.standardise == Standardise::None {
            let largest = largest(present.iter().copied());
            moments.must_fit(basis.silo, &format!("the column {name:?}"), largest)?;
        }
        let what = format!("the column {name:?}");
        let (mean, deviation) = basis.scale(&moments, table.ranges[column], &what)?;
        self.scales.push((fill, mean, deviation));
        Ok(())
    }

    /// Learns the numbers to predict.
    fn target(&mut self, basis: &Basis<'_>) -> Result<(), DataError> {
        let table = basis.table;
        let targets = basis.rows.iter().flat_map(|&row| table.targets(row));
        let moments = Moments::of(targets.clone().copied());
        if basis.standardise == Standardise::None {
            moments.must_fit(basis.silo, "the target", largest(targets.copied()))?;
        }
        let binary = false;
        self.columns.push(ColumnSummary { moments, binary });
        self.target = basis.scale(&moments, table.target_range, "the target")?;
        Ok(())
    }

    fn preparation(&self) -> Preparation {
        let each = |of: fn(&(f64, f64, f64)) -> f64| self.scales.iter().map(of).collect();
        Preparation {
            fills: each(|scale| scale.0),
            means: each(|scale| scale.1),
            deviations: each(|scale| scale.2),
            target_mean: self.target.0,
            target_deviation: self.target.1,
        }
    }

    /// Moves prepared features, row by row, as a shift of the test rows says: not those that are 0 or 1.
    pub(super) fn shift(&self, features: &mut [f64], shift: ShiftConfig, noise: &mut ChaCha8Rng) {
        for (at, value) in features.iter_mut().enumerate() {
            let column = at % self.scales.len();
            let random = shift.mean + shift.noise * normal(noise);
            let summary = self.columns[column];
            if !summary.binary {
                *value += random * (summary.moments.deviation() / self.scales[column].2);
            }
        }
    }
}

/// Prepared rows of a part, with what stands beside the features.
pub(super) fn rows_of(
    table: &Table,
    part: &[usize],
    features: Vec<f64>,
    preparation: &Preparation,
    standardise: Standardise,
) -> Rows {
    let targets = part.iter().flat_map(|&row| table.targets(row));
    let targets = targets.map(|&target| preparation.exact_target(target));
    let (width, count) = (table.columns.len(), table.targets(0).len());
    let rows = match standardise {
        Standardise::Federation => Rows::unscaled(width, count, features, targets.collect()),
        Standardise::Silo | Standardise::None | Standardise::Ranges => {
            let features = features.iter().map(|&value| value as f32);
            let targets = targets.map(|value| value as f32);
            Rows::wide(width, count, features.collect(), targets.collect())
        }
    };
    let rows = rows.with_subgroups(chosen(&table.subgroups, part));
    let rows = rows.with_groups(chosen(&table.groups, part));
    if table.domains.is_empty() {
        return rows;
    }
    rows.within(chosen(&table.domains, part))
}

/// Returns what stands beside the rows of a part; nothing where nothing stands beside any row.
fn chosen<T: Copy>(all: &[T], part: &[usize]) -> Vec<T> {
    match all {
        [] => Vec::new(),
        all => part.iter().map(|&row| all[row]).collect(),
    }
}

/// The middle of the numbers, of which there is at least one; the mean of the two in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        1 => values[half],
        _ => (values[half - 1] + values[half]) / 2.0,
    }
}

#[cfg(test)]
mod tests;
