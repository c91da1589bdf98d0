//! Rows with fewer of them than features, in as many coordinates as there are rows.
//!
//! A linear model of least loss that is penalised by the Euclidean norm of its weights is a combination of the rows
//! (the representer theorem: Schölkopf, Herbrich & Smola 2001). So it is found in the space that the rows span: the
//! same fit, whose time grows with the rows and hardly with the features.

use super::{LinearModel, Samples};
use crate::matrix::Matrix;

/// Fewest features for which it is worth while.
const WIDE: usize = 128;
/// Remainder of a row, as a share of its length, below which it depends on those before it.
const DEPENDENT: f64 = 1e-10;

/// An orthonormal basis of the space that rows span, and the rows in it.
pub(super) struct RowSpan {
    basis: Vec<Vec<f64>>,
    /// The rows, with as many coordinates as the basis has directions.
    pub(super) rows: Samples,
}

impl RowSpan {
    /// The span of rows that are fewer than their features; `None` of others, and of few features.
    pub(super) fn of_wide(rows: &Samples) -> Option<Self> {
        let features = rows.features();
        if features < WIDE || features <= rows.len() {
            return None;
        }
        let mut basis: Vec<Vec<f64>> = Vec::new();
        let mut coordinates: Vec<Vec<f64>> = Vec::new();
        for (x, _) in rows.iter() {
            let mut left = x.to_vec();
            let mut own = vec![0.0; basis.len()];
            // Once is not exact enough, twice is (Giraud et al. 2005).
            for _ in 0..2 {
                for (direction, own) in basis.iter().zip(&mut own) {
                    let along = dot(direction, &left);
                    *own += along;
                    let pairs = left.iter_mut().zip(direction);
                    pairs.for_each(|(left, direction)| *left -= along * direction);
                }
            }
            let length = dot(&left, &left).sqrt();
            if length > DEPENDENT * dot(x, x).sqrt() {
                left.iter_mut().for_each(|value| *value /= length);
                basis.push(left);
                own.push(length);
            }
            coordinates.push(own);
        }
        // Rows of zeros have no direction, and need one column all the same.
        let width = basis.len().max(1);
        let at = |row: usize, column: usize| coordinates[row].get(column).copied().unwrap_or(0.0);
        let rows = rows.with_features(Matrix::from_fn(rows.len(), width, at))?;
        Some(Self { basis, rows })
    }

    /// The model of all features that a model of the coordinates is.
    pub(super) fn model(&self, of: &LinearModel, features: usize) -> LinearModel {
        let mut weights = vec![0.0; features];
        for (direction, by) in self.basis.iter().zip(&of.weights) {
            let pairs = weights.iter_mut().zip(direction);
            pairs.for_each(|(weight, direction)| *weight += by * direction);
        }
        LinearModel {
            weights,
            intercept: of.intercept,
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::ridge::{PlainLoss, ridge_fit};
    use super::super::{FitConfig, RowLoss, TransportCost, fit};
    use super::*;

    /// Rows of numbers without a pattern, of which one is the sum of two others and one is zero.
    fn wide(rows: usize, features: usize) -> Samples {
        let number = |row: usize, column: usize| {
            ((row * 7919 + column * 104_729) % 1009) as f64 / 504.5 - 1.0
        };
        let of = |row: usize, column: usize| match row {
            2 => number(0, column) + number(1, column),
            3 => 0.0,
            row => number(row, column),
        };
        let labels = (0..rows).map(|row| if row % 3 == 0 { 1.0 } else { -1.0 });
        Samples::new(Matrix::from_fn(rows, features, of), labels.collect()).unwrap()
    }

    #[test]
    fn coordinates_keep_products_of_rows_and_outputs() {
        let rows = wide(9, 200);
        let span = RowSpan::of_wide(&rows).unwrap();
        assert_eq!(
            span.rows.features(),
            7,
            "two rows of nine have no direction of their own"
        );
        let full: Vec<&[f64]> = rows.iter().map(|(x, _)| x).collect();
        let short: Vec<&[f64]> = span.rows.iter().map(|(x, _)| x).collect();
        for a in 0..9 {
            for b in 0..9 {
                assert!((dot(full[a], full[b]) - dot(short[a], short[b])).abs() < 1e-9);
            }
        }
        let weights = (0..7).map(|at| f64::from(at) - 3.0).collect();
        let small = LinearModel {
            weights,
            intercept: 0.5,
        };
        let large = span.model(&small, 200);
        let norm = dot(&large.weights, &large.weights) - dot(&small.weights, &small.weights);
        assert!(norm.abs() < 1e-9);
        for (full, short) in full.iter().zip(short) {
            assert!((large.output(full) - small.output(short)).abs() < 1e-9);
        }
        assert!(RowSpan::of_wide(&wide(9, 100)).is_none());
        assert!(RowSpan::of_wide(&wide(300, 200)).is_none());
    }

    #[test]
    fn a_fit_in_the_span_has_no_slope_in_any_feature() {
        let rows = wide(12, 150);
        let centre = LinearModel {
            weights: (0..150).map(|at| f64::from(at % 3) / 50.0).collect(),
            intercept: 0.25,
        };
        let moved = |model: &LinearModel, at: usize, by: f64| {
            let mut model = model.clone();
            match model.weights.get_mut(at) {
                Some(weight) => *weight += by,
                None => model.intercept += by,
            }
            model
        };
        for loss in [PlainLoss::Logistic, PlainLoss::Squared] {
            let ridge = 0.1;
            let value = |model: &LinearModel| {
                let pairs = model.weights.iter().zip(&centre.weights);
                let squares: f64 = pairs
                    .map(|(own, centre)| (own - centre) * (own - centre))
                    .sum();
                loss.mean(&rows, model) + ridge / 2.0 * squares
            };
            let model = ridge_fit(&rows, loss, &centre, ridge).unwrap();
            for at in [0, 1, 77, 149, 150] {
                let slope =
                    (value(&moved(&model, at, 1e-5)) - value(&moved(&model, at, -1e-5))) / 2e-5;
                assert!(slope.abs() < 1e-6, "{loss:?} {at}: {slope}");
            }
        }
    }

    #[test]
    fn a_robust_fit_in_the_span_attains_its_bound() {
        let rows = wide(10, 140);
        let config = FitConfig {
            loss: RowLoss::Logistic,
            cost: TransportCost::default(),
            ridge: 0.05,
            intercept: true,
        };
        // The objective is computed on all features, and compared with the bound of the program.
        let found = fit(&rows, 0.1, &config).unwrap();
        assert_eq!(found.model.weights.len(), 140);
        assert!((found.objective - found.bound).abs() < 1e-5, "{found:?}");
    }
}
