//! A linear model from one differentially private sum: what every row adds to it, and how the model is solved from it.
//!
//! # The idea
//!
//! Least squares needs no steps. With a 1 behind the features of every row, for the intercept, all that
//! matters of the rows x̃ and their targets y are two sums: A = Σ x̃x̃ᵀ and b = Σ x̃y. So silos send these
//! sums, masked and with noise, once, and every member solves the model from the opened sum of all.
//!
//! # What one row changes
//!
//! ```text
//! x is shortened to norm √(R² − 1), so that x̃ = (x, 1) has norm R at most; y is brought within ±Y
//! numbers of a row: x̃ᵢx̃ᵢ, √2·x̃ᵢx̃ⱼ for i < j, x̃ᵢy        p(p + 3)/2 of p = features + 1
//! C = √(R⁴ + R²Y²) = R·√(R² + Y²)
//! ```
//!
//! A is symmetric, so its upper triangle is enough. An entry off the diagonal stands twice in the
//! matrix: the factor √2 makes the norm of the triangle that of the whole matrix (its Frobenius norm),
//! which is ‖x̃‖². So the numbers of a row have norm √(‖x̃‖⁴ + ‖x̃‖²y²) ≤ C. They are clipped to C,
//! rounded and added as the vector of any unit ([`sensitivity`](crate::sensitivity)); the numbers of all
//! rows of a person are added first, and clipped together.
//!
//! # How the model follows
//!
//! Noise can make the matrix of the sum one that no rows have. So its negative eigenvalues count as
//! zero, and an agreed ridge λ > 0 is added to all: with N rows and A/N = QΛQᵀ
//!
//! ```text
//! w = Q·diag(1 / (max(Λ, 0) + λ))·Qᵀ·(b/N)
//! ```
//!
//! Without noise this is ridge regression, of which the intercept is pulled towards 0 as the weights are.
//! Every member computes the same bits: plain loops over `f64` in a fixed order, with nothing but the
//! operations that IEEE 754 rounds exactly.
//!
//! ```
//! use privacy::least_squares::{RowProducts, RowNorms};
//!
//! // y = 0.5·x, in rows of norm 2 at most.
//! let products = RowProducts::new(1, RowNorms::new(2.0, 1.0)?)?;
//! let clip = products.clip();
//! let mut sum = vec![0; products.numbers()];
//! for x in [-1.0_f32, -0.5, 0.5, 1.0] {
//!     let mut row = vec![0.0; products.numbers()];
//!     products.add(&[x], 0.5 * f64::from(x), &mut row);
//!     clip.add(&row, &mut sum)?;
//! }
//! let model = products.solve(&sum, clip.step(), 4, 1e-6);
//! assert!((model[0] - 0.5).abs() < 0.01 && model[1].abs() < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod eigen;

use std::f64::consts::SQRT_2;

use crate::sensitivity::{Clip, Sensitivity};
pub use eigen::Eigen;

/// The most features: the numbers of a row grow with their square, and the time to solve with their cube.
pub const MOST_FEATURES: usize = 256;

/// The least ridge is this part of R².
const LEAST_RIDGE: f64 = 1e-9;

/// Norms and targets between these give a C that can be clipped to.
const RANGE: (f64, f64) = (1e-20, 1e20);

/// Bounds that no row can keep to.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RowNormsError {
    /// R.
    #[error(
        "rows shortened to norm {0}: with the 1 for the intercept the norm must be above 1, and at most 1e20"
    )]
    Rows(f64),
    /// Y.
    #[error("targets within {0}: the bound must be between 1e-20 and 1e20")]
    Targets(f64),
}

/// Rows of too many features, or of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a linear model of {0} features: to be solved from one sum it must have between 1 and {MOST_FEATURES}"
)]
pub struct FeaturesError(pub usize);

/// R and Y: how long rows and targets may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowNorms {
    rows: f64,
    targets: f64,
}

impl RowNorms {
    /// R, the norm of a row with its 1 for the intercept, and Y, the largest size of a target.
    ///
    /// # Errors
    ///
    /// If one is out of range.
    pub fn new(rows: f64, targets: f64) -> Result<Self, RowNormsError> {
        if !(rows > 1.0 && rows <= RANGE.1) {
            return Err(RowNormsError::Rows(rows));
        }
        if !(RANGE.0..=RANGE.1).contains(&targets) {
            return Err(RowNormsError::Targets(targets));
        }
        Ok(Self { rows, targets })
    }

    /// R.
    pub fn rows(self) -> f64 {
        self.rows
    }

    /// Y.
    pub fn targets(self) -> f64 {
        self.targets
    }

