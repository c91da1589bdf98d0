//! Geometric median, by smoothed Weiszfeld iterations.

use super::AggregationError;
use super::distance::{distance, from_centre};
use super::median::{coordinate_median, weighted_median, with_median_buffers};
use super::models::Models;
use crate::params::{Params, weighted_mean};

/// The point with the least weighted sum of distances from the models (RFA, Pillutla et al. 2022).
///
/// Each Weiszfeld iteration takes the mean of the models, model `i` weighted by
/// `w_i / max(‖x_i − z‖, ν)`. It starts from the coordinate median, which outliers cannot move far,
/// and stops when the gradient is small: `‖Σ w_i (z − x_i) / max(‖x_i − z‖, ν)‖ ≤
/// tolerance · Σ w_i`. ν is `smoothing` times the median distance from the start.
pub(super) fn geometric_median(
    models: &Models,
    smoothing: f64,
    tolerance: f64,
    iterations: u32,
) -> Result<Params, AggregationError> {
    let start = coordinate_median(models);
    let distances = from_centre(models, &start);
    let scale = median_distance(models, &distances);
    if scale == 0.0 {
        // At least half of the weight is at this point: it is a minimum.
        return Ok(start);
    }
    let (mut centre, mut distances) = (start, distances);
    for _ in 0..iterations {
        let pulls: Vec<f64> = distances
            .iter()
            .map(|distance| scale / distance.max(smoothing * scale))
            .collect();
        let pulled = models.scaled(&pulls);
        let strength: f64 = pulled.iter().map(|(_, pull)| pull).sum();
        let next = weighted_mean(&pulled)?;
        let unbalanced = strength * (distance(&next, &centre) / scale);
        centre = next;
        if unbalanced <= tolerance * models.total() {
            break;
        }
        distances = from_centre(models, &centre);
    }
    Ok(with_median_buffers(centre, models))
}

/// The weighted median of the distances of all models from a centre: at most the largest distance
/// of an honest model as long as more than half of the weight is honest.
pub(super) fn median_distance(models: &Models, distances: &[f64]) -> f64 {
    let mut sorted: Vec<_> = distances.iter().copied().zip(models.weights()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let sorted = sorted
        .into_iter()
        .map(|(distance, weight)| (distance, *weight));
    weighted_median(sorted, models.total()).0
}
