//! Turns a silo's table into rows that a model takes, every row by itself, for sums with noise.

use std::sync::Arc;

use super::prepare::{LearnedColumns, classes, prepared, rows_of, without_range};
use super::split::Parts;
use super::{
    ColumnSummary, DataError, Moments, Preparation, Prepared, SplitConfig, Standardise, Table,
    Target,
};
use crate::random::stream;

impl Prepared {
    /// Splits `table` by `seed`, and scales by agreed ranges or not at all, for sums with noise: what a row
    /// becomes does not depend on other rows, and a part may have none. Rows with a missing value are left out.
    ///
    /// # Errors
    /// [`DataError::Config`]: a column without a range, or a scale that follows from rows. What the split
    /// refuses.
    pub fn row_by_row(
        silo: &str,
        table: &Table,
        target: Target,
        split: &SplitConfig,
        standardise: Standardise,
        seed: u64,
    ) -> Result<Self, DataError> {
        // Where there are no rows, none of them says its part.
        let mut parts = match table.is_empty() {
            true => Parts::default(),
            false => split.parts(table, &classes(table, &target), seed, silo)?,
        };
        let complete = |row: &usize| !table.row(*row).iter().any(|value| value.is_nan());
        let all = [&mut parts.train, &mut parts.validation, &mut parts.test];
        all.into_iter().for_each(|part| part.retain(complete));
        let agreed = |range: Option<[f64; 2]>, what: &str| match (standardise, range) {
            (Standardise::None, _) => Ok((0.0, 1.0)),
            (Standardise::Ranges, Some([low, high])) => Ok((f64::midpoint(low, high), high - low)),
            (Standardise::Ranges, None) => Err(without_range(what)),
            (Standardise::Silo | Standardise::Federation, _) => Err(DataError::Config(
                "rows of sums with noise are scaled by agreed ranges or not at all".into(),
            )),
        };
        let columns = table.columns.iter().zip(&table.ranges);
        let scales = columns.map(|(name, range)| agreed(*range, &format!("the column {name:?}")));
        let scales = scales.collect::<Result<Vec<_>, _>>()?;
        let (target_mean, target_deviation) = match target {
            Target::Number { .. } | Target::Numbers { .. } => {
                agreed(table.target_range, "the target")?
            }
            Target::Classes(_) | Target::Mask { .. } | Target::Survival { .. } => (0.0, 1.0),
        };
        let preparation = Preparation {
            // Nothing is filled in here. Whoever predicts without a value gets the middle of its range, and 0
            // where numbers are not scaled.
            fills: scales.iter().map(|scale| scale.0).collect(),
            means: scales.iter().map(|scale| scale.0).collect(),
            deviations: scales.iter().map(|scale| scale.1).collect(),
            target_mean,
            target_deviation,
        };
        let width = table.columns.len();
        let summary = |values: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = parts.train.iter().map(|&row| values(row)).collect();
            ColumnSummary {
                moments: Moments::of(values.iter().copied()),
                binary: values.iter().all(|&value| value == 0.0 || value == 1.0),
            }
        };
        let columns: Vec<_> = (0..width)
            .map(|column| summary(&|row| table.row(row)[column]))
            .collect();
        let mut test = prepared(table, &parts.test, &preparation);
        if let Some(shift) = split.shift {
            let mut learned = LearnedColumns::nothing();
            let fills = scales.iter().map(|scale| (scale.0, scale.0, scale.1));
            learned.scales = fills.collect();
            learned.columns = columns.clone();
            let seed = split.seed.unwrap_or(seed);
            learned.shift(
                &mut test,
                shift,
                &mut stream(seed, &format!("shift {silo}")),
            );
        }
        let rows = |part: &[usize], features: Vec<f64>| {
            Arc::new(rows_of(table, part, features, &preparation, standardise))
        };
        let plain = |part: &[usize]| prepared(table, part, &preparation);
        Ok(Self {
            features: width,
            train: rows(&parts.train, plain(&parts.train)),
            validation: rows(&parts.validation, plain(&parts.validation)),
            test: rows(&parts.test, test),
            target,
            preparation: preparation.clone(),
            constant: Vec::new(),
            absent: Vec::new(),
            columns,
        })
    }
}
