//! Counts, means and standard deviations of columns, for all rows or by group.

use serde::{Deserialize, Serialize};

use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};

/// Means and standard deviations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Describe {
    /// Columns with agreed ranges, and conditions, whose mean is a proportion.
    pub columns: Vec<String>,
    /// A column whose agreed levels are described one by one.
    #[serde(default)]
    pub group: Option<String>,
}

/// One column in one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DescribedColumn {
    /// The column or condition.
    pub column: String,
    /// The level of the group; none for all rows.
    pub group: Option<String>,
    /// Rows of the group.
    pub rows: f64,
    /// Rows with a value within the agreed range.
    pub known: f64,
    /// The mean.
    pub mean: Option<f64>,
    /// The standard deviation, with n − 1.
    pub deviation: Option<f64>,
}

/// The described columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DescribeOutcome {
    /// Every column in every group.
    pub columns: Vec<DescribedColumn>,
}

impl Describe {
    fn group_of(&self, row: &[CellValue]) -> Option<usize> {
        if self.group.is_none() {
            return Some(0);
        }
        row.last()?.known().map(|level| level as usize)
    }

    fn groups(&self, known: &CommonKnowledge) -> usize {
        levels(known, self.group.as_deref()).map_or(1, <[String]>::len)
    }
}

/// The agreed levels of a group's column.
pub(super) fn levels<'a>(known: &'a CommonKnowledge, group: Option<&str>) -> Option<&'a [String]> {
    known.agreed.levels.get(group?).map(Vec::as_slice)
}

impl SumKind for Describe {
    type Progress = ();
    type Outcome = DescribeOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        if self.columns.is_empty() {
            return Err(QuestionError::Other(
                "name `columns` to describe".to_owned(),
            ));
        }
        let mut inputs = agreed.terms(&self.columns)?;
        if let Some(group) = &self.group {
            inputs.push(agreed.level(group)?);
        }
        Ok(inputs)
    }

    fn gates(&self, known: &CommonKnowledge) -> Gates {
        let groups = self.group.is_some().then(|| self.groups(known));
        Gates {
            groups: groups.unwrap_or(0),
            ..Gates::default()
        }
    }

    fn group(&self, _known: &CommonKnowledge, row: &[CellValue]) -> Option<usize> {
        self.group.is_some().then(|| self.group_of(row))?
    }

    fn group_column(&self) -> Option<&str> {
        self.group.as_deref()
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<(), QuestionStopped> {
        Ok(())
    }

    fn layout(&self, known: &CommonKnowledge, (): &()) -> SumLayout {
        let cells = self.groups(known) * self.columns.len();
        SumLayout::default()
            .counts("known", cells, "rows with a value, by group and column")
            .reals("sum", cells, "sum of values scaled to ±1")
            .reals("squares", cells, "sum of squared scaled values")
    }

    fn row_norm(&self, _known: &CommonKnowledge, (): &()) -> Option<f64> {
        // 1, u and u² of every column, with |u| ≤ 1.
        Some((3.0 * self.columns.len() as f64).sqrt())
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        (): &(),
    ) -> Result<Vec<f64>, SiteRefusal> {
        let (groups, columns) = (self.groups(known), self.columns.len());
        let cells = groups * columns;
        let mut numbers = vec![0.0; 3 * cells];
        for row in rows {
            let Some(group) = self.group_of(row) else {
                continue;
            };
            for (column, value) in row[..columns].iter().enumerate() {
                if let Some(u) = value.known() {
                    let at = group * columns + column;
                    numbers[at] += 1.0;
                    numbers[cells + at] += u;
                    numbers[2 * cells + at] += u * u;
                }
            }
        }
        Ok(numbers)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        (): &(),
        sum: &DecodedSum,
    ) -> Step<(), DescribeOutcome> {
        let levels = levels(known, self.group.as_deref());
        let columns = self.columns.len();
        let described = (0..self.groups(known) * columns).map(|at| {
            let (group, column) = (at / columns, at % columns);
            let input = &known.inputs[column];
            let n = sum.block("known")[at];
            let (first, second) = (sum.block("sum")[at], sum.block("squares")[at]);
            let mean = first / n;
            let variance = ((second - first * mean) / (n - 1.0)).max(0.0);
            DescribedColumn {
                column: self.columns[column].clone(),
                group: levels.map(|levels| levels[group].clone()),
                rows: known
                    .counts
                    .groups
                    .get(group)
                    .copied()
                    .unwrap_or(known.counts.rows),
                known: n,
                mean: (n > 0.0).then(|| input.middle() + input.half() * mean),
                deviation: (n > 1.0).then(|| input.half() * variance.sqrt()),
            }
        });
        Step::Done(DescribeOutcome {
            columns: described.collect(),
        })
    }
}
