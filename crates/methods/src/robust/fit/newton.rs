//! Plain logistic fits by Newton's method.
//!
//! Their loss is smooth, so a step costs one system with as many equations as the model has weights. The conic
//! program of the same fit has several variables and two cones for every row, and takes some eighty times as long.

use crate::matrix::Matrix;
use crate::robust::cholesky::solve;
use crate::robust::logistic::log_loss;
use crate::robust::{LinearModel, Samples};

/// Most steps. Newton's method takes five to ten from where curvature is known; far from there a step moves an
/// output by no more than about four.
const STEPS: usize = 10_000;
/// A fit is done when a further step promises a gain below this, relative to the loss plus 1.
const TOLERANCE: f64 = 1e-14;
/// It is also done below this, if rounding hides what a step gains.
const STALLED: f64 = 1e-9;
/// Added to a diagonal of ones, so that columns that depend on each other leave a system that can be solved.
const DAMPING: f64 = 1e-11;
/// A step is halved so often at most, until it gains what its slope promises.
const HALVINGS: usize = 20;
/// The share of the gain by the slope that is enough (Armijo's rule).
const ENOUGH: f64 = 1e-4;

/// The logistic model with an intercept of least mean loss plus `ridge / 2 · ‖θ‖²`, where the output of row `n`
/// begins at `offsets[n]`. Every function used is computed in the same way on every machine.
///
/// # Errors
/// No minimum was reached.
pub(super) fn logistic_ridge(
    rows: &Samples,
    ridge: f64,
    offsets: &[f64],
) -> Result<LinearModel, String> {
    let objective = Objective {
        rows,
        ridge,
        offsets,
    };
    let mut model = vec![0.0; rows.features() + 1];
    let mut value = objective.value(&model);
    let mut bound = None;
    for _ in 0..STEPS {
        let (gradient, curvature) = objective.slopes(&model);
        let newton = scaled_solve(curvature, &gradient);
        let gain = newton.as_ref().map(|step| dot(step, &gradient));
        let below = |least: f64| gain.is_some_and(|gain| gain <= least * (1.0 + value));
        if below(TOLERANCE) {
            return Ok(of_parts(model));
        }
        let shortened = newton.and_then(|step| objective.shortened(&model, value, &gradient, step));
        // Where outputs are so large that no curvature is left, its upper bound always leads down
        // (Böhning & Lindsay 1988).
        let next = shortened.or_else(|| {
            let bound: &Matrix = bound.get_or_insert_with(|| objective.bound());
            let step = scaled_solve(bound.clone(), &gradient)?;
            objective.shortened(&model, value, &gradient, step)
        });
        match next {
            Some(next) => (model, value) = next,
            None if below(STALLED) => return Ok(of_parts(model)),
            None => break,
        }
    }
    Err("no step leads to a smaller loss".into())
}

/// The model of its weights and, last, its intercept.
fn of_parts(mut parts: Vec<f64>) -> LinearModel {
    let intercept = parts.pop().unwrap_or_default();
    LinearModel {
        weights: parts,
        intercept,
    }
}

/// `mean log(1 + exp(−y · output)) + ridge / 2 · ‖θ‖²`, of models as their weights and, last, the intercept.
struct Objective<'a> {
    rows: &'a Samples,
    ridge: f64,
    offsets: &'a [f64],
}

