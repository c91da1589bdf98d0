//! Robust loss of logistic regression.

use super::{RobustError, RobustLoss, TransportCost, validate};

/// `sup E log(1 + exp(−yθᵀx))` over the ball of `radius` around the rows, where moving features
/// costs their distance and changing a label costs κ, the label cost (CS-RCFL, eqs. (14)–(15);
/// Shafieezadeh-Abadeh et al. 2015).
///
/// The dual `min_{λ ≥ ‖θ‖*} λε + mean (mₙ − κλ)₊` over margins `mₙ` is linear between its
/// breakpoints. It is solved as a fractional knapsack: flip labels in descending order of margin
/// as long as a flip gains more than moving features (`mₙ > κ‖θ‖*`), up to `Nε/κ` flips, the last one
/// in part. The rest of the radius moves features. `O(N log N)`.
///
/// * `margins`: `y·θᵀx` (intercept included), labels `y` ±1, of every row.
/// * `theta`: the weights without the intercept.
///
/// # Errors
/// [`RobustError`]: no rows, a number that is not finite, a negative radius, a label cost of 0 or
/// less.
pub fn logistic(
    margins: &[f64],
    theta: &[f64],
    radius: f64,
    cost: TransportCost,
) -> Result<RobustLoss, RobustError> {
    validate(margins, theta, radius)?;
    cost.validate()?;
    let slope = cost.norm.dual(theta.iter().copied());
    let mut margins = margins.to_vec();
    Ok(of_margins(&mut margins, slope, radius, cost.label_cost))
}

/// [`logistic()`] of valid input, with `slope = ‖θ‖*`. Reorders the margins, to avoid an
/// allocation.
pub(super) fn of_margins(
    margins: &mut [f64],
    slope: f64,
    radius: f64,
    label_cost: f64,
) -> RobustLoss {
    let rows = margins.len() as f64;
    let empirical = margins.iter().map(|&margin| log_loss(margin)).sum::<f64>() / rows;
    let (gain, lambda) = flips(margins, slope, radius, label_cost);
    RobustLoss {
        loss: empirical + slope * radius + gain,
        empirical,
        lambda,
    }
}

/// Solves the knapsack of [`logistic()`]: returns how much changing labels adds to the mean loss,
/// compared with spending the whole radius on moving features at `slope`, and the optimal multiplier.
/// Changing the label of row `n` gains `margins[n]`. Reorders the margins.
pub(super) fn flips(margins: &mut [f64], slope: f64, radius: f64, label_cost: f64) -> (f64, f64) {
    if label_cost.is_infinite() {
        return (0.0, slope);
    }
    let rows = margins.len() as f64;
    // A flip must gain more than its cost would by moving features.
    let threshold = label_cost * slope;
    let mut flippable = 0;
    for at in 0..margins.len() {
        if margins[at] > threshold {
            margins.swap(at, flippable);
            flippable += 1;
        }
    }
    let flippable = &mut margins[..flippable];
    flippable.sort_unstable_by(|a, b| b.total_cmp(a));
    let budget = rows * radius / label_cost;
    // The cast saturates: a budget beyond all rows flips every flippable row.
    let whole = (budget.floor() as usize).min(flippable.len());
    let (flipped, kept) = flippable.split_at(whole);
    let mut gain: f64 = flipped.iter().map(|margin| margin - threshold).sum();
    let mut lambda = slope;
    if let Some(next) = kept.first() {
        gain += (budget - whole as f64) * (next - threshold);
        lambda = next / label_cost;
    }
    (gain / rows, lambda)
}

/// `log(1 + exp(−margin))`, for any finite margin.
pub(super) fn log_loss(margin: f64) -> f64 {
    (-margin).max(0.0) + libm::log1p(libm::exp(-margin.abs()))
}
