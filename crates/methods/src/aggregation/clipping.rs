//! Centred clipping (Karimireddy, He & Jaggi 2021).

use serde::{Deserialize, Serialize};

use super::AggregationError;
use super::distance::from_centre;
use super::geometric::median_distance;
use super::median::with_median_buffers;
use super::models::Models;
use crate::params::{Params, weighted_mean};

/// Initial centre of centred clipping.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ClippingStart {
    /// The coordinate median, which is within the range of the honest models if most are honest.
    #[default]
    CoordinateMedian,
    /// The model that all training started from. A round moves it by at most `iterations · τ`.
    Start,
}

/// `v ← v + Σ w_i (x_i − v)·min(1, τ/‖x_i − v‖) / Σ w_i`, repeated `iterations` times (Karimireddy,
/// He & Jaggi 2021).
///
/// Without a `radius`, τ is the median distance from the centre, recomputed in every iteration.
/// Each iteration is computed as a mean of the models and the centre; the centre gets the weight
/// that clipping takes from the models.
pub(super) fn centred_clipping(
    models: &Models,
    mut centre: Params,
    radius: Option<f64>,
    iterations: u32,
) -> Result<Params, AggregationError> {
    for _ in 0..iterations {
        let distances = from_centre(models, &centre);
        let radius = radius.unwrap_or_else(|| median_distance(models, &distances));
        let clip = |distance: &f64| {
            if *distance > radius {
                radius / distance
            } else {
                1.0
            }
        };
        let clipped: Vec<f64> = distances.iter().map(clip).collect();
        let mut parts = models.scaled(&clipped);
        let kept: f64 = models
            .weights()
            .iter()
            .zip(&clipped)
            .map(|(weight, clip)| weight * (1.0 - clip))
            .sum();
        parts.push((&centre, kept));
        centre = weighted_mean(&parts)?;
    }
    Ok(with_median_buffers(centre, models))
}
