//! Distributionally robust losses and fits of linear models within a Wasserstein ball.
//!
//! CS-RCFL scores a model by its worst expected loss over all distributions within Wasserstein
//! distance `radius` of a silo's rows (Konti et al. 2024, eq. (10); by the duality of Esfahani & Kuhn
//! 2018, Lemma 1 there). Both losses have closed forms: [`linear()`] (absolute loss) needs a norm,
//! [`logistic()`] a sort. The other modules:
//!
//! * [`fit`](mod@fit): the model with the least robust loss on a silo's own rows;
//! * [`ridge`]: fits by plain loss and a ridge, chosen by cross-validation;
//! * [`radius`]: chooses a radius, by cross-validation or by the number of rows; [`Radius`] is the
//!   configured rule;
//! * [`network`]: upper bounds of the robust losses of neural networks;
//! * [`cross_fit`](mod@cross_fit): out-of-fold robust losses of a silo's own fits;
//! * [`synthetic`]: generated hospitals whose true coalitions are known.
//!
//! A [`TransportCost`] measures the distances: a norm on the features, and the cost of changing a
//! label. Standardise the features, or a radius has no meaningful scale. The two losses take
//! residuals or margins, so any model with a linear last layer can be scored. The intercept is part
//! of the residuals and not of the norm.
//!
//! ```
//! use methods::robust::{FitConfig, RowLoss, Samples, TransportCost, fit, robust_loss};
//! use methods::Matrix;
//!
//! let (loss, cost) = (RowLoss::Logistic, TransportCost::default());
//! let config = FitConfig { loss, cost, ridge: 0.0, intercept: true };
//! // Two silos with opposite labels.
//! let features = Matrix::from_rows(&[[-2.0], [-0.5], [0.5], [2.0]])?;
//! let silos = [
//!     Samples::labelled(features.clone(), &[0.0, 0.0, 1.0, 1.0])?,
//!     Samples::labelled(features, &[1.0, 1.0, 0.0, 0.0])?,
//! ];
//! let own = |rows| fit(rows, 0.1, &config).map(|fit| fit.model);
//! let models = [own(&silos[0])?, own(&silos[1])?];
//!
//! let score = |silo: &Samples, model| robust_loss(silo, model, 0.1, loss, cost);
//! assert!(score(&silos[0], &models[0])?.loss < score(&silos[0], &models[1])?.loss);
//! assert!(score(&silos[1], &models[1])?.loss < score(&silos[1], &models[0])?.loss);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cholesky;
mod cost;
pub mod cross_fit;
pub mod fit;
pub mod folds;
mod linear;
mod logistic;
pub mod network;
pub mod radius;
pub mod ridge;
mod rule;
mod samples;
mod span;
mod succession;
pub mod synthetic;

pub use cost::{Norm, TransportCost};
pub use cross_fit::cross_fit;
pub use fit::{Fit, FitConfig, fit};
pub use folds::Folds;
pub use linear::linear;
pub use logistic::logistic;
pub use ridge::{Ridge, RidgeGrid};
pub use rule::{Radius, RadiusGrid, RadiusRuleError};
pub use samples::{LinearModel, Samples, SamplesError};
#[cfg(test)]
pub(crate) use succession::certainty_costs_one_row_more_of_each;
pub(crate) use succession::with_one_more_of_each;

use serde::{Deserialize, Serialize};

/// The loss on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowLoss {
    /// `|y − output|`; features and target may both move (see [`linear()`]).
    Absolute,
    /// `log(1 + exp(−y · output))` for labels `y` ±1; features move, and a label may change (see
    /// [`logistic()`]).
    Logistic,
}

impl RowLoss {
    /// The robust loss of `model` on valid rows.
    fn score(
        self,
        rows: &Samples,
        model: &LinearModel,
        radius: f64,
        cost: TransportCost,
    ) -> RobustLoss {
        let weights = model.weights.iter().copied();
        let each = rows.iter().map(|(x, y)| (model.output(x), y));
        match self {
            Self::Absolute => {
                let residuals: Vec<f64> = each.map(|(output, target)| target - output).collect();
                let slope = cost.norm.dual(weights.chain([1.0]));
                linear::of_residuals(&residuals, slope, radius)
            }
            Self::Logistic => {
                let mut margins: Vec<f64> = each.map(|(output, label)| label * output).collect();
                let slope = cost.norm.dual(weights);
                logistic::of_margins(&mut margins, slope, radius, cost.label_cost)
            }
        }
    }

    /// Refuses, for logistic loss, targets other than −1 and 1.
    fn validate(self, rows: &Samples) -> Result<(), RobustError> {
        match self {
            Self::Absolute => Ok(()),
            Self::Logistic => rows.must_be_labels(),
        }
    }
}

/// The robust loss of one model on one silo's rows, within the ball of `radius` (≥ 0, in the unit
/// of the features) around them (CS-RCFL, eq. (10)).
///
/// # Errors
/// [`RobustError`]: a model of another size than the rows, numbers that are not finite, a result
/// that overflows, targets other than −1 and 1 for logistic loss, a negative radius, a label cost of
/// 0 or less.
pub fn robust_loss(
    rows: &Samples,
    model: &LinearModel,
    radius: f64,
    loss: RowLoss,
    cost: TransportCost,
) -> Result<RobustLoss, RobustError> {
    validate_radius(radius)?;
    cost.validate()?;
    loss.validate(rows)?;
    validate_model(model, rows.features())?;
    let robust = loss.score(rows, model, radius, cost);
    if robust.loss.is_finite() {
        Ok(robust)
    } else {
        Err(RobustError::NotFinite)
    }
}

/// A worst-case expected loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RobustLoss {
    /// The largest expected loss within the ball.
    pub loss: f64,
    /// The mean loss on the rows as they are: the robust loss at radius 0.
    pub empirical: f64,
    /// The optimal multiplier λ* of the dual: the derivative of the robust loss in the radius.
    pub lambda: f64,
}

/// Errors of computing a robust loss.
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
    /// A target other than −1 and 1 where labels are needed.
    #[error("logistic loss needs labels −1 and 1, and row {row} has {label}")]
    Label {
        /// Number of the row, from 0.
        row: usize,
        /// Target of the row.
        label: f64,
    },
    /// A model for another number of features.
    #[error("a model with {weights} weights cannot score rows of {features} features")]
    Weights {
        /// Weights of the model.
        weights: usize,
        /// Features of the rows.
        features: usize,
    },
}

/// Refuses empty rows, values that are not finite, and an invalid radius.
fn validate(rows: &[f64], theta: &[f64], radius: f64) -> Result<(), RobustError> {
    if rows.is_empty() {
        return Err(RobustError::Empty);
    }
    if !rows.iter().chain(theta).all(|value| value.is_finite()) {
        return Err(RobustError::NotFinite);
    }
    validate_radius(radius)
}

/// Refuses a radius that is negative or not finite.
fn validate_radius(radius: f64) -> Result<(), RobustError> {
    if !radius.is_finite() || radius < 0.0 {
        return Err(RobustError::Radius(radius));
    }
    Ok(())
}

/// Refuses a model for another number of features, or with a value that is not finite.
fn validate_model(model: &LinearModel, features: usize) -> Result<(), RobustError> {
    let weights = model.weights.len();
    if weights != features {
        return Err(RobustError::Weights { weights, features });
    }
    if !model.intercept.is_finite() || !model.weights.iter().all(|weight| weight.is_finite()) {
        return Err(RobustError::NotFinite);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
