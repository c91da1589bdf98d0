//! The manifest of a round: all contributions and, where asked for, the cross-evaluation.

use super::{DecideError, SettleError};
use crate::params::Params;

/// One contribution of a manifest.
#[derive(Debug, Clone)]
pub struct ModelEntry {
    /// The contributed model (or summary).
    pub model: Params,
    /// The coalition whose model it started from; `None` if it had none yet.
    pub coalition: Option<u32>,
    /// Training rows, where the plan asks for weights.
    pub weight: Option<u64>,
    /// Position of its member in the roster, where names are shown.
    pub member: Option<u16>,
}

/// Losses of a cross-evaluation, `n × n`, row-major: the row is whose data, the column whose model,
/// both in the order of the contribution list.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    n: usize,
    values: Vec<f64>,
}

/// Reason for which a table of numbers is not a score matrix.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScoresError {
    /// A row of the wrong length.
    #[error("row {row} has {got} scores, expected one for each of {expected} entries")]
    Ragged {
        /// Number of the row, from 0.
        row: usize,
        /// Length of the row.
        got: usize,
        /// The number of rows.
        expected: usize,
    },
    /// A score that is not a finite number.
    #[error("the score in row {row}, column {column} is not finite")]
    NotFinite {
        /// Row of the score, from 0.
        row: usize,
        /// Column of the score, from 0.
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
            // One absurd score must not cost all members the round.
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

    /// Returns whether there is no entry.
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
pub struct LoadedManifest {
    /// In the order of the contribution list (ascending entry id).
    pub entries: Vec<ModelEntry>,
    /// Present exactly if the plan cross-evaluates.
    pub scores: Option<Scores>,
}

impl ModelEntry {
    /// Refuses a contribution without its number of training rows, where that is asked for.
    ///
    /// # Errors
    /// In one sentence, what is missing.
    pub fn admit_rows(&self, asked: bool) -> Result<(), String> {
        match self.weight {
            None | Some(0) if asked => Err("the number of training rows is missing".into()),
            _ => Ok(()),
        }
    }

    /// The weight of the entry in a mean: its rows, or as much as any other.
    pub fn share(&self, by_rows: bool) -> f64 {
        match self.weight {
            Some(rows) if by_rows => rows as f64,
            _ => 1.0,
        }
    }
}

impl LoadedManifest {
    /// Refuses a manifest without entries.
    ///
    /// # Errors
    /// [`DecideError::NoEntries`].
    pub fn not_empty(&self) -> Result<(), DecideError> {
        if self.entries.is_empty() {
            Err(DecideError::NoEntries)
        } else {
            Ok(())
        }
    }

    /// Refuses a manifest without entries, or with an entry without its number of training rows.
    ///
    /// # Errors
    /// [`DecideError::NoEntries`], [`DecideError::NoWeight`].
    pub fn require_rows(&self) -> Result<(), DecideError> {
        self.not_empty()?;
        let without = |entry: &ModelEntry| entry.weight.is_none_or(|rows| rows == 0);
        match self.entries.iter().position(without) {
            Some(entry) => Err(DecideError::NoWeight { entry }),
            None => Ok(()),
        }
    }

    /// The scores, one row and one column for every entry; there is at least one.
    ///
    /// # Errors
    /// [`DecideError::NoEntries`], [`DecideError::NoScores`], [`DecideError::Scores`].
    pub fn require_scores(&self) -> Result<&Scores, DecideError> {
        self.not_empty()?;
        let scores = self.scores.as_ref().ok_or(DecideError::NoScores)?;
        let (entries, scored) = (self.entries.len(), scores.len());
        if scored == entries {
            Ok(scores)
        } else {
            Err(DecideError::Scores { entries, scored })
        }
    }

    /// Refuses an assignment that has not one number for every entry.
    ///
    /// # Errors
    /// [`SettleError::Mismatch`].
    pub fn fits(&self, assignment: &[u32]) -> Result<(), SettleError> {
        let (assigned, entries) = (assignment.len(), self.entries.len());
        if assigned == entries {
            Ok(())
        } else {
            Err(SettleError::Mismatch { assigned, entries })
        }
    }
}
