//! Coordinate median, also of the buffers for the distance-based rules.

use super::buffers::with_buffers;
use super::columns::by_value;
use super::models::Models;
use super::network::{LaneRow, value, value_and_model};
use crate::params::Params;

/// The weighted median of every coordinate over the models.
pub(super) fn coordinate_median(models: &Models) -> Params {
    Params::build(models.layout(), |into| median_into(into, models, 0))
}

/// `model` with its buffers replaced by the coordinate medians of `models`.
pub(super) fn with_median_buffers(model: Params, models: &Models) -> Params {
    with_buffers(model, |range, into| median_into(into, models, range.start))
}

/// The medians of the values from `start` on.
fn median_into(into: &mut [f32], models: &Models, start: usize) {
    let rows = models.rows(start, into.len());
    let count = rows.len();
    if models.are_equally_weighted() {
        let (low, high) = ((count - 1) / 2, count / 2);
        by_value(into, &rows, low..high + 1, |columns: &[LaneRow<i32>]| {
            std::array::from_fn(|lane| {
                middle(value(columns[low][lane]), value(columns[high][lane]))
            })
        });
    } else {
        let (weights, total) = (models.weights(), models.total());
        by_value(into, &rows, 0..count, |columns: &[LaneRow<i64>]| {
            std::array::from_fn(|lane| {
                let column = columns.iter().map(|column| value_and_model(column[lane]));
                let column = column.map(|(value, model)| (value, weights[model]));
                let (low, high) = weighted_median(column, total);
                middle(low, high)
            })
        });
    }
}

/// Relative tolerance when comparing sums of weights, which carry rounding errors.
const ROUNDING: f64 = 1e-12;

/// The lower and upper weighted median of values in ascending order: the smallest value at which
/// the cumulative weight is at least half of `total`, and the smallest at which it is more than
/// half. Weights are above 0 and sum to `total`.
///
/// # Panics
/// If there is no value, or the weights do not sum to `total`.
pub(super) fn weighted_median<T: Copy>(
    sorted: impl IntoIterator<Item = (T, f64)>,
    total: f64,
) -> (T, T) {
    let half = total / 2.0;
    let (mut below, mut reached) = (0.0, None);
    for (value, weight) in sorted {
        below += weight;
        if below > half * (1.0 + ROUNDING) {
            return (reached.unwrap_or(value), value);
        }
        if reached.is_none() && below >= half * (1.0 - ROUNDING) {
            reached = Some(value);
        }
    }
    unreachable!("the weights sum to the total, which is more than half of it")
}

/// The mean of two values, rounded once; of equal values (−0 included) the value itself.
fn middle(low: f32, high: f32) -> f32 {
    ((f64::from(low) + f64::from(high)) / 2.0) as f32
}
