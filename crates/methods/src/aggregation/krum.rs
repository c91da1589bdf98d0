//! Krum and multi-Krum.

use super::AggregationError;
use super::distance::pairwise;
use super::median::with_median_buffers;
use super::models::Models;
use crate::params::Params;
use crate::params::weighted_mean;

/// The mean of the `selected` models with the smallest Krum scores (Blanchard et al. 2017).
///
/// The score of a model is the sum of its squared distances from the `n − f − 2` nearest others,
/// where `f` models may be Byzantine. Ties go to the model with the smaller values, so that the
/// order of the models does not matter.
pub(super) fn krum(
    models: &Models,
    byzantine: usize,
    selected: usize,
) -> Result<Params, AggregationError> {
    let scores = scores(models, models.len() - byzantine - 2);
    let mut order: Vec<usize> = (0..models.len()).collect();
    order.sort_by(|&a, &b| {
        let scores = scores[a].total_cmp(&scores[b]);
        scores.then_with(|| models.by_values(a, b))
    });
    order.truncate(selected);
    order.sort_unstable();
    Ok(with_median_buffers(
        weighted_mean(&models.chosen(&order))?,
        models,
    ))
}

/// The Krum score of every model, summed from the smallest distance on.
fn scores(models: &Models, nearest: usize) -> Vec<f64> {
    let distances = pairwise(models);
    (0..models.len())
        .map(|own| {
            let mut others: Vec<f64> = (0..models.len())
                .filter(|&other| other != own)
                .map(|other| distances[(own, other)])
                .collect();
            others.sort_unstable_by(f64::total_cmp);
            others[..nearest].iter().sum()
        })
        .collect()
}