impl Objective<'_> {
    /// Margins `y · output` of a model, with features and label of their rows.
    fn margins<'a>(&'a self, model: &'a [f64]) -> impl Iterator<Item = (&'a [f64], f64, f64)> {
        let rows = self.rows.iter().zip(self.offsets);
        rows.map(|((x, y), offset)| (x, y, y * (offset + dot(x, model) + model[x.len()])))
    }

    fn value(&self, model: &[f64]) -> f64 {
        let losses: f64 = self
            .margins(model)
            .map(|(_, _, margin)| log_loss(margin))
            .sum();
        let weights = &model[..self.rows.features()];
        losses / self.rows.len() as f64 + self.ridge / 2.0 * dot(weights, weights)
    }

    /// Gradient and second derivatives.
    fn slopes(&self, model: &[f64]) -> (Vec<f64>, Matrix) {
        let mut gradient = vec![0.0; model.len()];
        let mut curvature = Matrix::zeros(model.len(), model.len());
        let share = 1.0 / self.rows.len() as f64;
        for (x, y, margin) in self.margins(model) {
            // The probability of the other label.
            let wrong = 1.0 / (1.0 + libm::exp(margin));
            let slope = -y * wrong * share;
            add(&mut gradient, x, slope);
            add_square(&mut curvature, x, wrong * (1.0 - wrong) * share);
        }
        for (at, weight) in model[..self.rows.features()].iter().enumerate() {
            gradient[at] += self.ridge * weight;
            curvature[(at, at)] += self.ridge;
        }
        (gradient, curvature)
    }

    /// An upper bound of the second derivatives of every model.
    fn bound(&self) -> Matrix {
        let width = self.rows.features();
        let mut bound = Matrix::zeros(width + 1, width + 1);
        let share = 1.0 / self.rows.len() as f64;
        self.rows
            .iter()
            .for_each(|(x, _)| add_square(&mut bound, x, share / 4.0));
        (0..width).for_each(|at| bound[(at, at)] += self.ridge);
        bound
    }

    /// The model after a step down, halved until it gains enough, and its value; `None` if it never does.
    fn shortened(
        &self,
        model: &[f64],
        value: f64,
        gradient: &[f64],
        step: Vec<f64>,
    ) -> Option<(Vec<f64>, f64)> {
        let slope = dot(&step, gradient);
        let mut length = 1.0;
        for _ in 0..=HALVINGS {
            let moved = model.iter().zip(&step);
            let next: Vec<f64> = moved.map(|(at, step)| at - length * step).collect();
            let there = self.value(&next);
            if there <= value - ENOUGH * length * slope && there < value {
                return Some((next, there));
            }
            length /= 2.0;
        }
        None
    }
}

/// The products of the first of two slices, as long as the shorter one.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds `by` times the row, with a 1 for the intercept behind it.
fn add(into: &mut [f64], x: &[f64], by: f64) {
    for (into, x) in into.iter_mut().zip(x.iter().chain([&1.0])) {
        *into += by * x;
    }
}

/// Adds `by` times the square of the row, with a 1 for the intercept behind it: the lower triangle.
fn add_square(into: &mut Matrix, x: &[f64], by: f64) {
    for (at, own) in x.iter().chain([&1.0]).enumerate() {
        add(&mut into.row_mut(at)[..=at], x, by * own);
    }
}

