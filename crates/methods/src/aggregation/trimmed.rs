//! Coordinate-wise trimmed mean.

use multiversion::multiversion;

use super::columns::by_value;
use super::models::Models;
use super::network::{LaneRow, value, value_and_model};
use crate::params::Params;

/// The weighted mean of every coordinate without its `⌊share·n⌋` smallest and `⌊share·n⌋` largest
/// values; `share` is in `[0, ½)`.
pub(super) fn trimmed_mean(models: &Models, share: f64) -> Params {
    let count = models.len();
    let cut = left_out_at_each_end(share, count);
    let kept = cut..count - cut;
    let rows = models.rows(0, models.layout().len());
    let weights = models.weights();
    Params::build(models.layout(), |into| {
        if models.are_equally_weighted() {
            by_value(into, &rows, kept.clone(), |columns: &[LaneRow<i32>]| {
                mean(&columns[kept.clone()])
            });
        } else {
            by_value(into, &rows, kept.clone(), |columns: &[LaneRow<i64>]| {
                weighted_mean(&columns[kept.clone()], weights)
            });
        }
    })
}

/// `⌊share·count⌋`, with a margin for shares such as 0.29 that have no exact binary representation.
pub(super) fn left_out_at_each_end(share: f64, count: usize) -> usize {
    (share * count as f64 + 1e-9) as usize
}

/// The mean of every column, summed from the smallest value on.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn mean(columns: &[LaneRow<i32>]) -> LaneRow<f32> {
    // Start from the first value, not from zero, so that −0 stays −0.
    let mut sums = columns[0].map(|cell| f64::from(value(cell)));
    for column in &columns[1..] {
        for (sum, cell) in sums.iter_mut().zip(column) {
            *sum += f64::from(value(*cell));
        }
    }
    sums.map(|sum| (sum / columns.len() as f64) as f32)
}

/// The weighted mean of every column, summed from the smallest value on.
fn weighted_mean(columns: &[LaneRow<i64>], weights: &[f64]) -> LaneRow<f32> {
    std::array::from_fn(|lane| {
        let terms = columns.iter().map(|column| {
            let (value, model) = value_and_model(column[lane]);
            (weights[model] * f64::from(value), weights[model])
        });
        let (sum, total) = terms
            .reduce(|(sum, total), (term, weight)| (sum + term, total + weight))
            .expect("share is below ½, so at least one value is left");
        (sum / total) as f32
    })
}
