//! Factors of symmetric positive definite matrices, by Cholesky.

use crate::matrix::Matrix;

/// A pivot below this part of its diagonal entry counts as 0.
const SINGULAR: f64 = 1e-12;

/// The lower triangular factor `L` of `L·Lᵀ`.
pub(super) struct Factor(Matrix);

impl Factor {
    /// The factor of a matrix, of which the lower triangle is read; `None` where it is not positive definite.
    pub(super) fn of(matrix: &Matrix) -> Option<Self> {
        let width = matrix.rows();
        let mut lower = Matrix::zeros(width, width);
        for row in 0..width {
            for column in 0..=row {
                let done: f64 = (0..column)
                    .map(|k| lower[(row, k)] * lower[(column, k)])
                    .sum();
                let left = matrix[(row, column)] - done;
                lower[(row, column)] = if row == column {
                    let holds = left > SINGULAR * matrix[(row, row)] && left.is_finite();
                    holds.then(|| left.sqrt())?
                } else {
                    left / lower[(column, column)]
                };
            }
        }
        Some(Self(lower))
    }

    /// The solution of the system with this right-hand side.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let (lower, width) = (&self.0, right.len());
        let mut solved = right.to_vec();
        for at in 0..width {
            let done: f64 = (0..at).map(|k| lower[(at, k)] * solved[k]).sum();
            solved[at] = (solved[at] - done) / lower[(at, at)];
        }
        for at in (0..width).rev() {
            let done: f64 = (at + 1..width).map(|k| lower[(k, at)] * solved[k]).sum();
            solved[at] = (solved[at] - done) / lower[(at, at)];
        }
        solved
    }

    /// The inverse.
    pub(super) fn inverse(&self) -> Matrix {
        let width = self.0.rows();
        let unit = |column: usize| {
            let unit: Vec<f64> = (0..width)
                .map(|row| f64::from(u8::from(row == column)))
                .collect();
            self.solve(&unit)
        };
        let columns: Vec<Vec<f64>> = (0..width).map(unit).collect();
        Matrix::from_fn(width, width, |row, column| columns[column][row])
    }

    /// The logarithm of the determinant, for a site's own numbers.
    pub(super) fn log_determinant(&self) -> f64 {
        let each = (0..self.0.rows()).map(|at| libm::log(self.0[(at, at)]));
        2.0 * each.sum::<f64>()
    }
}

/// The product of two square matrices.
pub(super) fn product(left: &Matrix, right: &Matrix) -> Matrix {
    let width = left.rows();
    Matrix::from_fn(width, width, |row, column| {
        (0..width)
            .map(|k| left[(row, k)] * right[(k, column)])
            .sum()
    })
}

/// The upper triangle, row by row.
pub(super) fn triangle(matrix: &Matrix) -> Vec<f64> {
    let width = matrix.rows();
    (0..width)
        .flat_map(|row| (row..width).map(move |column| matrix[(row, column)]))
        .collect()
}

/// The symmetric matrix of an upper triangle of this width; `None` for another number of entries.
pub(super) fn from_triangle(entries: &[f64], width: usize) -> Option<Matrix> {
    if entries.len() != width * (width + 1) / 2 {
        return None;
    }
    let mut matrix = Matrix::zeros(width, width);
    let mut entries = entries.iter();
    for row in 0..width {
        for column in row..width {
            let entry = *entries.next()?;
            matrix[(row, column)] = entry;
            matrix[(column, row)] = entry;
        }
    }
    Some(matrix)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn factors_solve_invert_and_know_the_determinant() {
        let rows = [[4.0, 2.0, 0.0], [2.0, 3.0, 1.0], [0.0, 1.0, 2.0]];
        let matrix = Matrix::from_rows(&rows).unwrap();
        let determinant = 4.0 * (3.0 * 2.0 - 1.0) - 2.0 * (2.0 * 2.0 - 0.0);
        let factor = Factor::of(&matrix).unwrap();
        assert!((factor.log_determinant() - libm::log(determinant)).abs() < 1e-14);
        let identity = product(&matrix, &factor.inverse());
        for row in 0..3 {
            for column in 0..3 {
                let expected = f64::from(u8::from(row == column));
                assert!((identity[(row, column)] - expected).abs() < 1e-15);
            }
        }
        let solved = factor.solve(&[2.0, 1.0, -1.0]);
        let back: f64 = (0..3).map(|k| matrix[(1, k)] * solved[k]).sum();
        assert!((back - 1.0).abs() < 1e-14);
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_no_factor() {
        let of = |rows: [[f64; 2]; 2]| Factor::of(&Matrix::from_rows(&rows).unwrap()).is_some();
        assert!(of([[1.0, 0.5], [0.5, 1.0]]));
        assert!(!of([[1.0, 1.0], [1.0, 1.0]]));
        assert!(!of([[-1.0, 0.0], [0.0, 1.0]]));
        assert!(!of([[f64::NAN, 0.0], [0.0, 1.0]]));
        assert!(!of([[f64::INFINITY, 0.0], [0.0, 1.0]]));
    }

    #[test]
    fn triangles_are_read_as_they_are_written() {
        let matrix = Matrix::from_fn(3, 3, |row, column| (row + column) as f64);
        let entries = triangle(&matrix);
        assert_eq!(entries, [0.0, 1.0, 2.0, 2.0, 3.0, 4.0]);
        assert_eq!(from_triangle(&entries, 3), Some(matrix));
        assert_eq!(from_triangle(&entries, 2), None);
    }
}
