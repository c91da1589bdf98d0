//! A symmetric matrix, read and written as its upper triangle row by row.

use serde::{Deserialize, Serialize};

use super::EigenPairs;

/// A pivot below this part of its diagonal entry counts as 0.
const SINGULAR: f64 = 1e-13;

/// A symmetric matrix of `width` rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Symmetric {
    width: usize,
    entries: Vec<f64>,
}

impl Symmetric {
    /// A matrix of zeros.
    pub fn zeros(width: usize) -> Self {
        Self {
            width,
            entries: vec![0.0; width * width],
        }
    }

    /// The number of entries of an upper triangle.
    pub fn triangle_len(width: usize) -> usize {
        width * (width + 1) / 2
    }

    /// The matrix of an upper triangle, row by row.
    ///
    /// # Panics
    /// If the triangle has another number of entries.
    pub fn of_triangle(width: usize, triangle: &[f64]) -> Self {
        assert_eq!(
            triangle.len(),
            Self::triangle_len(width),
            "entries of a triangle"
        );
        let mut matrix = Self::zeros(width);
        let mut entries = triangle.iter();
        for row in 0..width {
            for column in row..width {
                matrix.set(row, column, entries.next().copied().unwrap_or_default());
            }
        }
        matrix
    }

    /// The upper triangle, row by row.
    pub fn triangle(&self) -> Vec<f64> {
        let rows = 0..self.width;
        rows.flat_map(|row| (row..self.width).map(move |column| self.at(row, column)))
            .collect()
    }

    /// Number of rows.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One entry.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.entries[row * self.width + column]
    }

    /// Sets an entry and its mirror image.
    pub fn set(&mut self, row: usize, column: usize, value: f64) {
        self.entries[row * self.width + column] = value;
        self.entries[column * self.width + row] = value;
    }

    /// Adds `weight` times the outer product of a vector with itself.
    pub fn add_outer(&mut self, weight: f64, vector: &[f64]) {
        for row in 0..self.width {
            for column in row..self.width {
                let value = self.at(row, column) + weight * vector[row] * vector[column];
                self.set(row, column, value);
            }
        }
    }

    /// Adds `weight` times another matrix.
    pub fn add(&mut self, weight: f64, other: &Self) {
        let pairs = self.entries.iter_mut().zip(&other.entries);
        pairs.for_each(|(entry, other)| *entry += weight * other);
    }

    /// The diagonal.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.width).map(|at| self.at(at, at)).collect()
    }

    /// The rows and columns of these numbers.
    pub fn part(&self, kept: &[usize]) -> Self {
        let mut part = Self::zeros(kept.len());
        for (row, &from) in kept.iter().enumerate() {
            for (column, &other) in kept.iter().enumerate() {
                part.set(row, column, self.at(from, other));
            }
        }
        part
    }

    /// The product with a vector.
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        let rows = self.entries.chunks_exact(self.width.max(1));
        rows.map(|row| super::dot(row, vector)).collect()
    }

    /// `self·middle·self`.
    pub fn sandwich(&self, middle: &Self) -> Self {
        let columns: Vec<Vec<f64>> = (0..self.width)
            .map(|at| self.times(&middle.times(self.row(at))))
            .collect();
        let mut product = Self::zeros(self.width);
        for row in 0..self.width {
            for (column, values) in columns.iter().enumerate().skip(row) {
                product.set(row, column, 0.5 * (values[row] + columns[row][column]));
            }
        }
        product
    }

    /// One row, which is also the column of this number.
    pub fn row(&self, at: usize) -> &[f64] {
        &self.entries[at * self.width..(at + 1) * self.width]
    }

    /// Eigenvalues and eigenvectors.
    pub fn eigen(&self) -> EigenPairs {
        EigenPairs::of(self.entries.clone(), self.width)
    }

    /// The lower factor of Cholesky, row by row; `None` where the matrix is not positive definite.
    fn factor(&self) -> Option<Vec<f64>> {
        let width = self.width;
        let mut lower = vec![0.0; width * width];
        for row in 0..width {
            for column in 0..=row {
                let done: f64 = (0..column)
                    .map(|k| lower[row * width + k] * lower[column * width + k])
                    .sum();
                let left = self.at(row, column) - done;
                lower[row * width + column] = if row == column {
                    let holds = left > SINGULAR * self.at(row, row) && left.is_finite();
                    holds.then(|| left.sqrt())?
                } else {
                    left / lower[column * width + column]
                };
            }
        }
        Some(lower)
    }

    /// The solution of the system with this right-hand side; `None` where the matrix is not positive definite.
    pub fn solve(&self, right: &[f64]) -> Option<Vec<f64>> {
        let lower = self.factor()?;
        Some(solve_with(&lower, self.width, right))
    }

    /// The inverse; `None` where the matrix is not positive definite.
    pub fn inverse(&self) -> Option<Self> {
        let lower = self.factor()?;
        let mut inverse = Self::zeros(self.width);
        for column in 0..self.width {
            let mut unit = vec![0.0; self.width];
            unit[column] = 1.0;
            let solved = solve_with(&lower, self.width, &unit);
            for (row, value) in solved.iter().enumerate().skip(column) {
                inverse.set(row, column, *value);
            }
        }
        Some(inverse)
    }

    /// The quadratic form `vᵀ·self⁻¹·v`; `None` where the matrix is not positive definite.
    pub fn inverse_form(&self, vector: &[f64]) -> Option<f64> {
        Some(super::dot(vector, &self.solve(vector)?))
    }
}

