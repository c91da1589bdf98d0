//! The schema of a task: what the rows of every institution have in common.
//!
//! A [`Schema`] lists the feature columns in order, each with its type, unit, range or levels and
//! the rule for missing values, and the column to predict with all its values. It is part of the
//! agreement, so it is part of the federation's id. Every institution reads its own files by these
//! names; [`LocalNames`] maps columns and codes that have other names there. A file that does not
//! fit is refused with the row, the column and what to do.
//!
//! A row becomes numbers in this order: number columns as they are, then every category column as
//! one column of 0 and 1 per level but the first, then one column of 0 and 1 for every column whose
//! missing values get an indicator. A column of dates becomes the number of days, or parts of the
//! calendar, some of which are numbers and others levels.

mod absent;
mod censored;
mod column;
mod dated;
mod day;
mod encoding;
mod feature;
mod filter;
mod local;
mod measured;
mod part;
mod remedy;
mod row;
mod survival;
mod target;
mod written;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::feature::SHARE;
use crate::data::{DataError, Target, number, same_class};

pub use censored::Censored;
pub use column::merged;
pub use column::{
    ColumnNames, ColumnType, FeatureColumns, LEVEL, Levels, MissingRule, Quantity, ReadCells,
};
pub use day::{DateForm, Day, Days};
pub use feature::{ColumnFeature, FeatureValues};
pub use filter::Filter;
pub use local::{LocalNames, OPEN};
pub use measured::MeasuredColumn;
pub use part::DatePart;
pub use row::{FileLayout, ReadRow};
pub use target::WrittenTarget;
pub use target::{ClassValues, TargetColumn};

/// What the rows of every institution have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Schema {
    /// The column to predict.
    pub target: TargetColumn,
    /// Fewest rows that an institution may bring, after rows were left out; 2 by default. With noise one that
    /// has fewer is told so at home and takes part, because staying away would tell of its rows.
    #[serde(default = "min_rows")]
    #[schemars(range(min = 2), extend("x-unit" = "rows"))]
    pub min_rows: usize,
    /// Conditions that a row must meet to be used, such as `"age >= 18"` or `"ward = general"`; a
    /// row without a value there is left out. None by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<Filter>,
    /// The column whose values are subgroups of the rows, such as the patient's gender, by which reports
    /// can measure. It need not be a feature. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgroup: Option<String>,
    /// By column, between which numbers most values of the table lie that the schema was drafted from,
    /// roughly. Whoever joins is told where its own are far from that, such as in another unit. None by
    /// default.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub usual: BTreeMap<String, [f64; 2]>,
    /// The columns to learn from, one table `[[task.table.schema.feature]]` for each, in order.
    #[serde(rename = "feature")]
    pub features: Vec<FeatureColumns>,
}

fn min_rows() -> usize {
    2
}

/// One number of an encoded row.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedColumn {
    /// Name of the number: that of the [feature](ColumnFeature), `feature=level`, or `column is missing`.
    pub name: String,
    /// Replacement of a missing value; [`Fill::Mean`] where none can be missing.
    pub fill: Fill,
    /// The smallest and largest number that are agreed on; 0 and 1 for a level or a missing value.
    pub range: Option<[f64; 2]>,
}

/// The number that takes the place of a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// The mean of the silo's training rows.
    Mean,
    /// The median of the silo's training rows.
    Median,
    /// The middle of the agreed range.
    Middle,
}

impl Schema {
    /// The schema of rows that are written as the numbers that they were encoded to; empty cells
    /// where one is missing.
    pub fn of_encoded(columns: &[EncodedColumn], target: &Target) -> Self {
        // Ranges by which all numbers can be scaled, or none.
        let ranges = columns.iter().all(|column| column.range.is_some());
        let feature = |column: &EncodedColumn| {
            let missing = match column.fill {
                Fill::Mean => MissingRule::Mean,
                Fill::Median => MissingRule::Median,
                Fill::Middle if ranges => MissingRule::Middle,
                Fill::Middle => MissingRule::Mean,
            };
            let numbers = FeatureColumns::numbers(column.name.as_str().into());
            let range = column.range.filter(|_| ranges);
            let kind = ColumnType::Number(Quantity {
                range,
                ..Quantity::default()
            });
            FeatureColumns {
                missing,
                kind,
                ..numbers
            }
        };
        Self {
            target: TargetColumn::of(target),
            min_rows: min_rows(),
            only: Vec::new(),
            subgroup: None,
            usual: BTreeMap::new(),
            features: merged(columns.iter().map(feature)),
        }
    }

