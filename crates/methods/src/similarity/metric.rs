//! Similarities of models.

use serde::{Deserialize, Serialize};

use super::gram::symmetric;
use super::{CompareError, Rows, gram, gram_f64, pairs, squared_distances, squared_distances_f64};
use crate::Matrix;

/// How alike two models are: larger is more alike (Ma et al. 2024, section 3.2 and appendix D).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// `⟨θ_k, θ_l⟩`. Used in all the paper's experiments.
    #[default]
    Dot,
    /// `⟨θ_k, θ_l⟩ / (‖θ_k‖·‖θ_l‖)`, in `[-1, 1]`; 0 where a vector is zero.
    Cosine,
    /// `−‖θ_k − θ_l‖₁`.
    L1,
    /// `−‖θ_k − θ_l‖₂`.
    L2,
}

/// Why there is no similarity matrix of this Gram matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FromGramError {
    /// A Gram matrix has as many columns as rows.
    #[error("a Gram matrix must be square, this one is {rows} × {columns}")]
    NotSquare {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// An entry that is NaN or infinite.
    #[error("the entry in row {row}, column {column} of the Gram matrix is not finite")]
    NotFinite {
        /// Which row, from 0.
        row: usize,
        /// Which column, from 0.
        column: usize,
    },
    /// ℓ1 distances do not follow from inner products.
    #[error("the l1 similarity needs the models themselves: use dot, cosine or l2")]
    NeedsRows,
}

impl Metric {
    /// The raw similarity of all rows, `n × n`, symmetric; the diagonal is that of every row with
    /// itself.
    ///
    /// Dot and cosine are as accurate as [`gram()`], ℓ2 as [`squared_distances`] (in relative
    /// terms: near-equal models keep their order), ℓ1 is computed in `f64`.
    ///
    /// # Errors
    /// [`CompareError`] if a value is not finite.
    pub fn similarity(self, rows: &Rows<'_>) -> Result<Matrix, CompareError> {
        match self {
            Self::Dot => gram(rows),
            Self::Cosine => Ok(cosines(&gram(rows)?)),
            Self::L1 => taxicab(rows),
            Self::L2 => Ok(roots(squared_distances(rows)?)),
        }
    }

    /// [`Self::similarity`] in plain `f64`: the same bits on every machine.
    ///
    /// # Errors
    /// [`CompareError`] if a value, or what is computed from them, is not finite.
    pub fn similarity_f64<T>(self, rows: &Rows<'_, T>) -> Result<Matrix, CompareError>
    where
        T: Copy + Into<f64> + Sync,
    {
        match self {
            Self::Dot => gram_f64(rows),
            Self::Cosine => Ok(cosines(&gram_f64(rows)?)),
            Self::L1 => taxicab(rows),
            Self::L2 => Ok(roots(squared_distances_f64(rows)?)),
        }
    }

    /// The same from the rows' Gram matrix alone, for points that are not at hand themselves, such
    /// as centroids. ℓ2 loses what digits the difference `G_ii + G_jj − 2·G_ij` loses.
    ///
    /// # Errors
    /// [`FromGramError`] on a matrix that is no Gram matrix, and for ℓ1.
    pub fn from_gram(self, gram: &Matrix) -> Result<Matrix, FromGramError> {
        let (rows, columns) = (gram.rows(), gram.columns());
        if !gram.is_square() {
            return Err(FromGramError::NotSquare { rows, columns });
        }
        if let Some(place) = gram.values().iter().position(|value| !value.is_finite()) {
            let (row, column) = (place / columns, place % columns);
            return Err(FromGramError::NotFinite { row, column });
        }
        match self {
            Self::Dot => Ok(gram.clone()),
            Self::Cosine => Ok(cosines(gram)),
            Self::L1 => Err(FromGramError::NeedsRows),
            Self::L2 => Ok(roots(Matrix::from_fn(rows, columns, |i, j| {
                gram[(i, i)] + gram[(j, j)] - 2.0 * gram[(i, j)]
            }))),
        }
    }
}

/// Negated square roots of what may have come out below zero by rounding.
fn roots(mut squares: Matrix) -> Matrix {
    for value in squares.values_mut() {
        *value = 0.0 - value.max(0.0).sqrt();
    }
    squares
}

fn taxicab<T: Copy + Into<f64> + Sync>(rows: &Rows<'_, T>) -> Result<Matrix, CompareError> {
    let all = pairs::all(rows.len());
    let mut sums = rows.finite(pairs::sums(rows, &all, pairs::distances))?;
    for sum in &mut sums {
        *sum = 0.0 - *sum;
    }
    Ok(symmetric(rows.len(), &all, &sums))
}

fn cosines(gram: &Matrix) -> Matrix {
    let norms: Vec<_> = (0..gram.rows())
        .map(|row| gram[(row, row)].max(0.0).sqrt())
        .collect();
    Matrix::from_fn(gram.rows(), gram.columns(), |i, j| {
        if norms[i] == 0.0 || norms[j] == 0.0 {
            0.0
        } else if i == j {
            1.0
        } else {
            // One after the other: the product of two norms may be too small to be a number. The
            // larger one first, so that both halves get the same bits.
            let (large, small) = (norms[i].max(norms[j]), norms[i].min(norms[j]));
            (gram[(i, j)] / large / small).clamp(-1.0, 1.0)
        }
    })
}

#[cfg(test)]
mod tests;
