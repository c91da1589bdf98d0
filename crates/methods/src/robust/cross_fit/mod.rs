//! Out-of-fold robust losses of a silo's own fits.
//!
//! For experiments that start from finished models and need a diagonal of the loss table that is not
//! in-sample. Learners of the federation compute this themselves during cross-evaluation.

use super::folds::FoldsError;
use super::{Folds, LinearModel, RobustError, RowLoss, Samples, TransportCost, robust_loss};

/// Errors of an out-of-fold loss.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CrossFitError<E> {
    /// An impossible number of folds.
    #[error(transparent)]
    Folds(#[from] FoldsError),
    /// A fit failed.
    #[error("the fit without fold {fold}: {error}")]
    Fit {
        /// The fold that was left out, from 0.
        fold: usize,
        /// The error of its fit.
        error: E,
    },
    /// A model could not be scored on its fold.
    #[error("fold {fold}: {error}")]
    Score {
        /// Number of the fold, from 0.
        fold: usize,
        /// Cause of the failure.
        error: RobustError,
    },
}

/// Options of a cross-fitted loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossFit {
    /// Radius of the ball around the rows of a fold, at least 0.
    pub radius: f64,
    /// The loss.
    pub loss: RowLoss,
    /// The cost of moving a row.
    pub cost: TransportCost,
    /// Number of folds, from 2 to the number of rows.
    pub folds: usize,
    /// Seed of the partition into folds.
    pub seed: u64,
}

/// The mean out-of-fold robust loss of the models that `fit` returns for all folds but one; every row
/// counts once.
///
/// A model scores better on the rows it was fitted to than on others, so the coalition program
/// never prefers merging when the diagonal `L_ii` is in-sample. With this value on the diagonal it
/// can.
///
/// # Errors
/// [`CrossFitError`]: impossible number of folds; a fit failed; its model cannot be scored.
pub fn cross_fit<E>(
    rows: &Samples,
    how: &CrossFit,
    mut fit: impl FnMut(&Samples) -> Result<LinearModel, E>,
) -> Result<f64, CrossFitError<E>> {
    let splits = Folds::new(rows, how.loss, how.folds, how.seed)?.splits(rows);
    let mut sum = 0.0;
    for (fold, (seen, unseen)) in splits.iter().enumerate() {
        let model = fit(seen).map_err(|error| CrossFitError::Fit { fold, error })?;
        let robust = robust_loss(unseen, &model, how.radius, how.loss, how.cost)
            .map_err(|error| CrossFitError::Score { fold, error })?;
        sum += robust.loss * unseen.len() as f64;
    }
    Ok(sum / rows.len() as f64)
}

#[cfg(test)]
mod tests;
