//! Symmetric matrices with operations in a fixed order: `+ − × ÷ √` only, so all who compute get the same bits.

mod eigen;
mod symmetric;

pub use eigen::EigenPairs;
pub use symmetric::Symmetric;

/// The sum of products of two vectors.
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}
