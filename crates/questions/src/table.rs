//! A site's rows, and how the columns that a question names are read from them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::SiteRefusal;

/// The cells of one column; `None` is a missing one.
#[derive(Debug, Clone, PartialEq)]
pub enum CellColumn {
    /// Finite numbers.
    Numbers(Vec<Option<f64>>),
    /// Categories.
    Words(Vec<Option<String>>),
}

/// The rows of one site.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowTable {
    columns: BTreeMap<String, CellColumn>,
    rows: usize,
}

impl RowTable {
    /// A table of `rows` rows without columns.
    pub fn new(rows: usize) -> Self {
        Self {
            columns: BTreeMap::new(),
            rows,
        }
    }

    /// Adds a column.
    ///
    /// # Panics
    /// If it has another number of cells than the table has rows.
    pub fn insert(&mut self, name: &str, cells: CellColumn) {
        let len = match &cells {
            CellColumn::Numbers(cells) => cells.len(),
            CellColumn::Words(cells) => cells.len(),
        };
        assert_eq!(len, self.rows, "cells of column {name}");
        self.columns.insert(name.to_owned(), cells);
    }

    /// The table with one more column of numbers, none missing.
    #[must_use]
    pub fn with(mut self, name: &str, numbers: &[f64]) -> Self {
        let cells = numbers.iter().map(|number| Some(*number)).collect();
        self.insert(name, CellColumn::Numbers(cells));
        self
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }

    /// The cells of a column.
    pub fn cells(&self, name: &str) -> Option<&CellColumn> {
        self.columns.get(name)
    }

    fn column(&self, name: &str) -> Result<&CellColumn, SiteRefusal> {
        let lacks = || SiteRefusal::Column(name.to_owned());
        self.columns.get(name).ok_or_else(lacks)
    }

    /// Those of these rows for which all conditions hold; a missing cell fulfils none.
    ///
    /// # Errors
    /// If the site lacks a column, or it has categories where numbers are compared.
    pub fn filtered(&self, filter: &[Condition]) -> Result<Vec<usize>, SiteRefusal> {
        let mut kept: Vec<usize> = (0..self.rows).collect();
        for condition in filter {
            let cells = self.column(&condition.column)?;
            let holds = (0..self.rows).map(|row| condition.holds(cells, row));
            let holds = holds.collect::<Result<Vec<_>, _>>()?;
            kept.retain(|row| holds[*row] == Some(true));
        }
        Ok(kept)
    }

    /// The values of these inputs in the rows that a filter keeps, in an order that depends on the values alone.
    ///
    /// # Errors
    /// If the site lacks a column, or it has categories where numbers are needed.
    pub fn read(
        &self,
        filter: &[Condition],
        inputs: &[QuestionInput],
    ) -> Result<Vec<Vec<CellValue>>, SiteRefusal> {
        let kept = self.filtered(filter)?;
        let mut rows = self.values(&kept, inputs)?;
        rows.sort_by(|left, right| {
            let pairs = left.iter().zip(right);
            let mut orders = pairs.map(|(left, right)| left.order().total_cmp(&right.order()));
            orders
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        Ok(rows)
    }

    /// The values of these inputs in these rows, in their order.
    pub(crate) fn values(
        &self,
        rows: &[usize],
        inputs: &[QuestionInput],
    ) -> Result<Vec<Vec<CellValue>>, SiteRefusal> {
        let mut values = vec![Vec::with_capacity(inputs.len()); rows.len()];
        for input in inputs {
            let cells = self.column(input.column())?;
            for (row, at) in values.iter_mut().zip(rows) {
                row.push(input.value(cells, *at)?);
            }
        }
        Ok(values)
    }
}

impl RowTable {
    /// Returns whether all these inputs are known, by row.
    ///
    /// # Errors
    /// If the site lacks a column, or it has categories where numbers are needed.
    pub fn known(&self, inputs: &[QuestionInput]) -> Result<Vec<bool>, SiteRefusal> {
        let mut known = vec![true; self.rows];
        for input in inputs {
            let cells = self.column(input.column())?;
            for (row, known) in known.iter_mut().enumerate() {
                *known &= input.value(cells, row)?.known().is_some();
            }
        }
        Ok(known)
    }
}

/// Value of an input in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellValue {
    /// A number, or the number of a level.
    Known(f64),
    /// No value.
    Missing,
    /// Beyond the agreed range, or none of the agreed levels.
    Outside,
}

impl CellValue {
    /// The number, if it is known.
    pub fn known(self) -> Option<f64> {
        match self {
            Self::Known(number) => Some(number),
            Self::Missing | Self::Outside => None,
        }
    }

