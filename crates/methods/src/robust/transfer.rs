//! Robust transfer losses: every model on every silo's rows.

use rayon::prelude::*;

use super::{LinearModel, Loss, Norm, RobustError, Rows, validate_model, validate_radius};
use crate::matrix::Matrix;

/// One silo's part in the losses: whose data, and within which ball.
#[derive(Debug, Clone, Copy)]
pub struct Silo<'a> {
    /// Its rows.
    pub rows: &'a Rows,
    /// Radius of the ball around them, at least 0.
    pub radius: f64,
}

/// Why there are no transfer losses.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TransferError {
    /// Rows or a radius of a silo.
    #[error("silo {silo}: {error}")]
    Silo {
        /// Which silo, from 0.
        silo: usize,
        /// What is wrong with it.
        error: RobustError,
    },
    /// A model that is not finite, or not for as many features as the first one.
    #[error("model {model}: {error}")]
    Model {
        /// Which model, from 0.
        model: usize,
        /// What is wrong with it.
        error: RobustError,
    },
    /// Outputs beyond the largest number.
    #[error(
        "model {model} overflows on the rows of silo {silo}: standardise features, or leave the \
         model out"
    )]
    Overflow {
        /// Which silo, from 0.
        silo: usize,
        /// Which model, from 0.
        model: usize,
    },
}

/// The matrix `L_ij = sup E ℓ(θⱼ)` over the ball of silo `i`'s radius around its rows (CS-RCFL,
/// eq. (10)): `i`, the row, says whose data and radius; `j`, the column, whose model. It has
/// `silos.len() × models.len()` entries.
///
/// Rows of the matrix are computed in parallel, each entry by itself in one order, so the number
/// of threads does not change a bit.
///
/// # Errors
/// [`TransferError`]: models of different sizes or of another size than the rows, numbers that
/// are not finite, targets that are no labels, a negative radius, a label cost of 0 or less.
pub fn transfer(
    silos: &[Silo<'_>],
    models: &[LinearModel],
    loss: Loss,
    norm: Norm,
) -> Result<Matrix, TransferError> {
    let features = models.first().map_or(0, |model| model.weights.len());
    for (model, candidate) in models.iter().enumerate() {
        validate_model(candidate, features)
            .map_err(|error| TransferError::Model { model, error })?;
    }
    for (silo, Silo { rows, radius }) in silos.iter().enumerate() {
        let fits = || {
            validate_radius(*radius)?;
            loss.validate(rows)?;
            models
                .first()
                .map_or(Ok(()), |model| validate_model(model, rows.features()))
        };
        fits().map_err(|error| TransferError::Silo { silo, error })?;
    }
    let mut losses = Matrix::zeros(silos.len(), models.len());
    if models.is_empty() {
        return Ok(losses);
    }

    let slopes: Vec<f64> = models
        .iter()
        .map(|model| loss.slope(&model.weights, norm))
        .collect();
    let rows = losses.values_mut().par_chunks_mut(models.len());
    rows.zip(silos).for_each(|(row, silo)| {
        let mut buffer = Vec::with_capacity(silo.rows.len());
        for ((entry, model), &slope) in row.iter_mut().zip(models).zip(&slopes) {
            *entry = loss
                .score(silo.rows, model, slope, silo.radius, &mut buffer)
                .loss;
        }
    });

    let overflow = losses.values().iter().position(|loss| !loss.is_finite());
    overflow.map_or(Ok(losses), |at| {
        Err(TransferError::Overflow {
            silo: at / models.len(),
            model: at % models.len(),
        })
    })
}

#[cfg(test)]
mod tests;
