//! Samples (rows of features with a target each) and linear models.

use super::RobustError;
use crate::learner::together;
use crate::matrix::Matrix;

/// The rows of a silo: features and one target each. There is at least one row and one feature, and
/// all numbers are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    features: Matrix,
    targets: Vec<f64>,
    /// The group of every row, such as the patient; empty where rows have none.
    groups: Vec<u32>,
}

/// Errors of creating samples.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SamplesError {
    /// No rows, or no features.
    #[error("data must have at least one row and one feature, not {rows} × {features}")]
    Empty {
        /// Rows of the matrix of features.
        rows: usize,
        /// Columns of the matrix of features.
        features: usize,
    },
    /// Another number of targets than of rows.
    #[error("{rows} rows of features come with {targets} targets: give one target per row")]
    Targets {
        /// Rows of the matrix of features.
        rows: usize,
        /// Targets.
        targets: usize,
    },
    /// NaN or an infinity.
    #[error("row {row} holds a number that is not finite: fill or drop it first")]
    NotFinite {
        /// Number of the row, from 0.
        row: usize,
    },
    /// A label other than 0, 1 and −1, or labels with both 0 and −1.
    #[error("row {row} has the label {label}: labels are all of −1 and 1, or all of 0 and 1")]
    Label {
        /// Number of the row, from 0.
        row: usize,
        /// Label of the row.
        label: f64,
    },
}

impl Samples {
    /// From features (one row of the matrix per row) and one target per row: any number for
    /// regression, ±1 for classification.
    ///
    /// # Errors
    /// [`SamplesError`]: empty, not one target per row, not finite.
    pub fn new(features: Matrix, targets: Vec<f64>) -> Result<Self, SamplesError> {
        let (rows, columns) = (features.rows(), features.columns());
        if rows == 0 || columns == 0 {
            let features = columns;
            return Err(SamplesError::Empty { rows, features });
        }
        if targets.len() != rows {
            let targets = targets.len();
            return Err(SamplesError::Targets { rows, targets });
        }
        let finite = |row: usize| {
            targets[row].is_finite() && features.row(row).iter().all(|value| value.is_finite())
        };
        match (0..rows).find(|&row| !finite(row)) {
            Some(row) => Err(SamplesError::NotFinite { row }),
            None => Ok(Self {
                features,
                targets,
                groups: Vec::new(),
            }),
        }
    }

    /// The rows in groups, those of equal numbers of one group: they stay together when rows are
    /// divided into folds. Without a number for every row each is by itself.
    #[must_use]
    pub fn with_groups(mut self, groups: &[u32]) -> Self {
        self.groups = if groups.len() == self.len() {
            groups.to_vec()
        } else {
            Vec::new()
        };
        self
    }

    /// The rows of every group, in the order of their first rows; every row by itself where there are no
    /// groups.
    pub fn together(&self) -> Vec<Vec<usize>> {
        together(&self.groups, self.len())
    }

    /// From features and labels for classification; labels may be 0 and 1 or −1 and 1, and are
    /// stored as ±1.
    ///
    /// # Errors
    /// [`SamplesError`]: as for [`new`](Self::new), or an invalid label.
    pub fn labelled(features: Matrix, labels: &[f64]) -> Result<Self, SamplesError> {
        Self::new(features, signs(labels)?)
    }

    /// Number of rows, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "they are never empty")]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Number of features, at least 1.
    pub fn features(&self) -> usize {
        self.features.columns()
    }

    /// Every row's features and target.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        (0..self.len()).map(|row| (self.features.row(row), self.targets[row]))
    }

    /// Every row's target.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }

    /// The rows with other targets, one for each.
    ///
    /// # Errors
    /// [`SamplesError`]: not one target per row, not finite.
    pub fn with_targets(&self, targets: Vec<f64>) -> Result<Self, SamplesError> {
        Ok(Self::new(self.features.clone(), targets)?.with_groups(&self.groups))
    }

    /// The rows with other features, as many rows; `None` where they are not finite.
    pub(super) fn with_features(&self, features: Matrix) -> Option<Self> {
        let rows = Self::new(features, self.targets.clone()).ok()?;
        Some(rows.with_groups(&self.groups))
    }

    /// The rows at the given positions, in that order.
    ///
    /// # Panics
    /// If `rows` is empty or names a row that does not exist.
    pub fn select(&self, rows: &[usize]) -> Self {
        assert!(!rows.is_empty(), "a selection has at least one row");
        Self {
            features: Matrix::from_fn(rows.len(), self.features(), |row, column| {
                self.features[(rows[row], column)]
            }),
            targets: rows.iter().map(|&row| self.targets[row]).collect(),
            groups: if self.groups.is_empty() {
                Vec::new()
            } else {
                rows.iter().map(|&row| self.groups[row]).collect()
            },
        }
    }

    /// Refuses targets that are not ±1.
    pub(super) fn must_be_labels(&self) -> Result<(), RobustError> {
        let other = self.targets.iter().position(|target| target.abs() != 1.0);
        other.map_or(Ok(()), |row| {
            let label = self.targets[row];
            Err(RobustError::Label { row, label })
        })
    }
}

/// Labels of 0 and 1, or of −1 and 1, as −1 and 1.
fn signs(labels: &[f64]) -> Result<Vec<f64>, SamplesError> {
    let low = if labels.contains(&-1.0) { -1.0 } else { 0.0 };
    let sign = |(row, &label): (usize, &f64)| match label {
        1.0 => Ok(1.0),
        label if label == low => Ok(-1.0),
        label => Err(SamplesError::Label { row, label }),
    };
    labels.iter().enumerate().map(sign).collect()
}

/// A model whose output is `weights · x + intercept`: a prediction, or the logit of the label 1.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    /// One weight per feature: θ.
    pub weights: Vec<f64>,
    /// The intercept, not counted in norms; 0 for models without.
    pub intercept: f64,
}

impl LinearModel {
    /// The output for one row.
    ///
    /// * `features`: as many as weights; the rest of the longer of the two is ignored.
    pub fn output(&self, features: &[f64]) -> f64 {
        let terms = self.weights.iter().zip(features);
        terms.fold(self.intercept, |sum, (weight, feature)| {
            sum + weight * feature
        })
    }
}
