//! Robust local fits: the linear model with the least robust loss on a silo's own rows.
//!
//! The baseline "robust local" of CS-RCFL (Konti et al. 2024, eq. (1)). Absolute loss is solved as a linear or second-order cone program (Chen & Paschalidis 2018), logistic loss as an
//! exponential cone program jointly in the model and the multiplier λ (Shafieezadeh-Abadeh et al.
//! 2015). An interior-point method solves the program; the reported robust loss of the model is
//! then computed exactly.
//!
//! The last bits of a fit may differ between machines (the solver uses the platform's exponential
//! function), but not between two runs on one machine. Fits are local to a silo, so no member has to
//! reproduce them.

mod conic;
mod newton;
mod programs;

use conic::REDUCED;
use serde::{Deserialize, Serialize};

use super::span::RowSpan;
use super::{
    LinearModel, Norm, RobustError, RobustLoss, RowLoss, Samples, TransportCost, robust_loss,
    validate_radius,
};

/// Options of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FitConfig {
    /// The loss.
    pub loss: RowLoss,
    /// The cost of moving a row.
    #[serde(default)]
    pub cost: TransportCost,
    /// ρ ≥ 0: half of it times the squared Euclidean norm of the weights is added to the loss.
    #[serde(default)]
    pub ridge: f64,
    /// True if the model has an intercept, which is not counted in the norm and the ridge.
    #[serde(default)]
    pub intercept: bool,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The model; not unique where the objective is flat at its minimum.
    pub model: LinearModel,
    /// Robust loss of the model on the rows that it was fitted to.
    pub robust: RobustLoss,
    /// The minimised objective: robust loss plus `ρ/2 · ‖θ‖²`.
    pub objective: f64,
    /// The solver's dual value: a lower bound of the objective of every model, up to the solver's
    /// residuals.
    pub bound: f64,
    /// True if the solver reached its tolerance (1e-9), and not only the reduced one (1e-5).
    pub converged: bool,
}

/// Errors of a fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Invalid rows, radius or label cost.
    #[error(transparent)]
    Input(#[from] RobustError),
    /// A ridge below 0 or not finite.
    #[error("the ridge must be finite and at least 0, not {0}")]
    Ridge(f64),
    /// Separable labels, without a radius or a ridge: the weights grow without bound.
    #[error(
        "the two labels are linearly separable, so the weights of a logistic fit grow without \
         bound: use a radius or a ridge above 0"
    )]
    Separable,
    /// A single label: the intercept grows without bound.
    #[error(
        "all rows have the same label, so the intercept of a logistic fit grows without bound: \
         fit without an intercept, or use a radius above 0 with a finite label cost"
    )]
    OneLabel,
    /// The solver failed.
    #[error("the solver did not find a fit ({status}): standardise the features")]
    NotSolved {
        /// The solver's status.
        status: String,
    },
}

/// The linear model that minimises the robust loss within `radius` (≥ 0) around `rows`, plus the
/// ridge. At radius 0 and without ridge: least absolute deviations, or plain logistic regression.
///
/// Least absolute deviations always exist. A logistic fit does not exist where the loss has
/// no minimum: without radius and ridge on linearly separable labels (Albert & Anderson 1984; common
/// with few rows and several features), and with an intercept on a single label, unless a radius can
/// change labels.
///
/// # Errors
/// [`FitError`]: targets other than −1 and 1 for logistic loss, an invalid radius, label cost or
/// ridge; no fit exists; the solver failed.
pub fn fit(rows: &Samples, radius: f64, config: &FitConfig) -> Result<Fit, FitError> {
    validate_radius(radius)?;
    config.cost.validate()?;
    config.loss.validate(rows)?;
    if !config.ridge.is_finite() || config.ridge < 0.0 {
        return Err(FitError::Ridge(config.ridge));
    }
    must_exist(rows, radius, config)?;
    // With a norm that no direction has more of than another, the weights are a combination of the rows.
    let round = match radius > 0.0 {
        true => config.cost.norm == Norm::L2,
        false => config.ridge > 0.0,
    };
    let (model, optimum) = match RowSpan::of_wide(rows).filter(|_| round) {
        Some(span) => {
            let solved = programs::least_loss(&span.rows, radius, config);
            let (model, optimum) = solved.map_err(not_solved)?;
            (span.model(&model, rows.features()), optimum)
        }
        None => programs::least_loss(rows, radius, config).map_err(not_solved)?,
    };
    let robust = robust_loss(rows, &model, radius, config.loss, config.cost)?;
    let squares: f64 = model.weights.iter().map(|weight| weight * weight).sum();
    let objective = robust.loss + config.ridge / 2.0 * squares;
    // The bound is that of the solver's program; check that the model's exact objective attains it.
    let gap = objective - optimum.bound;
    if !gap.is_finite() || gap > REDUCED * objective.max(1.0) {
        return Err(not_solved(format!("a gap of {gap:e} is left")));
    }
    Ok(Fit {
        model,
        robust,
        objective,
        bound: optimum.bound,
        converged: optimum.full,
    })
}

