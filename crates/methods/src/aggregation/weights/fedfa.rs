//! FedFa (Huang et al. 2020): larger weights for clients on whose data the global model is poor.

use super::{WeightsError, check, shares};

/// Lower bound of accuracies: an accuracy of 0 would carry infinite information.
const LEAST_ACCURACY: f64 = 1e-7;

/// Weights by the information `−log₂ acc_k` of the accuracy alone, summing to 1: the
/// variant of FedFa that HCCT is compared with (Sun et al. 2024). An accuracy of 0 counts as 1e-7;
/// if all are 1, all weights are equal.
///
/// * `accuracies`: of the global model on every client's training rows, in `[0, 1]`.
///
/// # Errors
/// [`WeightsError`]: no client, an accuracy out of its range.
pub fn fedfa_by_accuracy(accuracies: &[f64]) -> Result<Vec<f64>, WeightsError> {
    check_accuracies(accuracies)?;
    Ok(information(accuracies.iter().copied()))
}

/// Weights `α·A_k + (1 − α)·B_k` (Huang et al. 2020, "Fairness and accuracy in horizontal
/// federated learning"), summing to 1: the share `A_k` of a client in the information
/// `−log₂(acc_k / Σ acc)` of the accuracies, and its share `B_k` in the information
/// `−log₂(1 − t_k / Σ t)` of how often it took part. Clients that do poorly, and those that take
/// part often, weigh more.
///
/// * `accuracies`: of the global model on every client's training rows, in `[0, 1]`.
/// * `participations`: rounds `t_k ≥ 0` that the client took part in.
/// * `alpha`: in `[0, 1]`; one half is usual.
///
/// # Errors
/// [`WeightsError`]: no client, lists of different lengths, a number out of its range, no
/// participation at all.
pub fn fedfa(
    accuracies: &[f64],
    participations: &[u64],
    alpha: f64,
) -> Result<Vec<f64>, WeightsError> {
    check_accuracies(accuracies)?;
    check("alpha", &[alpha], 1, "from 0 to 1", |alpha| {
        (0.0..=1.0).contains(&alpha)
    })?;
    let rounds: Vec<f64> = participations.iter().map(|&rounds| rounds as f64).collect();
    let taken = shares("participations", &rounds, accuracies.len())?;
    let accuracies: Vec<f64> = accuracies
        .iter()
        .map(|accuracy| accuracy.max(LEAST_ACCURACY))
        .collect();
    let total: f64 = accuracies.iter().sum();
    let by_accuracy = information(accuracies.iter().map(|accuracy| accuracy / total));
    let by_frequency = information(taken.iter().map(|share| 1.0 - share));
    let both = by_accuracy.iter().zip(&by_frequency);
    Ok(both
        .map(|(accuracy, frequency)| alpha * accuracy + (1.0 - alpha) * frequency)
        .collect())
}

fn check_accuracies(accuracies: &[f64]) -> Result<(), WeightsError> {
    check(
        "accuracies",
        accuracies,
        accuracies.len(),
        "from 0 to 1",
        |accuracy| (0.0..=1.0).contains(&accuracy),
    )
}

/// Shares of the information `−log₂ p` of the probabilities; equal shares if it is all 0.
fn information(probabilities: impl Iterator<Item = f64>) -> Vec<f64> {
    let information: Vec<f64> = probabilities
        .map(|probability| libm::log2(probability.max(LEAST_ACCURACY)).abs())
        .collect();
    let total: f64 = information.iter().sum();
    if total == 0.0 {
        return vec![1.0 / information.len() as f64; information.len()];
    }
    information.iter().map(|own| own / total).collect()
}
