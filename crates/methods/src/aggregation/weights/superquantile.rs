//! Superquantile (Pillutla et al. 2023): weights of the clients with the largest losses.

use super::{WeightsError, check, shares};

/// Weights of the clients in the mean of the worst `1 − θ` part of the losses (Pillutla et al.
/// 2023): they maximise `Σ w_k F_k` over `0 ≤ w_k ≤ p_k/(1 − θ)`, `Σ w_k = 1`. The largest losses
/// fill the tail, the last one in part; equal losses share what is left in proportion to their
/// `p_k`.
///
/// At θ = 0 these are the `p_k`; as θ goes to 1, the worst client's weight goes to 1.
///
/// * `losses`: `F_k`, of the model on every client's data.
/// * `prior`: `p_k`, by training rows or equal; at least 0, scaled here to sum to 1.
/// * `theta`: θ in `[0, 1)`.
///
/// # Errors
/// [`WeightsError`]: no client, lists of different lengths, a number out of its range, a prior of
/// zeros.
pub fn superquantile(losses: &[f64], prior: &[f64], theta: f64) -> Result<Vec<f64>, WeightsError> {
    check("losses", losses, losses.len(), "finite", f64::is_finite)?;
    check("theta", &[theta], 1, "at least 0 and below 1", |theta| {
        (0.0..1.0).contains(&theta)
    })?;
    let prior = shares("prior", prior, losses.len())?;
    let tail = 1.0 - theta;
    let mut order: Vec<usize> = (0..losses.len()).collect();
    order.sort_by(|&a, &b| losses[b].total_cmp(&losses[a]));
    let mut weights = vec![0.0; losses.len()];
    let mut left = tail;
    for equals in order.chunk_by(|&a, &b| losses[a] == losses[b]) {
        let mass: f64 = equals.iter().map(|&client| prior[client]).sum();
        if mass == 0.0 {
            continue;
        }
        // Rounding may have spent a little more than there was.
        let part = (left / mass).clamp(0.0, 1.0);
        for &client in equals {
            weights[client] = part * prior[client] / tail;
        }
        left -= part * mass;
    }
    Ok(weights)
}
