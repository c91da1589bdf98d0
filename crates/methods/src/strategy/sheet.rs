//! The sheet of a round: all contributions and, where asked for, the cross-evaluation.

use crate::params::Params;

/// One contribution, name off.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The contributed model (or summary).
    pub model: Params,
    /// The coalition whose model it started from; `None` if it had none yet.
    pub coalition: Option<u32>,
    /// Training rows, where the plan asks for weights.
    pub weight: Option<u64>,
    /// Whose it is, by place in the roster, where names are shown.
    pub member: Option<u16>,
}

/// Losses: row = whose data, column = whose model, both in bundle order. `n × n`, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    n: usize,
    values: Vec<f64>,
}

/// Why a table of numbers is not a score matrix.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScoresError {
    /// A row of the wrong length.
    #[error("row {row} has {got} scores, {expected} entries were to be scored")]
    Ragged {
        /// Which row, from 0.
        row: usize,
        /// Its length.
        got: usize,
        /// The number of rows.
        expected: usize,
    },
    /// A score that is not a finite number.
    #[error("the score in row {row}, column {column} is not finite")]
    NotFinite {
        /// Which row, from 0.
        row: usize,
        /// Which column, from 0.
        column: usize,
    },
}

impl Scores {
    /// Largest absolute score, which stands for all beyond it: leaves room to add up as many as
    /// there can be.
    pub const LARGEST: f64 = 1e100;

    /// A square matrix from its rows.
    ///
    /// # Errors
    /// [`ScoresError`] if a row has another length or a score is not finite.
    pub fn from_rows(rows: &[Vec<f64>]) -> Result<Self, ScoresError> {
        let n = rows.len();
        let mut values = Vec::with_capacity(n * n);
        for (row, scores) in rows.iter().enumerate() {
            if scores.len() != n {
                return Err(ScoresError::Ragged {
                    row,
                    got: scores.len(),
                    expected: n,
                });
            }
            if let Some(column) = scores.iter().position(|score| !score.is_finite()) {
                return Err(ScoresError::NotFinite { row, column });
            }
            // One absurd score must not cost everybody the round.
            let bounded = scores
                .iter()
                .map(|s| s.clamp(-Self::LARGEST, Self::LARGEST));
            values.extend(bounded);
        }
        Ok(Self { n, values })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Loss of entry `column`'s model on entry `row`'s data.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.n + column]
    }
}

/// Everything a decision may rest on: the entries and, if the plan asked for it, their scores.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// In bundle order (ascending entry id).
    pub entries: Vec<Entry>,
    /// Present exactly if the plan cross-evaluates.
    pub scores: Option<Scores>,
}
