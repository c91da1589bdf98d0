//! Distributionally robust losses and fits of linear models within a Wasserstein ball.
//!
//! The worst expected loss over all distributions within Wasserstein distance `radius` of a
//! silo's rows: what CS-RCFL scores models by (Konti et al. 2024, eq. (10); the duality is
//! Esfahani & Kuhn 2018, Lemma 1 there). Both losses have closed answers, so nothing is iterated:
//! [`linear()`] (absolute loss) by a norm, [`logistic()`] by a sort. Around these:
//!
//! * [`fit`](mod@fit): the model of least robust loss on a silo's own rows;
//! * [`radius`]: which radius, by cross-validation or by the number of rows; [`Radius`] is the rule
//!   that a silo is given;
//! * [`network`]: upper bounds for networks, where a linear model would have exact answers;
//! * [`cross_fit`](mod@cross_fit): what a silo's own way of fitting loses on rows it has not seen;
//! * [`synthetic`]: hospitals whose true coalitions are known.
//!
//! The two losses take residuals or margins, so that any model may be scored whose last step is
//! linear. The intercept is part of them and stays out of the norm. Norms measure features; with
//! features that are not standardised a radius has no scale.
//!
//! ```
//! use methods::robust::{FitConfig, Loss, Norm, Samples, fit, robust_loss};
//! use methods::Matrix;
//!
//! let loss = Loss::Logistic { label_cost: 1.0 };
//! let config = FitConfig { loss, norm: Norm::L2, ridge: 0.0, intercept: true };
//! // Two silos, of which the second has learned the opposite.
//! let features = Matrix::from_rows(&[[-2.0], [-0.5], [0.5], [2.0]])?;
//! let silos = [
//!     Samples::labelled(features.clone(), &[0.0, 0.0, 1.0, 1.0])?,
//!     Samples::labelled(features, &[1.0, 1.0, 0.0, 0.0])?,
//! ];
//! let own = |rows| fit(rows, 0.1, &config).map(|fit| fit.model);
//! let models = [own(&silos[0])?, own(&silos[1])?];
//!
//! let score = |silo: &Samples, model| robust_loss(silo, model, 0.1, loss, Norm::L2);
//! assert!(score(&silos[0], &models[0])?.loss < score(&silos[0], &models[1])?.loss);
//! assert!(score(&silos[1], &models[1])?.loss < score(&silos[1], &models[0])?.loss);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cross_fit;
pub mod fit;
pub mod folds;
mod linear;
mod logistic;
pub mod network;
pub mod radius;
mod rule;
mod samples;
pub mod synthetic;

pub use cross_fit::cross_fit;
pub use fit::{Fit, FitConfig, fit};
pub use folds::Folds;
pub use linear::linear;
pub use logistic::logistic;
pub use rule::{Radius, RadiusGrid, RadiusRuleError};
pub use samples::{LinearModel, Samples, SamplesError};

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

/// What is lost on a row, and how far rows may move.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", deny_unknown_fields, rename_all = "kebab-case")]
pub enum Loss {
    /// `|y − output|`; features and target move together (see [`linear()`]).
    Absolute,
    /// `log(1 + exp(−y · output))` for labels `y` ±1; features move, and a label may change (see
    /// [`logistic()`]).
    Logistic {
        /// κ, what changing a label costs: above 0; infinite where labels are certain.
        #[serde(rename = "label-cost")]
        label_cost: f64,
    },
}

impl Loss {
    /// How fast the loss can grow per unit of distance: `‖(−θ, 1)‖*` or `‖θ‖*`.
    fn slope(self, weights: &[f64], norm: Norm) -> f64 {
        let weights = weights.iter().copied();
        match self {
            Self::Absolute => norm.dual(weights.chain([1.0])),
            Self::Logistic { .. } => norm.dual(weights),
        }
    }

    /// The robust loss of `model`, whose [`slope`](Self::slope) is given, on fitting rows.
    /// `buffer` is working space whose content does not matter.
    fn score(
        self,
        rows: &Samples,
        model: &LinearModel,
        slope: f64,
        radius: f64,
        buffer: &mut Vec<f64>,
    ) -> RobustLoss {
        buffer.clear();
        let each = rows.iter().map(|(x, y)| (model.output(x), y));
        match self {
            Self::Absolute => {
                buffer.extend(each.map(|(output, target)| target - output));
                linear::of_residuals(buffer, slope, radius)
            }
            Self::Logistic { label_cost } => {
                buffer.extend(each.map(|(output, label)| label * output));
                logistic::of_margins(buffer, slope, radius, label_cost)
            }
        }
    }

    /// Refuses an impossible label cost, and rows whose targets are no labels where they must be.
    fn validate(self, rows: &Samples) -> Result<(), RobustError> {
        match self {
            Self::Absolute => Ok(()),
            Self::Logistic { label_cost } => {
                logistic::validate_label_cost(label_cost)?;
                rows.must_be_labels()
            }
        }
    }
}

/// The robust loss of one model on one silo's rows, within the ball of `radius` (≥ 0, in the unit
/// of the features) around them (CS-RCFL, eq. (10)).
///
/// # Errors
/// [`RobustError`]: a model of another size than the rows, numbers that are not finite or become
/// so, targets that are no labels, a negative radius, a label cost of 0 or less.
pub fn robust_loss(
    rows: &Samples,
    model: &LinearModel,
    radius: f64,
    loss: Loss,
    norm: Norm,
) -> Result<RobustLoss, RobustError> {
    validate_radius(radius)?;
    loss.validate(rows)?;
    validate_model(model, rows.features())?;
    let slope = loss.slope(&model.weights, norm);
    let robust = loss.score(rows, model, slope, radius, &mut Vec::new());
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
    /// A target that is no label where labels are needed.
    #[error("logistic loss needs labels −1 and 1, and row {row} has {label}")]
    Label {
        /// Which row, from 0.
        row: usize,
        /// Its target.
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

/// Refuses what would end in NaN.
fn validate(rows: &[f64], theta: &[f64], radius: f64) -> Result<(), RobustError> {
    if rows.is_empty() {
        return Err(RobustError::Empty);
    }
    if !rows.iter().chain(theta).all(|value| value.is_finite()) {
        return Err(RobustError::NotFinite);
    }
    validate_radius(radius)
}

/// Refuses radii that are negative or not finite.
fn validate_radius(radius: f64) -> Result<(), RobustError> {
    if !radius.is_finite() || radius < 0.0 {
        return Err(RobustError::Radius(radius));
    }
    Ok(())
}

/// Refuses models that are not for `features` features, or not finite.
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