    fn order(self) -> f64 {
        match self {
            // So that 0 and −0 are one value.
            Self::Known(number) => number + 0.0,
            Self::Missing => f64::INFINITY,
            Self::Outside => f64::NAN,
        }
    }
}

/// The values of rows in which every input is known.
pub fn complete(rows: &[Vec<CellValue>]) -> Vec<Vec<f64>> {
    let known = |row: &Vec<CellValue>| row.iter().map(|value| value.known()).collect();
    rows.iter().filter_map(known).collect()
}

/// A number that a question takes from a row.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionInput {
    /// `(x − middle) / half` of an agreed range.
    Scaled {
        /// The column.
        column: String,
        /// The agreed range.
        range: [f64; 2],
    },
    /// The number itself, if it lies within these limits.
    Number {
        /// The column.
        column: String,
        /// The least and the largest value.
        range: [f64; 2],
    },
    /// 1 where the condition holds, else 0.
    Indicator(Condition),
    /// The number of a level, from 0.
    Level {
        /// The column.
        column: String,
        /// The agreed levels.
        levels: Vec<String>,
    },
}

impl QuestionInput {
    /// The column that is read.
    pub fn column(&self) -> &str {
        match self {
            Self::Scaled { column, .. }
            | Self::Number { column, .. }
            | Self::Level { column, .. } => column,
            Self::Indicator(condition) => &condition.column,
        }
    }

    /// By how much a value of 1 stands in the column's own unit: half of the agreed range, else 1.
    pub fn half(&self) -> f64 {
        match self {
            Self::Scaled { range, .. } => 0.5 * (range[1] - range[0]),
            Self::Number { .. } | Self::Indicator(_) | Self::Level { .. } => 1.0,
        }
    }

    /// The value of the column that 0 stands for.
    pub fn middle(&self) -> f64 {
        match self {
            Self::Scaled { range, .. } => 0.5 * (range[0] + range[1]),
            Self::Number { .. } | Self::Indicator(_) | Self::Level { .. } => 0.0,
        }
    }

    /// The least and the largest value that a row can have.
    pub(crate) fn bounds(&self) -> [f64; 2] {
        match self {
            Self::Scaled { .. } => [-1.0, 1.0],
            Self::Number { range, .. } => *range,
            Self::Indicator(_) => [0.0, 1.0],
            Self::Level { levels, .. } => [0.0, levels.len().saturating_sub(1) as f64],
        }
    }

    fn value(&self, cells: &CellColumn, row: usize) -> Result<CellValue, SiteRefusal> {
        let number = || match cells {
            CellColumn::Numbers(cells) => Ok(cells[row]),
            CellColumn::Words(_) => Err(SiteRefusal::Words(self.column().to_owned())),
        };
        let within = |number: f64, [low, high]: [f64; 2]| number >= low && number <= high;
        Ok(match self {
            Self::Scaled { range, .. } => match number()? {
                None => CellValue::Missing,
                Some(x) if within(x, *range) => CellValue::Known((x - self.middle()) / self.half()),
                Some(_) => CellValue::Outside,
            },
            Self::Number { range, .. } => match number()? {
                None => CellValue::Missing,
                Some(x) if within(x, *range) => CellValue::Known(x),
                Some(_) => CellValue::Outside,
            },
            Self::Indicator(condition) => match condition.holds(cells, row)? {
                None => CellValue::Missing,
                Some(holds) => CellValue::Known(f64::from(u8::from(holds))),
            },
            Self::Level { levels, .. } => {
                let of = |level: &String| is_level(cells, row, level);
                match levels.iter().position(|level| of(level) == Some(true)) {
                    Some(at) => CellValue::Known(at as f64),
                    None if is_level(cells, row, "").is_none() => CellValue::Missing,
                    None => CellValue::Outside,
                }
            }
        })
    }
}

/// Returns whether a cell is of a level; `None` if it is missing. Numbers are compared as numbers.
fn is_level(cells: &CellColumn, row: usize, level: &str) -> Option<bool> {
    match cells {
        CellColumn::Numbers(cells) => cells[row].map(|x| level.trim().parse() == Ok(x)),
        CellColumn::Words(cells) => cells[row].as_ref().map(|word| word == level),
    }
}

/// Comparison of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionSign {
    /// Of this level.
    Is,
    /// Of another level.
    IsNot,
    /// A number below.
    Below,
    /// A number below or equal.
    AtMost,
    /// A number above.
    Above,
    /// A number above or equal.
    AtLeast,
}

const SIGNS: [(&str, ConditionSign); 6] = [
    (" >= ", ConditionSign::AtLeast),
    (" <= ", ConditionSign::AtMost),
    (" != ", ConditionSign::IsNot),
    (" = ", ConditionSign::Is),
    (" > ", ConditionSign::Above),
    (" < ", ConditionSign::Below),
];

