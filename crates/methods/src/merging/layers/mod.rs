//! The layer that HCCT-E compares clients by.
//!
//! HCCT-E computes the similarity of clients on one layer only (eqs. (18) to (20)): after the first
//! local training from a common start, the layer whose gradients differ most between the clients.
//! All layers are still averaged.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::params::{Layer, Params, layers};

/// Relative variance of the clients' gradients of a layer (eq. (19)). Both variants are independent
/// of the layer's size.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LayerStatistic {
    /// `(1/M)·Σ_k ‖g_kℓ − ḡ_ℓ‖² / ‖ḡ_ℓ‖²`, with `ḡ_ℓ` the mean of the clients' `g_kℓ`. Does not
    /// depend on the scale or sign of the gradients.
    #[default]
    BetweenClients,
    /// `variance / mean` over all entries of all clients, as in the authors' code. It
    /// depends on scale and sign of the gradients (`g = start − model`, not its negative) and means
    /// little where the entries average to about 0.
    VarianceOverMean,
}

/// A layer and the relative variance of the clients' gradients of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSpread {
    /// The layer.
    pub layer: Layer,
    /// The statistic, never NaN: 0 if the clients do not differ, otherwise infinite if the divisor is
    /// exactly 0.
    pub value: f64,
}

/// Errors of choosing a layer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpreadError {
    /// No gradients.
    #[error("choosing a layer needs at least one gradient")]
    Empty,
    /// Gradients of different layouts.
    #[error("gradients of different shapes cannot be compared")]
    Layout,
    /// Nothing is trained.
    #[error("the model has no layer: all its tensors are buffers")]
    NoLayer,
    /// A value that is NaN or infinite.
    #[error("layer {layer:?} of a gradient holds a value that is not finite")]
    NotFinite {
        /// Name of the layer.
        layer: String,
    },
}

/// The spread of every layer, in the order of [`layers`]. `gradients` are the clients' `g_k`, or
/// `start − model` with one common factor for all; weight and bias count together, buffers do not.
///
/// # Errors
/// [`SpreadError`] on no gradients, different layouts, no layer, or a value that is not finite.
pub fn spreads(
    gradients: &[Params],
    statistic: LayerStatistic,
) -> Result<Vec<LayerSpread>, SpreadError> {
    let first = gradients.first().ok_or(SpreadError::Empty)?;
    if gradients.iter().any(|one| one.layout() != first.layout()) {
        return Err(SpreadError::Layout);
    }
    let rows: Vec<&[f32]> = gradients.iter().map(Params::values).collect();
    let layers = layers(first.layout());
    if layers.is_empty() {
        return Err(SpreadError::NoLayer);
    }
    let spread = |layer: Layer| {
        let (above, below) = match statistic {
            LayerStatistic::BetweenClients => between_clients(&rows, &layer),
            LayerStatistic::VarianceOverMean => variance_and_mean(&rows, &layer),
        };
        if !above.is_finite() || !below.is_finite() {
            return Err(SpreadError::NotFinite { layer: layer.name });
        }
        let value = match (above, below) {
            (0.0, _) => 0.0,
            (_, 0.0) => f64::INFINITY,
            (above, below) => above / below,
        };
        Ok(LayerSpread { layer, value })
    };
    layers.into_iter().map(spread).collect()
}

/// The layer that HCCT-E compares clients by: the one with the largest spread; ties go to the first.
///
/// # Errors
/// As [`spreads`].
pub fn choose_layer(gradients: &[Params], statistic: LayerStatistic) -> Result<Layer, SpreadError> {
    let all = spreads(gradients, statistic)?.into_iter();
    let larger =
        |best: LayerSpread, next: LayerSpread| if next.value > best.value { next } else { best };
    let best = all.reduce(larger).expect("an error if there is no layer");
    Ok(best.layer)
}

/// A model whose only layer would be personal, so that nothing is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model has {layers} layer(s): with the last one personal there would be nothing to share; choose a model of two layers or more"
)]
pub struct OneLayer {
    /// Layers of the model: 0 or 1.
    pub layers: usize,
}

/// Values per block: the `f64` means stay in the nearest cache while the gradients stream past.
const BLOCK: usize = 1 << 12;

/// `(1/M)·Σ_k ‖g_kℓ − ḡ_ℓ‖²` and `‖ḡ_ℓ‖²`.
fn between_clients(rows: &[&[f32]], layer: &Layer) -> (f64, f64) {
    let clients = rows.len() as f64;
    let cut = |range: &Range<usize>| {
        let end = range.end;
        let starts = range.clone().step_by(BLOCK);
        starts.map(move |start| start..end.min(start + BLOCK))
    };
    let blocks: Vec<Range<usize>> = layer.ranges.iter().flat_map(cut).collect();
    // Collected and then added in order: the same bits for any number of threads.
    let parts: Vec<(f64, f64)> = blocks
        .into_par_iter()
        .map(|block| {
            let mut means = vec![0.0; block.len()];
            for row in rows {
                for (mean, &value) in means.iter_mut().zip(&row[block.clone()]) {
                    *mean += f64::from(value);
                }
            }
            for mean in &mut means {
                *mean /= clients;
            }
            let mut apart = 0.0;
            for row in rows {
                for (mean, &value) in means.iter().zip(&row[block.clone()]) {
                    let difference = f64::from(value) - mean;
                    apart += difference * difference;
                }
            }
            (apart, means.iter().map(|mean| mean * mean).sum())
        })
        .collect();
    let apart: f64 = parts.iter().map(|part| part.0).sum();
    (apart / clients, parts.iter().map(|part| part.1).sum())
}

/// Variance (divided by the number of entries) and mean of all entries.
fn variance_and_mean(rows: &[&[f32]], layer: &Layer) -> (f64, f64) {
    let sum = |term: &(dyn Fn(f64) -> f64 + Sync)| -> f64 {
        let of = |row: &&[f32]| -> f64 {
            let values = layer.values(row).flatten();
            values.map(|&value| term(f64::from(value))).sum()
        };
        let parts: Vec<f64> = rows.par_iter().map(of).collect();
        parts.iter().sum()
    };
    let entries = (rows.len() * layer.len()).max(1) as f64;
    let mean = sum(&|value| value) / entries;
    let variance = sum(&|value| (value - mean) * (value - mean)) / entries;
    (variance, mean)
}

#[cfg(test)]
mod tests;
