//! Robust local fits: the linear model of least robust loss on a silo's own rows.
//!
//! The baseline that CS-RCFL compares with ("robust local", Konti et al. 2024, eq. (1)): absolute
//! loss as a linear or second-order cone program (Chen & Paschalidis 2018), logistic loss as an
//! exponential cone program jointly in the model and the multiplier λ (Shafieezadeh-Abadeh et al.
//! 2015). An interior-point method solves it; what is reported is the model's own robust loss,
//! computed exactly.
//!
//! A fit is a silo's own affair: its last bits may differ between machines (the solver uses their
//! exponentials), never between two runs on one.

mod conic;
mod programs;

use conic::REDUCED;
use serde::{Deserialize, Serialize};

use super::{
    LinearModel, Loss, Norm, RobustError, RobustLoss, Samples, robust_loss, validate_radius,
};

/// What is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FitConfig {
    /// The loss, and what changing a label costs.
    pub loss: Loss,
    /// The norm that measures how far features move.
    #[serde(default)]
    pub norm: Norm,
    /// ρ ≥ 0: half of it times the squared Euclidean norm of the weights is added to the loss.
    #[serde(default)]
    pub ridge: f64,
    /// Whether the model has an intercept, which neither the norm nor the ridge sees.
    #[serde(default)]
    pub intercept: bool,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The model; not the only one of its objective where that has a flat bottom.
    pub model: LinearModel,
    /// Its robust loss on the rows it was fitted to.
    pub robust: RobustLoss,
    /// What was minimised: robust loss plus `ρ/2 · ‖θ‖²`.
    pub objective: f64,
    /// The solver's dual value: no model has less, up to the solver's residuals.
    pub bound: f64,
    /// Whether the solver reached its tolerance (1e-9), and not only the reduced one (1e-5).
    pub converged: bool,
}

/// Why there is no fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Rows, radius or label cost.
    #[error(transparent)]
    Input(#[from] RobustError),
    /// A ridge below 0 or not finite.
    #[error("the ridge must be finite and at least 0, not {0}")]
    Ridge(f64),
    /// Nothing holds the weights.
    #[error(
        "a boundary separates the two labels, so a logistic fit would grow without end: ask for \
         a radius or a ridge above 0"
    )]
    Separable,
    /// Nothing holds the intercept.
    #[error(
        "all rows have one label, so the intercept of a logistic fit would grow without end: ask \
         for a fit without intercept, or for a radius above 0 with a finite label cost"
    )]
    OneLabel,
    /// The solver gave up.
    #[error("the fit was not solved ({status}): standardise the features")]
    NotSolved {
        /// The solver's last word.
        status: String,
    },
}

/// The linear model that minimises the robust loss within `radius` (≥ 0) around `rows`, plus the
/// ridge. At radius 0 and without ridge: least absolute deviations, or plain logistic regression.
///
/// Least absolute deviations always exist. A logistic fit does not exist where the loss falls
/// without end: without radius and ridge on labels that a boundary separates (Albert & Anderson
/// 1984; the rule on few rows with several features), and with an intercept on a single label,
/// unless a radius can change labels.
///
/// # Errors
/// [`FitError`]: targets that are no labels, impossible radius, label cost or ridge; no fit
/// exists; the solver failed.
pub fn fit(rows: &Samples, radius: f64, config: &FitConfig) -> Result<Fit, FitError> {
    validate_radius(radius)?;
    config.loss.validate(rows)?;
    if !config.ridge.is_finite() || config.ridge < 0.0 {
        return Err(FitError::Ridge(config.ridge));
    }
    must_exist(rows, radius, config)?;
    let (model, optimum) = programs::least_loss(rows, radius, config).map_err(not_solved)?;
    let robust = robust_loss(rows, &model, radius, config.loss, config.norm)?;
    let squares: f64 = model.weights.iter().map(|weight| weight * weight).sum();
    let objective = robust.loss + config.ridge / 2.0 * squares;
    // The solver speaks of its program; the model has to keep its word.
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

/// Whether some model has no row on the wrong side of its boundary and at least one on the right
/// side: then the plain logistic fit does not exist.
///
/// # Errors
/// [`FitError`]: targets that are no labels; the solver failed.
pub(super) fn separable(rows: &Samples, intercept: bool) -> Result<bool, FitError> {
    rows.must_be_labels()?;
    // A whole number, up to the solver's tolerance.
    Ok(programs::separated(rows, intercept).map_err(not_solved)? > 0.5)
}

/// Refuses fits whose loss falls without end.
fn must_exist(rows: &Samples, radius: f64, config: &FitConfig) -> Result<(), FitError> {
    let Loss::Logistic { label_cost } = config.loss else {
        return Ok(());
    };
    let one_label = rows.targets().windows(2).all(|pair| pair[0] == pair[1]);
    let labels_may_change = radius > 0.0 && label_cost.is_finite();
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
