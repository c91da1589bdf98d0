//! A table of counts of two columns, with χ² of independence.

use serde::{Deserialize, Serialize};

use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};

/// A table of counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Crosstab {
    /// The column whose agreed levels are the rows.
    pub rows: String,
    /// The column whose agreed levels are the columns.
    pub columns: String,
}

/// The counts as members see them. What is printed is suppressed first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrosstabOutcome {
    /// The column of the rows.
    pub row_column: String,
    /// Its levels, and last "(missing)": missing values and other levels.
    pub rows: Vec<String>,
    /// The column of the columns.
    pub column_column: String,
    /// Its levels, the same way.
    pub columns: Vec<String>,
    /// Counts, row by row.
    pub counts: Vec<Vec<f64>>,
    /// χ² of independence of known values; none where it is not defined.
    pub statistic: Option<f64>,
    /// Its degrees of freedom.
    pub freedom: f64,
}

impl SumKind for Crosstab {
    type Progress = ();
    type Outcome = CrosstabOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        Ok(vec![
            agreed.level(&self.rows)?,
            agreed.level(&self.columns)?,
        ])
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        Gates::default()
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<(), QuestionStopped> {
        Ok(())
    }

    fn layout(&self, known: &CommonKnowledge, (): &()) -> SumLayout {
        let [rows, columns] = sizes(known);
        SumLayout::default().counts(
            "cells",
            rows * columns,
            "rows in each cell, missing values in cells of their own",
        )
    }

    fn row_norm(&self, _known: &CommonKnowledge, (): &()) -> Option<f64> {
        // One cell.
        Some(1.0)
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        (): &(),
    ) -> Result<Vec<f64>, SiteRefusal> {
        let [height, width] = sizes(known);
        let mut counts = vec![0.0; height * width];
        for row in rows {
            let at = |value: CellValue, cells: usize| {
                value.known().map_or(cells - 1, |level| level as usize)
            };
            counts[at(row[0], height) * width + at(row[1], width)] += 1.0;
        }
        Ok(counts)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        (): &(),
        sum: &DecodedSum,
    ) -> Step<(), CrosstabOutcome> {
        let [height, width] = sizes(known);
        let counts: Vec<Vec<f64>> = sum
            .block("cells")
            .chunks_exact(width)
            .map(<[f64]>::to_vec)
            .collect();
        let (statistic, freedom) = chi_squared(&counts, height - 1, width - 1);
        let levels = |input: &QuestionInput| match input {
            QuestionInput::Level { levels, .. } => levels
                .iter()
                .cloned()
                .chain(["(missing)".to_owned()])
                .collect(),
            _ => Vec::new(),
        };
        Step::Done(CrosstabOutcome {
            row_column: self.rows.clone(),
            rows: levels(&known.inputs[0]),
            column_column: self.columns.clone(),
            columns: levels(&known.inputs[1]),
            counts,
            statistic,
            freedom,
        })
    }
}

/// Levels of both columns, and one for missing values.
fn sizes(known: &CommonKnowledge) -> [usize; 2] {
    let levels = |input: &QuestionInput| match input {
        QuestionInput::Level { levels, .. } => levels.len() + 1,
        _ => 1,
    };
    [levels(&known.inputs[0]), levels(&known.inputs[1])]
}

/// Pearson's χ² of the first rows and columns, without those that are empty.
fn chi_squared(counts: &[Vec<f64>], height: usize, width: usize) -> (Option<f64>, f64) {
    let row = |at: usize| counts[at][..width].iter().sum::<f64>();
    let column = |at: usize| counts[..height].iter().map(|row| row[at]).sum::<f64>();
    let rows: Vec<usize> = (0..height).filter(|at| row(*at) > 0.0).collect();
    let columns: Vec<usize> = (0..width).filter(|at| column(*at) > 0.0).collect();
    let freedom = (rows.len().saturating_sub(1) * columns.len().saturating_sub(1)) as f64;
    if freedom == 0.0 {
        return (None, 0.0);
    }
    let all: f64 = rows.iter().map(|at| row(*at)).sum();
    let mut sum = 0.0;
    for &r in &rows {
        for &c in &columns {
            let expected = row(r) * column(c) / all;
            let gap = counts[r][c] - expected;
            sum += gap * gap / expected;
        }
    }
    (Some(sum), freedom)
}
