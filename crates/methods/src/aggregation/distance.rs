//! Squared ℓ2 distances between models, without buffers: `f64` sums in a fixed order and no fused
//! operations, so that every machine chooses the same models.
//!
//! Distances are not computed from a Gram matrix: beside an outlier of 1e30,
//! `‖a‖² + ‖b‖² − 2⟨a, b⟩` cancels completely.

use std::ops::Range;

use multiversion::multiversion;
use rayon::prelude::*;

use super::buffers::counted;
use super::models::Models;
use crate::matrix::Matrix;
use crate::params::{Layout, Params, squared_distance};

/// Values per block: a block of a hundred models fits into the level-2 cache while all pairs are
/// computed. Changing it, [`PIECE`] or [`LANES`] changes the result's last bits.
const BLOCK: usize = 1 << 9;

/// Blocks per piece of work for one thread.
const PIECE: usize = 1 << 9;

/// Partial sums per sum: value `i` of a block is added to lane `i mod LANES`.
const LANES: usize = 32;

/// ℓ2 distances of all models from `centre`, which has their layout.
pub(super) fn from_centre(models: &Models, centre: &Params) -> Vec<f64> {
    let all = models.models().par_iter();
    all.map(|model| distance(model, centre)).collect()
}

/// ℓ2 distance of two models of one layout.
pub(super) fn distance(a: &Params, b: &Params) -> f64 {
    squared_distance(a, b)
        .expect("Models::new checks that all models have one layout")
        .sqrt()
}

/// Squared ℓ2 distances of all models from each other: symmetric, 0 on the diagonal.
pub(super) fn pairwise(models: &Models) -> Matrix {
    let count = models.len();
    let pieces: Vec<Vec<f64>> = blocks(models.layout())
        .par_chunks(PIECE)
        .map(|blocks| {
            let mut sums = vec![0.0; count * (count - 1) / 2];
            let mut wide = vec![0.0; count * BLOCK];
            for block in blocks {
                let rows = models.rows(block.start, block.len());
                for (wide, row) in wide.chunks_exact_mut(BLOCK).zip(rows) {
                    widen(wide, row);
                }
                let mut rest = sums.as_mut_slice();
                for first in 0..count {
                    let (own, after) = rest.split_at_mut(count - first - 1);
                    add_squared_distances(own, &wide[first * BLOCK..]);
                    rest = after;
                }
            }
            sums
        })
        .collect();
    let mut distances = Matrix::zeros(count, count);
    let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
    for (position, (i, j)) in pairs.enumerate() {
        let sum: f64 = pieces.iter().map(|piece| piece[position]).sum();
        distances[(i, j)] = sum;
        distances[(j, i)] = sum;
    }
    distances
}

/// The ranges of weights and biases, cut into blocks.
fn blocks(layout: &Layout) -> Vec<Range<usize>> {
    counted(layout)
        .flat_map(|Range { start, end }| {
            let starts = (start..end).step_by(BLOCK);
            starts.map(move |start| start..end.min(start + BLOCK))
        })
        .collect()
}

/// Converts values to `f64` and fills the rest of the block with zeros.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn widen(into: &mut [f64], values: &[f32]) {
    let (with, without) = into.split_at_mut(values.len());
    for (into, value) in with.iter_mut().zip(values) {
        *into = f64::from(*value);
    }
    without.fill(0.0);
}

/// Adds to the sums the squared distances of the first block from each of the others.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn add_squared_distances(sums: &mut [f64], blocks: &[f64]) {
    let (first, others) = blocks.split_at(BLOCK);
    for (sum, other) in sums.iter_mut().zip(others.chunks_exact(BLOCK)) {
        let mut lanes = [0f64; LANES];
        for (a, b) in first.chunks_exact(LANES).zip(other.chunks_exact(LANES)) {
            for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
                let difference = a - b;
                *lane += difference * difference;
            }
        }
        *sum += lanes.iter().sum::<f64>();
    }
}