/// A condition on one column, such as `age >= 60` or `stage = IIA`, written with spaces around the sign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    /// The column.
    pub column: String,
    /// The comparison.
    pub comparison: ConditionSign,
    /// Value that a cell is compared with: a level, or a number.
    pub with: String,
}

impl Condition {
    /// The number that cells are compared with, if it is one.
    pub fn number(&self) -> Option<f64> {
        self.with
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    }

    /// Returns whether it holds in a row; `None` where the cell is missing.
    fn holds(&self, cells: &CellColumn, row: usize) -> Result<Option<bool>, SiteRefusal> {
        let level = is_level(cells, row, &self.with);
        match self.comparison {
            ConditionSign::Is => return Ok(level),
            ConditionSign::IsNot => return Ok(level.map(|is| !is)),
            ConditionSign::Below
            | ConditionSign::AtMost
            | ConditionSign::Above
            | ConditionSign::AtLeast => {}
        }
        let CellColumn::Numbers(cells) = cells else {
            return Err(SiteRefusal::Words(self.column.clone()));
        };
        let cut = self.number().unwrap_or(f64::NAN);
        Ok(cells[row].map(|x| match self.comparison {
            ConditionSign::Below => x < cut,
            ConditionSign::AtMost => x <= cut,
            ConditionSign::Above => x > cut,
            ConditionSign::AtLeast => x >= cut,
            ConditionSign::Is | ConditionSign::IsNot => x == cut,
        }))
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let at = |(sign, comparison): (&'static str, ConditionSign)| {
            text.rfind(sign).map(|at| (at, sign, comparison))
        };
        let Some((at, sign, comparison)) = SIGNS.into_iter().find_map(at) else {
            return Err(format!(
                "\"{text}\" is no condition: write COLUMN SIGN VALUE with spaces around the sign, such as \
                 \"age >= 60\"; signs are =, !=, <, <=, >, >="
            ));
        };
        let condition = Self {
            column: text[..at].trim().to_owned(),
            comparison,
            with: text[at + sign.len()..].trim().to_owned(),
        };
        let ordered = !matches!(comparison, ConditionSign::Is | ConditionSign::IsNot);
        if condition.column.is_empty()
            || condition.with.is_empty()
            || ordered && condition.number().is_none()
        {
            return Err(format!(
                "\"{text}\" is no condition: a column stands on the left, and a {} on the right",
                if ordered { "number" } else { "level" }
            ));
        }
        Ok(condition)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = SIGNS
            .iter()
            .find(|(_, comparison)| *comparison == self.comparison);
        let sign = sign.map_or(" = ", |(sign, _)| sign);
        write!(f, "{}{sign}{}", self.column, self.with)
    }
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn conditions_are_read_as_they_are_written() {
        for text in [
            "age >= 60",
            "stage = IIA",
            "morphology 8500/3 != 1",
            "a <= -1.5",
            "a < 2",
            "a > 0",
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), text);
        }
        for text in [
            "age",
            "age>60",
            "age >= sixty",
            " = 4",
            "age > inf",
            "age = ",
        ] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }

    #[test]
    fn missing_cells_fulfil_no_condition_and_not_its_opposite() {
        let mut table = RowTable::new(3);
        table.insert("x", CellColumn::Numbers(vec![Some(4.0), None, Some(5.0)]));
        let rows = |text: &str| table.filtered(&[text.parse().unwrap()]).unwrap();
        assert_eq!(rows("x = 4"), [0]);
        assert_eq!(rows("x != 4"), [2]);
        assert_eq!(rows("x = 4.0"), [0]);
    }

    #[test]
    fn values_beyond_the_agreed_range_are_outside_not_missing() {
        let mut table = RowTable::new(3);
        table.insert(
            "x",
            CellColumn::Numbers(vec![Some(10.0), None, Some(999.0)]),
        );
        let input = QuestionInput::Scaled {
            column: "x".into(),
            range: [0.0, 40.0],
        };
        let values: Vec<_> = table.read(&[], &[input]).unwrap().concat();
        assert_eq!(
            values,
            [
                CellValue::Known(-0.5),
                CellValue::Missing,
                CellValue::Outside
            ]
        );
    }

    #[test]
    fn words_are_no_numbers() {
        let mut table = RowTable::new(1);
        table.insert("w", CellColumn::Words(vec![Some("a".into())]));
        let found = table.filtered(&["w > 1".parse().unwrap()]);
        assert!(matches!(found, Err(SiteRefusal::Words(_))));
        assert_eq!(table.filtered(&["w = a".parse().unwrap()]).unwrap(), [0]);
        assert!(matches!(
            table.filtered(&["v = a".parse().unwrap()]),
            Err(SiteRefusal::Column(_))
        ));
    }
}