/// Solves a system whose lower triangle is given, after scaling its diagonal to 1, so that columns of any
/// size are alike. Of columns that depend on each other each gets a share, and one of zeros gets nothing;
/// `None` if a column has a slope and no curvature.
fn scaled_solve(mut system: Matrix, right: &[f64]) -> Option<Vec<f64>> {
    let mut scale = vec![0.0; right.len()];
    for (at, right) in right.iter().enumerate() {
        let by = 1.0 / system[(at, at)].sqrt();
        match by.is_finite() {
            true => scale[at] = by,
            false if *right == 0.0 => {}
            false => return None,
        }
    }
    for at in 0..right.len() {
        for column in 0..at {
            system[(at, column)] *= scale[at] * scale[column];
        }
        system[(at, at)] = 1.0 + DAMPING;
    }
    let scaled = right.iter().zip(&scale).map(|(right, by)| right * by);
    let solution = solve(system, scaled.collect())?;
    let step: Vec<f64> = solution.iter().zip(&scale).map(|(x, by)| x * by).collect();
    step.iter().all(|x| x.is_finite()).then_some(step)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn rows(features: &[&[f64]], labels: &[f64]) -> Samples {
        let matrix = Matrix::from_rows(features).unwrap();
        Samples::new(matrix, labels.to_vec()).unwrap()
    }

    /// The gradient of the objective at a model, which is 0 at the least one.
    fn steepest(rows: &Samples, ridge: f64, offsets: &[f64], model: &LinearModel) -> f64 {
        let objective = Objective {
            rows,
            ridge,
            offsets,
        };
        let parts: Vec<f64> = model
            .weights
            .iter()
            .copied()
            .chain([model.intercept])
            .collect();
        let (gradient, _) = objective.slopes(&parts);
        gradient.iter().fold(0.0, |most, each| each.abs().max(most))
    }

    #[test]
    fn the_conic_program_finds_the_same_fit() {
        use crate::robust::{FitConfig, RowLoss, TransportCost, fit};
        let data = rows(
            &[
                &[1.0, 0.0],
                &[0.0, 2.0],
                &[1.0, 1.0],
                &[2.0, -1.0],
                &[0.5, 0.5],
            ],
            &[1.0, -1.0, 1.0, -1.0, 1.0],
        );
        for ridge in [0.01, 0.1, 3.0] {
            let config = FitConfig {
                loss: RowLoss::Logistic,
                cost: TransportCost::default(),
                ridge,
                intercept: true,
            };
            let conic = fit(&data, 0.0, &config).unwrap().model;
            let newton = logistic_ridge(&data, ridge, &[0.0; 5]).unwrap();
            let each = conic.weights.iter().zip(&newton.weights);
            let all = each.chain([(&conic.intercept, &newton.intercept)]);
            for (conic, newton) in all {
                assert!((conic - newton).abs() < 1e-4, "{ridge}: {conic} {newton}");
            }
        }
    }

    #[test]
    fn outputs_without_curvature_come_back() {
        let data = rows(&[&[1.0], &[-1.0], &[0.5], &[0.2]], &[1.0, -1.0, -1.0, 1.0]);
        for far in [50.0, -800.0, 3_000.0] {
            let fit = logistic_ridge(&data, 0.1, &[far; 4]).unwrap();
            let near = logistic_ridge(&data, 0.1, &[0.0; 4]).unwrap();
            assert!(
                (fit.intercept + far - near.intercept).abs() < 1e-6,
                "{fit:?} {near:?}"
            );
            assert!(
                (fit.weights[0] - near.weights[0]).abs() < 1e-7,
                "{fit:?} {near:?}"
            );
        }
    }

    #[test]
    fn equal_zero_and_very_differently_sized_columns_are_fitted() {
        let labels = [1.0, -1.0, -1.0, 1.0, 1.0, -1.0];
        let odd = [0.3, -1.2, 0.4, 0.1, -0.7, 0.2];
        let with = |size: f64| {
            let all: Vec<[f64; 4]> = odd.iter().map(|x| [*x, *x, 0.0, size * x * x]).collect();
            let features: Vec<&[f64]> = all.iter().map(|row| &row[..]).collect();
            logistic_ridge(&rows(&features, &labels), 0.0, &[0.0; 6]).unwrap()
        };
        let (small, large) = (with(1.0), with(1e9));
        assert!(
            (large.weights[3] * 1e9 - small.weights[3]).abs() < 1e-4,
            "{small:?} {large:?}"
        );
        for fit in [small, large] {
            assert_eq!(fit.weights[2], 0.0);
            assert!((fit.weights[0] - fit.weights[1]).abs() < 1e-3, "{fit:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_slope_is_left(
            table in prop::collection::vec((prop::array::uniform3(-3.0..3.0f64), any::<bool>(), -2.0..2.0f64), 4..40),
            ridge in 1e-4..2.0f64,
        ) {
            let features: Vec<&[f64]> = table.iter().map(|(x, _, _)| &x[..]).collect();
            let labels: Vec<f64> = table.iter().map(|(_, y, _)| if *y { 1.0 } else { -1.0 }).collect();
            let offsets: Vec<f64> = table.iter().map(|(_, _, offset)| *offset).collect();
            let mixed = labels.iter().any(|y| *y > 0.0) && labels.iter().any(|y| *y < 0.0);
            prop_assume!(mixed);
            let data = rows(&features, &labels);
            let fit = logistic_ridge(&data, ridge, &offsets).unwrap();
            prop_assert!(steepest(&data, ridge, &offsets, &fit) < 1e-6, "{fit:?}");
        }
    }
}
