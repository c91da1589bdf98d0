//! Similarities of models.

use serde::{Deserialize, Serialize};

use super::gram::symmetric;
use super::{
    CompareError, Vectors, gram, gram_f64, pairs, squared_distances, squared_distances_f64,
};
use crate::Matrix;

/// The metric of similarity; larger values are more similar (Ma et al. 2024, section 3.2 and appendix D).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SimilarityMetric {
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

impl SimilarityMetric {
    /// The raw similarities of all rows, `n × n`, symmetric; the diagonal holds the similarity of every
    /// row with itself.
    ///
    /// Dot and cosine are as accurate as [`gram()`]; ℓ2 as [`squared_distances`], whose relative error
    /// is small even for near-equal models; ℓ1 is computed in `f64`.
    ///
    /// # Errors
    /// [`CompareError`] if a value is not finite.
    pub fn similarity(self, rows: &Vectors<'_>) -> Result<Matrix, CompareError> {
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
    pub fn similarity_f64<T>(self, rows: &Vectors<'_, T>) -> Result<Matrix, CompareError>
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
}

/// Negated square roots; values below zero by rounding count as 0.
fn roots(mut squares: Matrix) -> Matrix {
    for value in squares.values_mut() {
        *value = 0.0 - value.max(0.0).sqrt();
    }
    squares
}

fn taxicab<T: Copy + Into<f64> + Sync>(rows: &Vectors<'_, T>) -> Result<Matrix, CompareError> {
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
            // Divide by one norm after the other: their product may underflow. The larger one first, so
            // that both halves of the matrix get the same bits.
            let (large, small) = (norms[i].max(norms[j]), norms[i].min(norms[j]));
            (gram[(i, j)] / large / small).clamp(-1.0, 1.0)
        }
    })
}

#[cfg(test)]
mod tests;
