//! Robust loss of linear regression under absolute loss.

use super::{Norm, RobustError, RobustLoss, validate};

/// `sup E|y − θᵀx|` over the ball of `radius` around the rows, where features and target may both
/// move: `mean |r| + radius · ‖(−θ, 1)‖*` (CS-RCFL, eqs. (12)–(13); Chen & Paschalidis 2018).
/// It is exact if features and target may take any real values.
///
/// * `residuals`: `y − θᵀx` (intercept included) of every row.
/// * `theta`: the weights without the intercept.
///
/// # Errors
/// [`RobustError`]: no rows, a number that is not finite, a negative radius.
pub fn linear(
    residuals: &[f64],
    theta: &[f64],
    radius: f64,
    norm: Norm,
) -> Result<RobustLoss, RobustError> {
    validate(residuals, theta, radius)?;
    let slope = norm.dual(theta.iter().copied().chain([1.0]));
    Ok(of_residuals(residuals, slope, radius))
}

/// [`linear()`] of valid input, with `slope = ‖(−θ, 1)‖*`.
pub(super) fn of_residuals(residuals: &[f64], slope: f64, radius: f64) -> RobustLoss {
    let sum: f64 = residuals.iter().map(|residual| residual.abs()).sum();
    let empirical = sum / residuals.len() as f64;
    RobustLoss {
        loss: empirical + radius * slope,
        empirical,
        lambda: slope,
    }
}
