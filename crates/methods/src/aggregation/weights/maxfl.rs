//! MaxFL (Cho et al. 2022): a global model that as many clients as possible prefer to their own.

use super::{WeightsError, check};

/// `q_k = σ(F_k − ρ_k)(1 − σ(F_k − ρ_k))` (Cho et al. 2022): the slope of the sigmoid with
/// which MaxFL counts the clients that the global model appeals to. It is largest, ¼, at `F_k = ρ_k`.
///
/// * `losses`: `F_k`, of the global model on the client's data.
/// * `required`: `ρ_k`, loss of the client's local model on the same data; with a global loss above it
///   the client would leave.
///
/// # Errors
/// [`WeightsError`]: no client, lists of different lengths, a loss that is not finite.
pub fn maxfl(losses: &[f64], required: &[f64]) -> Result<Vec<f64>, WeightsError> {
    check("losses", losses, losses.len(), "finite", f64::is_finite)?;
    check(
        "required losses",
        required,
        losses.len(),
        "finite",
        f64::is_finite,
    )?;
    let slope = |(loss, required): (&f64, &f64)| {
        // Symmetric around 0; far away it is 0, not NaN.
        let small = libm::exp(-(loss - required).abs());
        small / ((1.0 + small) * (1.0 + small))
    };
    Ok(losses.iter().zip(required).map(slope).collect())
}

/// The coefficients of the updates in MaxFL's step `w ← w − η_g Σ q_k Δ_k / (Σ q_k + ε)`,
/// `Δ_k = w − w_k`: `η_g q_k / (Σ q_k + ε)`, for [`step`](super::super::step()). They sum to less
/// than η_g.
///
/// `rate` is η_g > 0, `epsilon` ε > 0; both are 1 in the paper's experiments.
///
/// # Errors
/// As [`maxfl`], and [`WeightsError::Range`] for `rate` or `epsilon`.
pub fn maxfl_steps(
    losses: &[f64],
    required: &[f64],
    rate: f64,
    epsilon: f64,
) -> Result<Vec<f64>, WeightsError> {
    let above_zero = |value: f64| value.is_finite() && value > 0.0;
    check("rate", &[rate], 1, "finite and above 0", above_zero)?;
    check("epsilon", &[epsilon], 1, "finite and above 0", above_zero)?;
    let slopes = maxfl(losses, required)?;
    let total = slopes.iter().sum::<f64>() + epsilon;
    Ok(slopes.iter().map(|slope| rate * slope / total).collect())
}

/// Returns which clients join the global group in the variant that HCCT is compared with (Sun et al. 2024):
/// client `k` does if `F_k < ‖w_k − w‖²`, the others train alone.
///
/// * `losses`: `F_k`, of the global model `w` on the client's data.
/// * `squared_distances`: of the model `w_k` that the client trained alone from `w`.
///
/// # Errors
/// [`WeightsError`]: no client, lists of different lengths, a loss or distance that is not finite,
/// a distance below 0.
pub fn maxfl_joins(losses: &[f64], squared_distances: &[f64]) -> Result<Vec<bool>, WeightsError> {
    let clients = losses.len();
    check("losses", losses, clients, "finite", f64::is_finite)?;
    let distance = |value: f64| value.is_finite() && value >= 0.0;
    check(
        "squared distances",
        squared_distances,
        clients,
        "finite and at least 0",
        distance,
    )?;
    Ok(losses
        .iter()
        .zip(squared_distances)
        .map(|(loss, distance)| loss < distance)
        .collect())
}
