//! A step from a start model along a linear combination of updates.

use multiversion::multiversion;
use rayon::prelude::*;

use super::AggregationError;
use super::models::is_finite;
use crate::params::Params;

/// Values per block.
const BLOCK: usize = 1 << 12;

/// Number of values (over all models) from which several threads are faster than one.
const PARALLEL: usize = 1 << 21;

/// `θ + Σ a_k (x_k − θ)`: the start model θ plus the models' updates times their coefficients,
/// summed in `f64` in the given order. Coefficients need not sum to 1 (MaxFL's do not).
///
/// # Errors
/// [`AggregationError::Layout`] for a model of another layout; [`AggregationError::Diverged`] if
/// the result is not finite, because a value or a coefficient is not or the step is too
/// large.
pub fn step(start: &Params, moves: &[(&Params, f64)]) -> Result<Params, AggregationError> {
    if moves
        .iter()
        .any(|(model, _)| model.layout() != start.layout())
    {
        return Err(AggregationError::Layout);
    }
    let moves: Vec<_> = moves
        .iter()
        .map(|(model, coefficient)| (model.values(), *coefficient))
        .collect();
    let moved = Params::build(start.layout(), |into| {
        let work = into.len() * (moves.len() + 1);
        let fill = |sums: &mut Vec<f64>, (block, into): (usize, &mut [f32])| {
            let range = block * BLOCK..block * BLOCK + into.len();
            let from = &start.values()[range.clone()];
            let sums = &mut sums[..into.len()];
            sums.fill(0.0);
            for (values, coefficient) in &moves {
                add_update(sums, from, &values[range.clone()], *coefficient);
            }
            for ((into, from), sum) in into.iter_mut().zip(from).zip(sums) {
                *into = (f64::from(*from) + *sum) as f32;
            }
        };
        let sums = || vec![0f64; BLOCK];
        if work < PARALLEL {
            let mut sums = sums();
            into.chunks_mut(BLOCK)
                .enumerate()
                .for_each(|block| fill(&mut sums, block));
        } else {
            into.par_chunks_mut(BLOCK)
                .enumerate()
                .for_each_init(sums, fill);
        }
    });
    if is_finite(&moved) {
        Ok(moved)
    } else {
        Err(AggregationError::Diverged)
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn add_update(sums: &mut [f64], from: &[f32], values: &[f32], coefficient: f64) {
    for ((sum, from), value) in sums.iter_mut().zip(from).zip(values) {
        *sum += coefficient * (f64::from(*value) - f64::from(*from));
    }
}
