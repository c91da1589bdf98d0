//! FLTrust: updates weighted by their agreement with a trusted update.

use multiversion::multiversion;
use rayon::prelude::*;

use super::AggregationError;
use super::buffers::counted;
use super::median::with_median_buffers;
use super::models::Models;
use super::step::step;
use crate::params::Params;

/// The mean of the updates weighted by trust scores (FLTrust, Cao et al. 2021, eqs. (2)–(4)).
///
/// With updates `g_i = x_i − θ` from the start model θ and the trusted model's update `g_0`, the
/// trust score of model `i` is `TS_i = max(0, cos(g_i, g_0))`. Every update is scaled to the length
/// of `g_0`, and the result is `θ + Σ w_i TS_i (‖g_0‖/‖g_i‖) g_i / Σ w_i TS_i`: at most as far from
/// θ as the trusted model. It is θ if all trust scores are 0. A cosine with a zero update is 0.
pub(super) fn trust_weighted(
    models: &Models,
    start: &Params,
    trusted: &Params,
) -> Result<Params, AggregationError> {
    let own = products(start, trusted, trusted);
    let scores: Vec<(f64, f64)> = models
        .models()
        .par_iter()
        .map(|model| {
            let with = products(start, model, trusted);
            let lengths = with.square.sqrt() * own.square.sqrt();
            if with.dot <= 0.0 || lengths == 0.0 {
                return (0.0, 0.0);
            }
            (with.dot / lengths, own.square.sqrt() / with.square.sqrt())
        })
        .collect();
    let trust: Vec<f64> = scores
        .iter()
        .zip(models.weights())
        .map(|((trust, _), weight)| weight * trust)
        .collect();
    let total: f64 = trust.iter().sum();
    let moved = if total > 0.0 {
        let shares = trust.iter().zip(&scores);
        let coefficients = shares.map(|(trust, (_, scale))| trust / total * scale);
        let moves: Vec<_> = models.models().iter().copied().zip(coefficients).collect();
        step(start, &moves)?
    } else {
        start.clone()
    };
    Ok(with_median_buffers(moved, models))
}

/// The squared length of an update and its inner product with another one.
struct Products {
    square: f64,
    dot: f64,
}

/// Sums over weights and biases; buffers are left out.
fn products(start: &Params, model: &Params, other: &Params) -> Products {
    let mut sums = Products {
        square: 0.0,
        dot: 0.0,
    };
    for range in counted(start.layout()) {
        let [start, model, other] =
            [start, model, other].map(|model| &model.values()[range.clone()]);
        let (square, dot) = products_of(start, model, other);
        sums.square += square;
        sums.dot += dot;
    }
    sums
}

/// Partial sums per sum; changing it changes the result's last bits.
const LANES: usize = 16;

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn products_of(start: &[f32], model: &[f32], other: &[f32]) -> (f64, f64) {
    let (mut squares, mut dots) = ([0f64; LANES], [0f64; LANES]);
    let parts = start
        .chunks(LANES)
        .zip(model.chunks(LANES))
        .zip(other.chunks(LANES));
    for ((start, model), other) in parts {
        for lane in 0..start.len() {
            let update = f64::from(model[lane]) - f64::from(start[lane]);
            let other = f64::from(other[lane]) - f64::from(start[lane]);
            squares[lane] += update * update;
            dots[lane] += update * other;
        }
    }
    (squares.iter().sum(), dots.iter().sum())
}