fn solve_with(lower: &[f64], width: usize, right: &[f64]) -> Vec<f64> {
    let entry = |row: usize, column: usize| lower[row * width + column];
    let mut solved = right.to_vec();
    for at in 0..width {
        let done: f64 = (0..at).map(|k| entry(at, k) * solved[k]).sum();
        solved[at] = (solved[at] - done) / entry(at, at);
    }
    for at in (0..width).rev() {
        let done: f64 = (at + 1..width).map(|k| entry(k, at) * solved[k]).sum();
        solved[at] = (solved[at] - done) / entry(at, at);
    }
    solved
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn inverse_solution_and_form_agree() {
        let matrix = Symmetric::of_triangle(3, &[4.0, 2.0, 0.0, 3.0, 1.0, 2.0]);
        let inverse = matrix.inverse().unwrap();
        for row in 0..3 {
            for column in 0..3 {
                let product = super::super::dot(matrix.row(row), inverse.row(column));
                assert!((product - f64::from(u8::from(row == column))).abs() < 1e-14);
            }
        }
        let solved = matrix.solve(&[1.0, 2.0, 3.0]).unwrap();
        assert!((matrix.times(&solved)[2] - 3.0).abs() < 1e-14);
        let form = matrix.inverse_form(&[1.0, 2.0, 3.0]).unwrap();
        assert!((form - super::super::dot(&solved, &[1.0, 2.0, 3.0])).abs() < 1e-14);
        assert_eq!(matrix.triangle(), [4.0, 2.0, 0.0, 3.0, 1.0, 2.0]);
        assert_eq!(matrix.part(&[0, 2]).triangle(), [4.0, 0.0, 2.0]);
    }

    #[test]
    fn a_singular_or_indefinite_matrix_has_no_inverse() {
        assert!(
            Symmetric::of_triangle(2, &[1.0, 1.0, 1.0])
                .inverse()
                .is_none()
        );
        assert!(
            Symmetric::of_triangle(2, &[1.0, 2.0, 1.0])
                .solve(&[1.0, 1.0])
                .is_none()
        );
        assert!(Symmetric::of_triangle(1, &[f64::NAN]).inverse().is_none());
    }

    #[test]
    fn a_sandwich_is_the_product_of_three() {
        let (bread, filling) = (
            Symmetric::of_triangle(2, &[1.0, 2.0, 3.0]),
            Symmetric::of_triangle(2, &[2.0, 0.0, 1.0]),
        );
        // By hand: [[1,2],[2,3]]·diag(2,1)·[[1,2],[2,3]].
        assert_eq!(bread.sandwich(&filling).triangle(), [6.0, 10.0, 17.0]);
    }
}