    /// Returns whether the schema can be used.
    ///
    /// # Errors
    /// [`DataError::Config`]: the first contradiction in it.
    pub fn check(&self) -> Result<(), DataError> {
        let fail = |text: String| Err(DataError::Config(format!("the schema: {text}")));
        if self.names().next().is_none() {
            return fail("it has no `feature`".into());
        }
        let mut seen: Vec<&str> = Vec::new();
        for name in self.names().chain(self.target.name.iter()) {
            if name.trim().is_empty() {
                return fail("a column has an empty name".into());
            }
            seen.push(name);
        }
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return fail(format!("the column {:?} is named twice", twice[0]));
        }
        for feature in &self.features {
            feature.check().or_else(fail)?;
        }
        self.check_encoded().or_else(fail)?;
        self.target.check().or_else(fail)?;
        if let Some((name, _)) = self
            .usual
            .iter()
            .find(|(_, [low, high])| low.partial_cmp(high).is_none_or(std::cmp::Ordering::is_gt))
        {
            return fail(format!(
                "`usual` of {name:?} needs two numbers, the smaller one first"
            ));
        }
        if self.min_rows < 2 {
            return fail("`min-rows` must be at least 2: one to train, one to test".into());
        }
        Ok(())
    }

    /// Returns whether every number of a row has a name of its own.
    fn check_encoded(&self) -> Result<(), String> {
        let encoded = self.encoded().into_iter().map(|column| column.name);
        let mut names: Vec<String> = encoded
            .chain(self.target.name.iter().map(str::to_owned))
            .collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(format!(
                "two columns become a number of the name {:?}: give one of them another name",
                twice[0]
            )),
            None => Ok(()),
        }
    }

    /// Names of the feature columns, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.features.iter().flat_map(|feature| feature.name.iter())
    }

    /// The features one by one, in order, each with the description that it shares with others.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &FeatureColumns)> {
        self.features
            .iter()
            .flat_map(|feature| feature.name.iter().map(move |name| (name, feature)))
    }

    /// The numbers that a row becomes.
    pub fn encoded(&self) -> Vec<EncodedColumn> {
        let column = |name: String, feature: &FeatureColumns, range| EncodedColumn {
            name,
            fill: match feature.missing {
                MissingRule::Median => Fill::Median,
                MissingRule::Middle | MissingRule::MiddleIndicator => Fill::Middle,
                MissingRule::Mean
                | MissingRule::Indicator
                | MissingRule::Refuse
                | MissingRule::Drop => Fill::Mean,
            },
            range,
        };
        let (mut numbers, mut levels, mut indicators) = (Vec::new(), Vec::new(), Vec::new());
        for (name, feature) in self.columns() {
            for part in feature.kind.features(name) {
                let into = match part.values {
                    FeatureValues::Number { .. } => &mut numbers,
                    FeatureValues::Levels(_) => &mut levels,
                };
                let all = part.numbers().into_iter();
                into.extend(all.map(|name| column(name, feature, part.range())));
            }
            if feature.missing.marks() {
                let name = format!("{name} is missing");
                indicators.push(column(name, feature, Some(SHARE)));
            }
        }
        numbers.append(&mut levels);
        numbers.append(&mut indicators);
        numbers
    }

    /// The positions of the first number of every column among the [encoded](Self::encoded) ones: a missing
    /// cell is missing in all numbers of its column.
    pub fn first_numbers(&self) -> Vec<usize> {
        let count = |(_, feature): (&str, &FeatureColumns)| {
            let (mut numbers, mut levels) = (0, 0);
            for part in feature.kind.features("") {
                match part.values {
                    FeatureValues::Number { .. } => numbers += 1,
                    FeatureValues::Levels(all) => levels += all.len().saturating_sub(1),
                }
            }
            (numbers, levels)
        };
        let counts: Vec<(usize, usize)> = self.columns().map(count).collect();
        let mut next: (usize, usize) = (0, counts.iter().map(|(numbers, _)| numbers).sum());
        let first = |(numbers, levels): (usize, usize)| {
            let at = if numbers > 0 { next.0 } else { next.1 };
            next = (next.0 + numbers, next.1 + levels);
            at
        };
        counts.into_iter().map(first).collect()
    }

    /// The values that are agreed on by name, by column.
    pub(crate) fn agreed_values(&self) -> BTreeMap<&str, Vec<&str>> {
        let levels = self
            .columns()
            .filter_map(|(name, feature)| match feature.kind.cells() {
                ReadCells::Numbers { .. } | ReadCells::Days(_) => None,
                ReadCells::Levels(Levels { listed, .. }) => {
                    Some((name, listed.iter().map(String::as_str).collect()))
                }
            });
        let classes = self.target.classes.iter().flatten();
        let classes = classes.flat_map(|class| class.values().iter().map(String::as_str));
        let classes: Vec<&str> = classes.collect();
        let target = self.target.name.iter().map(|name| (name, classes.clone()));
        levels.chain(target).collect()
    }

    /// Returns whether a cell of this column may hold such a value.
    pub fn allows(&self, column: &str, value: &str) -> bool {
        let feature = self.columns().find(|(name, _)| *name == column);
        let numbers = match feature.map(|(_, feature)| feature.kind.cells()) {
            Some(ReadCells::Levels(levels)) => {
                return levels.other || levels.listed.iter().any(|level| level == value);
            }
            Some(ReadCells::Days(_)) => return DateForm::day(None, value).is_some(),
            Some(ReadCells::Numbers { .. }) => true,
            None => false,
        };
        if self.target.survival && self.target.name.iter().next() == Some(column) {
            return same_class(value, "0") || same_class(value, "1");
        }
        match &self.target.classes {
            Some(classes) if self.target.name.iter().any(|name| name == column) => classes
                .iter()
                .flat_map(ClassValues::values)
                .any(|allowed| same_class(allowed, value)),
            // A column of a condition may hold anything.
            _ if !numbers && !self.target.name.iter().any(|name| name == column) => true,
            _ => number(value).is_some(),
        }
    }

    /// Returns what is predicted.
    pub fn target(&self) -> Target {
        self.target.kind()
    }
}

#[cfg(test)]
mod tests;
