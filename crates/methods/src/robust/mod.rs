//! Exact distributionally robust losses of a fixed model within a Wasserstein ball.
//!
//! The worst expected loss over all distributions within Wasserstein distance `radius` of a
//! silo's rows: what CS-RCFL scores models by (Konti et al. 2024, eq. (10); the duality is
//! Esfahani & Kuhn 2018, Lemma 1 there). Both cases have closed answers, so nothing is iterated:
//! absolute loss by a norm, logistic loss by a sort.
//!
//! Data come in as residuals or margins, so that any model may be scored whose last step is
//! linear. The intercept is part of them and stays out of the norm. Norms measure features; with
//! features that are not standardised a radius has no scale.

mod linear;
mod logistic;

pub use linear::linear;
pub use logistic::logistic;

use serde::{Deserialize, Serialize};

/// The norm by which the distance of two feature vectors is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Sum of absolute values; its dual is the largest absolute value.
    L1,
    /// Euclidean; its own dual.
    #[default]
    L2,
    /// Largest absolute value; its dual is the sum of absolute values.
    Linf,
}

impl Norm {
    /// The dual norm of a vector: how fast a linear function with these weights can grow per unit
    /// of distance.
    pub fn dual(self, vector: impl IntoIterator<Item = f64>) -> f64 {
        let sizes = vector.into_iter().map(f64::abs);
        match self {
            Self::L1 => sizes.fold(0.0, f64::max),
            Self::L2 => sizes.map(|size| size * size).sum::<f64>().sqrt(),
            Self::Linf => sizes.sum(),
        }
    }
}

/// A worst-case expected loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RobustLoss {
    /// The largest expected loss within the ball.
    pub loss: f64,
    /// The plain mean loss, which is the robust one at radius 0.
    pub empirical: f64,
    /// The optimal multiplier λ* of the dual: what the next bit of radius costs.
    pub lambda: f64,
}

/// Why there is no robust loss.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RobustError {
    /// No rows.
    #[error("a robust loss needs at least one row")]
    Empty,
    /// A residual, margin or weight that is NaN or infinite.
    #[error("a robust loss needs finite predictions and weights")]
    NotFinite,
    /// A radius below 0 or not finite.
    #[error("the radius of a Wasserstein ball must be finite and at least 0, not {0}")]
    Radius(f64),
    /// A label cost that is not above 0.
    #[error("the cost of changing a label must be above 0 (or infinite), not {0}")]
    LabelCost(f64),
}

/// Refuses what would end in NaN.
fn validate(rows: &[f64], theta: &[f64], radius: f64) -> Result<(), RobustError> {
    if rows.is_empty() {
        return Err(RobustError::Empty);
    }
    if !rows.iter().chain(theta).all(|value| value.is_finite()) {
        return Err(RobustError::NotFinite);
    }
    if !radius.is_finite() || radius < 0.0 {
        return Err(RobustError::Radius(radius));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
