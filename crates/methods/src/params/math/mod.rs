//! Means and distances of models, in a fixed order of operations and accumulated in `f64`.
//!
//! Every sum runs either over the models in the given order or over a fixed number of lanes, without
//! fused operations. So vector instructions of any width and any number of threads give the same
//! bits.

use std::sync::{Mutex, PoisonError};

use multiversion::multiversion;

use super::{Params, Role};

/// Errors of averaging models.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MeanError {
    /// No models.
    #[error("there is no model to average")]
    Empty,
    /// Models of different layouts.
    #[error("models of different shapes cannot be averaged")]
    Layout,
    /// Weights that are negative, not finite, or all zero.
    #[error("the weights of an average must be finite, at least 0 and not all 0")]
    Weights,
}

/// Values per block: its `f64` sums take 32 KiB and stay in cache while the models are read.
const BLOCK: usize = 1 << 12;

/// Number of values (over all models) from which several threads are faster than one.
const PARALLEL: usize = 1 << 21;

/// `Σ wᵢ·xᵢ / Σ wᵢ`, accumulated in `f64` in the given order: the same bits on every machine.
///
/// The mean of equal models is that model, bit for bit, so that buffers which no member changed stay
/// unchanged.
///
/// # Errors
/// [`MeanError`] on no models, different layouts, or unusable weights.
pub fn weighted_mean(models: &[(&Params, f64)]) -> Result<Params, MeanError> {
    let (first, _) = models.first().ok_or(MeanError::Empty)?;
    if models
        .iter()
        .any(|(model, _)| model.layout() != first.layout())
    {
        return Err(MeanError::Layout);
    }
    let total: f64 = models.iter().map(|(_, weight)| weight).sum();
    if !total.is_finite() || total <= 0.0 || models.iter().any(|(_, weight)| *weight < 0.0) {
        return Err(MeanError::Weights);
    }
    if models.len() == 1 {
        return Ok((*first).clone());
    }
    let rows: Vec<_> = models
        .iter()
        .map(|(model, weight)| (model.values(), *weight))
        .collect();
    Ok(Params::build(first.layout(), |mean| {
        let large = mean.len() * rows.len() >= PARALLEL;
        let count = mean.len().div_ceil(BLOCK);
        let blocks = Mutex::new(mean.chunks_mut(BLOCK).enumerate());
        let next = || blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
        let fill = || {
            let mut sums = Vec::new();
            while let Some((block, into)) = next() {
                sums.resize(BLOCK, 0.0);
                mean_block(into, &mut sums, &rows, block * BLOCK, total);
            }
        };
        if !large {
            return fill();
        }
        // This thread takes blocks too, so that it computes while the pool is at other means.
        rayon::in_place_scope(|scope| {
            let helpers = (rayon::current_num_threads() - 1).min(count - 1);
            (0..helpers).for_each(|_| scope.spawn(|_| fill()));
            fill();
        });
    }))
}

/// One block of a weighted mean: `into` gets the values from `start` on. `sums` has at least its
/// length; `total` is the sum of the weights.
pub(crate) fn mean_block(
    into: &mut [f32],
    sums: &mut [f64],
    rows: &[(&[f32], f64)],
    start: usize,
    total: f64,
) {
    let sums = &mut sums[..into.len()];
    let part = |row: usize| {
        let (values, weight) = rows[row];
        (&values[start..start + sums.len()], weight)
    };
    let parts: Vec<_> = (0..rows.len()).map(part).collect();
    // The first models overwrite the sums instead of being added to zero, so that -0 stays -0.
    let (first, others) = parts.split_at((rows.len() - 1) % GROUP + 1);
    sum_first(sums, first);
    let (groups, _) = others.as_chunks();
    groups.iter().for_each(|group| add_group(sums, group));
    divide(into, sums, total);
}

/// Models that are added to the sums at once, in order: the sums are loaded and stored a quarter as
/// often.
const GROUP: usize = 4;

/// Values of a model, and its weight.
type Weighted<'a> = (&'a [f32], f64);

/// The sums of the first models, at most [`GROUP`] of them.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn sum_first(sums: &mut [f64], models: &[Weighted<'_>]) {
    match *models {
        [a] => sum::<1, true>(sums, [a]),
        [a, b] => sum::<2, true>(sums, [a, b]),
        [a, b, c] => sum::<3, true>(sums, [a, b, c]),
        [a, b, c, d] => sum::<GROUP, true>(sums, [a, b, c, d]),
        _ => unreachable!("the first group has 1 to 4 models, not {}", models.len()),
    }
}

/// Adds [`GROUP`] models to the sums.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn add_group(sums: &mut [f64], models: &[Weighted<'_>; GROUP]) {
    sum::<GROUP, false>(sums, *models);
}

/// Adds models in their order; `FIRST` of all to nothing.
#[inline(always)]
fn sum<const MODELS: usize, const FIRST: bool>(sums: &mut [f64], models: [Weighted<'_>; MODELS]) {
    // Slices of visibly equal length, so that the loop has no bounds checks.
    let len = sums.len();
    let models = models.map(|(values, weight)| (&values[..len], weight));
    for i in 0..len {
        let mut sum = sums[i];
        for (nth, (values, weight)) in models.iter().enumerate() {
            let part = weight * f64::from(values[i]);
            sum = if FIRST && nth == 0 { part } else { sum + part };
        }
        sums[i] = sum;
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn divide(into: &mut [f32], sums: &[f64], total: f64) {
    for (value, sum) in into.iter_mut().zip(sums) {
        *value = (sum / total) as f32;
    }
}

/// Partial sums of a reduction: value `i` goes to lane `i mod LANES`. Changing it changes the
/// result's last bits.
const LANES: usize = 32;

/// `Σ xᵢ²`. It is finite if and only if every value is: squares of `f32` do not overflow `f64`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
pub(super) fn sum_of_squares(values: &[f32]) -> f64 {
    let mut lanes = [0f64; LANES];
    let mut blocks = values.chunks_exact(LANES);
    for block in &mut blocks {
        for (lane, value) in lanes.iter_mut().zip(block) {
            let value = f64::from(*value);
            *lane += value * value;
        }
    }
    for (lane, value) in lanes.iter_mut().zip(blocks.remainder()) {
        let value = f64::from(*value);
        *lane += value * value;
    }
    lanes.iter().sum()
}

/// `Σ (aᵢ − bᵢ)²` over slices of equal length.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn sum_of_squared_differences(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0f64; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            let difference = f64::from(*a) - f64::from(*b);
            *lane += difference * difference;
        }
    }
    lanes.iter().sum()
}

/// Squared ℓ2 distance of two models of one layout, without buffers; the same bits on every machine.
/// `None` if the layouts differ.
pub fn squared_distance(a: &Params, b: &Params) -> Option<f64> {
    let layout = a.layout();
    (layout == b.layout()).then(|| {
        layout
            .tensors()
            .iter()
            .enumerate()
            .filter(|(_, tensor)| tensor.role != Role::Buffer)
            .map(|(index, _)| {
                let range = layout.range(index);
                sum_of_squared_differences(&a.values()[range.clone()], &b.values()[range])
            })
            .sum()
    })
}

#[cfg(test)]
mod tests;