/// The plain logistic model with an intercept that adds least loss, with its ridge, to what outputs
/// of `offsets` have; see [`ridge_fit`](super::ridge::ridge_fit).
pub(super) fn plain_logistic(
    rows: &Samples,
    ridge: f64,
    offsets: &[f64],
) -> Result<LinearModel, FitError> {
    rows.must_be_labels()?;
    if rows.targets().windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(LinearModel {
            weights: vec![0.0; rows.features()],
            intercept: one_label(rows, offsets),
        });
    }
    if ridge == 0.0 && separable(rows, true)? {
        return Err(FitError::Separable);
    }
    newton::logistic_ridge(rows, ridge, offsets).map_err(not_solved)
}

/// Returns what to add to the outputs of rows with a single label: the intercept of least log loss on them
/// and on one row more of each label at their mean output (Laplace's rule of succession where all
/// outputs are 0).
fn one_label(rows: &Samples, offsets: &[f64]) -> f64 {
    let mean = offsets.iter().sum::<f64>() / offsets.len() as f64;
    let more = [(1.0, mean), (-1.0, mean)];
    let all = || {
        let rows = rows.targets().iter().copied().zip(offsets.iter().copied());
        rows.chain(more)
    };
    let probability = |output: f64| 1.0 / (1.0 + libm::exp(-output));
    // The slope rises with the intercept: it is 0 between a point where it is below and one where it
    // is above.
    let slope = |at: f64| -> f64 {
        let each = all().map(|(y, offset)| -y * probability(-y * (offset + at)));
        each.sum()
    };
    let furthest = offsets.iter().fold(0f64, |most, each| most.max(each.abs()));
    let reach = 2.0 * furthest + libm::log((rows.len() + 2) as f64) + 1.0;
    let (mut low, mut high) = (-reach, reach);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if slope(middle) < 0.0 {
            low = middle
        } else {
            high = middle
        }
    }
    f64::midpoint(low, high)
}

/// Returns whether the labels are separable: some model has no row on the wrong side of its boundary and at
/// least one on the right side. Then the plain logistic fit does not exist.
///
/// # Errors
/// [`FitError`]: targets other than −1 and 1; the solver failed.
pub(super) fn separable(rows: &Samples, intercept: bool) -> Result<bool, FitError> {
    rows.must_be_labels()?;
    // The optimum is an integer, up to the solver's tolerance.
    Ok(programs::separated(rows, intercept).map_err(not_solved)? > 0.5)
}

/// Refuses fits whose loss has no minimum.
fn must_exist(rows: &Samples, radius: f64, config: &FitConfig) -> Result<(), FitError> {
    if config.loss == RowLoss::Absolute {
        return Ok(());
    }
    let one_label = rows.targets().windows(2).all(|pair| pair[0] == pair[1]);
    let labels_may_change = radius > 0.0 && config.cost.label_cost.is_finite();
    if config.intercept && one_label && !labels_may_change {
        return Err(FitError::OneLabel);
    }
    if radius == 0.0 && config.ridge == 0.0 && separable(rows, config.intercept)? {
        return Err(FitError::Separable);
    }
    Ok(())
}

fn not_solved(status: String) -> FitError {
    FitError::NotSolved { status }
}

#[cfg(test)]
mod tests;