    /// C, the largest norm of the numbers of a row.
    pub fn clip(self) -> f64 {
        self.rows * (self.rows * self.rows + self.targets * self.targets).sqrt()
    }
}

/// Contributions of rows of so many features to the sums, see the [module](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowProducts {
    features: usize,
    norms: RowNorms,
}

impl RowProducts {
    /// Of rows within these norms.
    ///
    /// # Errors
    ///
    /// If there are no features, or more than [`MOST_FEATURES`].
    pub fn new(features: usize, norms: RowNorms) -> Result<Self, FeaturesError> {
        if features == 0 || features > MOST_FEATURES {
            return Err(FeaturesError(features));
        }
        Ok(Self { features, norms })
    }

    /// p: the weights, and the intercept.
    fn width(self) -> usize {
        self.features + 1
    }

    /// p(p + 3)/2, how many numbers a row adds.
    pub fn numbers(self) -> usize {
        let width = self.width();
        width * (width + 3) / 2
    }

    /// Returns what clips and rounds the numbers of a unit.
    pub fn clip(self) -> Clip {
        let sensitivity = Sensitivity::new(self.numbers() as u64);
        let sensitivity = sensitivity.expect("at most 33,000 numbers");
        Clip::new(self.norms.clip(), sensitivity).expect("C of norms in range is one")
    }

    /// Adds the numbers of one row to those of its unit: first the upper triangle of x̃x̃ᵀ row by row, then
    /// x̃y. A number that is not finite stays so, and its unit counts as zero.
    ///
    /// # Panics
    ///
    /// If the row has another number of features, or `numbers` another length.
    pub fn add(self, features: &[f32], target: f64, numbers: &mut [f64]) {
        assert_eq!(features.len(), self.features, "features of a row");
        assert_eq!(numbers.len(), self.numbers(), "numbers of a unit");
        let mut row: Vec<f64> = features.iter().map(|value| f64::from(*value)).collect();
        let square = row.iter().fold(0.0, |sum, value| sum + value * value);
        let most = self.norms.rows * self.norms.rows - 1.0;
        if square > most {
            let factor = (most / square).sqrt();
            row.iter_mut().for_each(|value| *value *= factor);
        }
        row.push(1.0);
        let target = target.clamp(-self.norms.targets, self.norms.targets);
        let mut numbers = numbers.iter_mut();
        for (at, left) in row.iter().enumerate() {
            for (off, (right, number)) in row[at..].iter().zip(&mut numbers).enumerate() {
                *number += left * right * if off == 0 { 1.0 } else { SQRT_2 };
            }
        }
        for (left, number) in row.iter().zip(numbers) {
            *number += left * target;
        }
    }

    /// λ where none is agreed on, from public numbers alone. Noise with a standard deviation of `noise` in
    /// every number of a sum of `rows` rows makes eigenvalues of about noise·√(2p)/rows out of nothing
    /// (Wigner's semicircle, the noise off the diagonal being divided by √2): the ridge is as large.
    pub fn ridge(self, noise: f64, rows: u64) -> f64 {
        let spread = noise * (2.0 * self.width() as f64).sqrt() / rows as f64;
        spread.max(LEAST_RIDGE * self.norms.rows * self.norms.rows)
    }

    /// The weights of the features, then the intercept, from the opened sum of this many rows; `step` is that
    /// of the clipping ([`Clip::step`]).
    ///
    /// # Panics
    ///
    /// If the sum has another length than [`numbers`](Self::numbers).
    pub fn solve(self, sum: &[i64], step: f64, rows: u64, ridge: f64) -> Vec<f64> {
        assert_eq!(sum.len(), self.numbers(), "numbers of a sum");
        let width = self.width();
        let mean = |integer: &i64| *integer as f64 * step / rows as f64;
        let mut numbers = sum.iter().map(mean);
        let mut matrix = vec![0.0; width * width];
        for at in 0..width {
            for (to, number) in (at..width).zip(&mut numbers) {
                let entry = if to == at { number } else { number / SQRT_2 };
                matrix[at * width + to] = entry;
                matrix[to * width + at] = entry;
            }
        }
        let targets: Vec<f64> = numbers.collect();
        let eigen = Eigen::of(matrix, width);
        let mut model = vec![0.0; width];
        for (value, vector) in eigen.pairs() {
            let along = (vector.iter().zip(&targets)).fold(0.0, |sum, (a, b)| sum + a * b);
            let part = along / (value.max(0.0) + ridge);
            for (weight, entry) in model.iter_mut().zip(vector) {
                *weight += part * entry;
            }
        }
        model
    }
}

#[cfg(test)]
mod tests;
