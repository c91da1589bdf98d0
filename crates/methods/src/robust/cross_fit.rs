//! What a silo's own way of fitting loses on rows that it has not seen.

use super::folds::FoldsError;
use super::{Folds, LinearModel, Loss, Norm, RobustError, Samples, robust_loss};

/// Why there is no out-of-fold loss.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CrossFitError<E> {
    /// Not a number of folds for these rows.
    #[error(transparent)]
    Folds(#[from] FoldsError),
    /// A fit failed.
    #[error("the fit without fold {fold}: {error}")]
    Fit {
        /// The fold that was left out, from 0.
        fold: usize,
        /// What its fit said.
        error: E,
    },
    /// A model could not be scored on its fold.
    #[error("fold {fold}: {error}")]
    Score {
        /// Which fold, from 0.
        fold: usize,
        /// What is wrong.
        error: RobustError,
    },
}

/// How a cross-fitted loss is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossFit {
    /// Radius of the ball around the rows of a fold, at least 0.
    pub radius: f64,
    /// The loss.
    pub loss: Loss,
    /// The norm that measures how far features move.
    pub norm: Norm,
    /// Number of folds, from 2 to the number of rows.
    pub folds: usize,
    /// Seed of the division into folds.
    pub seed: u64,
}

/// The mean out-of-fold robust loss of the models that `fit` makes of all folds but one, every
/// row counting once.
///
/// A model scores better on the rows it was fitted to than on others, so the coalition program
/// never prefers merging when the diagonal `L_ii` is in-sample. With this value in its place a
/// coalition can win.
///
/// # Errors
/// [`CrossFitError`]: impossible number of folds; a fit failed, or its model does not suit.
pub fn cross_fit<E>(
    rows: &Samples,
    how: &CrossFit,
    mut fit: impl FnMut(&Samples) -> Result<LinearModel, E>,
) -> Result<f64, CrossFitError<E>> {
    let splits = Folds::new(rows, how.loss, how.folds, how.seed)?.splits(rows);
    let mut sum = 0.0;
    for (fold, (seen, unseen)) in splits.iter().enumerate() {
        let model = fit(seen).map_err(|error| CrossFitError::Fit { fold, error })?;
        let robust = robust_loss(unseen, &model, how.radius, how.loss, how.norm)
            .map_err(|error| CrossFitError::Score { fold, error })?;
        sum += robust.loss * unseen.len() as f64;
    }
    Ok(sum / rows.len() as f64)
}

#[cfg(test)]
mod tests;
