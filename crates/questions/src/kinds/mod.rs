//! The kinds of questions, one module each: layout, what a site computes, and the step.

pub mod baselines;
pub mod correlate;
pub mod cox;
pub mod crosstab;
pub mod describe;
pub mod glm;
pub mod km;
pub mod logrank;
pub mod meta;
pub mod mixed;
pub mod quantiles;
pub mod trees;

use serde::{Deserialize, Serialize};

/// An agreed grid of times: cell j holds the times above (j−1)·step and up to j·step, cell 0 those up to 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimeGrid {
    /// Width of a cell, above 0, in the unit of the times.
    pub step: f64,
    /// The last cell that is reported; events after it are counted as censored.
    pub cells: usize,
}

/// Most cells of a grid.
const MOST_CELLS: usize = 10_000;

impl TimeGrid {
    /// The cell of a time: 0 to `cells`, or `cells` + 1 beyond the grid.
    pub fn cell(self, time: f64) -> usize {
        let cell = (time.max(0.0) / self.step).ceil();
        // A quotient that rounding lifted above a whole number.
        let cell = if cell >= 1.0 && (cell - 1.0) * self.step >= time {
            cell - 1.0
        } else {
            cell
        };
        if cell > self.cells as f64 {
            self.cells + 1
        } else {
            cell as usize
        }
    }

    /// The time at the end of a cell.
    pub fn time(self, cell: usize) -> f64 {
        cell as f64 * self.step
    }

    pub(crate) fn check(self) -> Result<Self, crate::QuestionError> {
        if self.step > 0.0 && self.step.is_finite() && (1..=MOST_CELLS).contains(&self.cells) {
            return Ok(self);
        }
        Err(crate::QuestionError::Other(format!(
            "a grid needs a step above 0 and 1 to {MOST_CELLS} cells, found step {} and {} cells",
            self.step, self.cells
        )))
    }
}
