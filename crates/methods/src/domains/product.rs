//! Products of small matrices, each entry summed in ascending order of the inner index.

use crate::Matrix;

/// `A·B`; `a` has as many columns as `b` has rows.
pub(super) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut result = Matrix::zeros(a.rows(), b.columns());
    for i in 0..a.rows() {
        for (k, &factor) in a.row(i).iter().enumerate() {
            add(result.row_mut(i), factor, b.row(k));
        }
    }
    result
}

/// `Aᵀ·B`; both have equally many rows.
pub(super) fn product_of_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    let mut result = Matrix::zeros(a.columns(), b.columns());
    for k in 0..a.rows() {
        for (i, &factor) in a.row(k).iter().enumerate() {
            add(result.row_mut(i), factor, b.row(k));
        }
    }
    result
}

/// `A·Bᵀ`; both have equally many columns.
pub(super) fn product_with_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows(), b.rows(), |i, j| {
        a.row(i).iter().zip(b.row(j)).map(|(a, b)| a * b).sum()
    })
}

fn add(sums: &mut [f64], factor: f64, row: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += factor * value;
    }
}
