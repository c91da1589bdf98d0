//! Small dense matrices of losses, similarities or graphs. Models are [`Params`](crate::Params).

use std::ops::{Index, IndexMut};

/// A dense `rows × columns` matrix of `f64`, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

/// Rows of different lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("row {row} has {got} values, the first has {expected}")]
pub struct RaggedError {
    /// The row that differs, from 0.
    pub row: usize,
    /// The length of that row.
    pub got: usize,
    /// The length of the first row.
    pub expected: usize,
}

impl Matrix {
    /// A matrix with the entries `entry(row, column)`.
    pub fn from_fn(
        rows: usize,
        columns: usize,
        mut entry: impl FnMut(usize, usize) -> f64,
    ) -> Self {
        let values = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| entry(row, column))
            .collect();
        Self {
            rows,
            columns,
            values,
        }
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            values: vec![0.0; rows * columns],
        }
    }

    /// A matrix from its rows.
    ///
    /// # Errors
    /// [`RaggedError`] unless all rows have the same length.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<Self, RaggedError> {
        let expected = rows.first().map_or(0, |row| row.as_ref().len());
        let mut values = Vec::with_capacity(rows.len() * expected);
        for (row, entries) in rows.iter().map(AsRef::as_ref).enumerate() {
            if entries.len() != expected {
                let got = entries.len();
                return Err(RaggedError { row, got, expected });
            }
            values.extend_from_slice(entries);
        }
        Ok(Self {
            rows: rows.len(),
            columns: expected,
            values,
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// One row, mutable.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All values, row by row, mutable.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Returns whether the matrix has as many rows as columns.
    pub fn is_square(&self) -> bool {
        self.rows == self.columns
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.row(row)[column]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        &mut self.row_mut(row)[column]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_entries_have_their_positions() {
        let matrix = Matrix::from_fn(2, 3, |row, column| (10 * row + column) as f64);
        assert_eq!(matrix.row(1), [10.0, 11.0, 12.0]);
        assert_eq!(matrix[(0, 2)], 2.0);
        assert_eq!((matrix.rows(), matrix.columns()), (2, 3));
        let rows = [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]];
        assert_eq!(Matrix::from_rows(&rows), Ok(matrix));
    }

    #[test]
    fn ragged_rows_are_refused() {
        let rows = [vec![1.0, 2.0], vec![3.0]];
        let error = RaggedError {
            row: 1,
            got: 1,
            expected: 2,
        };
        assert_eq!(Matrix::from_rows(&rows), Err(error));
    }
}
