//! The inverse of a grounded Laplacian in a fixed order of operations.
//!
//! It gives the same bits on every machine; linear algebra libraries do not, because they choose
//! kernels by processor.

use rayon::prelude::*;

use crate::Matrix;

/// The inverse of the Laplacian of a connected graph without its last row and column (the ground),
/// which are 0 in the result. Uses the Cholesky factorisation; the matrix is positive definite.
pub(super) fn grounded_inverse(laplacian: &Matrix) -> Matrix {
    let size = laplacian.rows();
    let free = size - 1;
    let factor = cholesky(laplacian, free);
    let mut inverse = Matrix::zeros(size, size);
    inverse
        .values_mut()
        .par_chunks_exact_mut(size)
        .take(free)
        .enumerate()
        .for_each(|(unit, solution)| {
            solution[unit] = 1.0;
            solve(&factor, unit, &mut solution[..free]);
        });
    inverse
}

/// The lower triangle `L` with `L·Lᵀ` the leading `size × size` part of a positive definite matrix.
fn cholesky(matrix: &Matrix, size: usize) -> Matrix {
    let mut factor = Matrix::zeros(size, size);
    for row in 0..size {
        for column in 0..row {
            let known = dot(&factor.row(row)[..column], &factor.row(column)[..column]);
            factor[(row, column)] = (matrix[(row, column)] - known) / factor[(column, column)];
        }
        let known = dot(&factor.row(row)[..row], &factor.row(row)[..row]);
        factor[(row, row)] = (matrix[(row, row)] - known).sqrt();
    }
    factor
}

/// Solves `L·Lᵀ·x = b` in place, where `b` is 0 before its entry `first`.
fn solve(factor: &Matrix, first: usize, x: &mut [f64]) {
    for row in first..x.len() {
        let known = dot(&factor.row(row)[first..row], &x[first..row]);
        x[row] = (x[row] - known) / factor[(row, row)];
    }
    for row in (0..x.len()).rev() {
        let (before, own) = x.split_at_mut(row);
        own[0] /= factor[(row, row)];
        for (x, factor) in before.iter_mut().zip(factor.row(row)) {
            *x -= own[0] * factor;
        }
    }
}

/// A dot product over eight independent partial sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f64>() + rest
}
