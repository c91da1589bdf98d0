//! Squared Euclidean distances of all rows from all.

use super::gram::{floor, is_small, products, symmetric};
use super::{CompareError, Vectors, pairs};
use crate::Matrix;

/// Recompute a squared distance from the rows when it is below this part of `‖v_i‖² + ‖v_j‖²`:
/// cancellation would dominate.
const NEAR: f64 = 1.0 / 16.0;

/// `‖v_i − v_j‖²` for all pairs, `n × n`, symmetric, zero on the diagonal.
///
/// Computed from the Gram matrix of the centred rows (at the cost of [`gram()`](super::gram())). Pairs
/// closer to each other than about a third of their distance from the mean are recomputed from the
/// rows in `f64`, so that near-equal models have exact distances. The relative error of the others is
/// mostly `1e-7`, and up to `1e-5` if all rounding errors have the same sign.
///
/// The bits do not depend on the number of threads, but on the processor.
///
/// # Errors
/// [`CompareError`] if a value is not finite.
pub fn squared_distances(rows: &Vectors<'_>) -> Result<Matrix, CompareError> {
    if is_small(rows) {
        return squared_distances_f64(rows);
    }
    let mut squares = products(rows, true);
    let floor = floor(rows);
    let diagonal: Vec<_> = (0..rows.len()).map(|row| squares[(row, row)]).collect();
    let mut near = pairs::all(rows.len());
    // Keep diagonal pairs whose sum is not finite: they lead to the value that is not.
    near.retain(|&(i, j)| {
        let (i, j) = (i as usize, j as usize);
        let sum = diagonal[i] + diagonal[j];
        let square = sum - 2.0 * squares[(i, j)];
        squares[(i, j)] = if i == j { 0.0 } else { square };
        squares[(j, i)] = squares[(i, j)];
        let far = sum >= floor && square >= NEAR * sum && square.is_finite();
        !sum.is_finite() || i != j && !far
    });
    let exact = rows.finite(pairs::sums(rows, &near, pairs::squares))?;
    for (&(i, j), square) in near.iter().zip(exact) {
        let (i, j) = (i as usize, j as usize);
        squares[(i, j)] = square;
        squares[(j, i)] = square;
    }
    Ok(squares)
}

/// [`squared_distances`] in plain `f64`, from the rows: the same bits on every machine.
///
/// # Errors
/// [`CompareError`] if a value, or a squared distance, is not finite.
pub fn squared_distances_f64<T>(rows: &Vectors<'_, T>) -> Result<Matrix, CompareError>
where
    T: Copy + Into<f64> + Sync,
{
    let all = pairs::all(rows.len());
    let squares = rows.finite(pairs::sums(rows, &all, pairs::squares))?;
    Ok(symmetric(rows.len(), &all, &squares))
}
