//! Robust fits, and the test for separable labels, as convex programs.

use std::ops::Range;

use super::FitConfig;
use super::conic::{Affine, Conic, Optimum};
use crate::robust::{LinearModel, Norm, RowLoss, Samples, TransportCost};

/// The model with the least robust loss plus ridge, and the solver's optimum.
pub(super) fn least_loss(
    rows: &Samples,
    radius: f64,
    config: &FitConfig,
) -> Result<(LinearModel, Optimum), String> {
    // Scale the program, so that large numbers do not cancel small ones: targets by their largest
    // size, distances (and with them features) by the radius, each if it is above 1.
    let target_unit = match config.loss {
        RowLoss::Absolute => rows.targets().iter().fold(1.0, |most, y| y.abs().max(most)),
        RowLoss::Logistic => 1.0,
    };
    let length_unit = radius.max(1.0);
    let weight_unit = target_unit / length_unit;
    let ridge = config.ridge * weight_unit / length_unit;
    let mut program = ConvexProgram::new(rows, length_unit, config.intercept, ridge);
    // λ, the dual price of the radius. At radius 0 it costs nothing, so no variable is needed.
    let price = (radius > 0.0).then(|| {
        let cost = radius / length_unit;
        program.conic.variables(1, cost, 0.0).start
    });
    let TransportCost { norm, label_cost } = config.cost;
    match config.loss {
        RowLoss::Absolute => {
            program.absolute_loss(rows, target_unit);
            if let Some(price) = price {
                program.price_covers_slope(price, norm, Some(1.0 / weight_unit));
            }
        }
        RowLoss::Logistic => {
            program.log_loss(rows);
            if let Some(price) = price {
                program.price_covers_slope(price, norm, None);
                if label_cost.is_finite() {
                    program.label_flips(rows, label_cost / length_unit, price);
                }
            }
        }
    }
    let (weights, intercept) = (program.weights, program.intercept);
    let mut optimum = program.conic.solve()?;
    optimum.bound *= target_unit;
    let weights = optimum.variables[weights].iter();
    let model = LinearModel {
        weights: weights.map(|weight| weight * weight_unit).collect(),
        intercept: optimum.variables[intercept].iter().sum::<f64>() * target_unit,
    };
    Ok((model, optimum))
}

/// The largest number of rows that a model can have on the right side of its boundary with none on
/// the wrong side: `maximise Σ tₙ` over `0 ≤ tₙ ≤ 1` and margins of at least `tₙ`. Models may be of any
/// size, so every `tₙ` is 0 or 1 at an optimum.
pub(super) fn separated(rows: &Samples, intercept: bool) -> Result<f64, String> {
    let mut program = ConvexProgram::new(rows, 1.0, intercept, 0.0);
    let right = program.conic.variables(rows.len(), -1.0, 0.0);
    for ((x, y), right) in rows.iter().zip(right.clone()) {
        let above = program.output(x, y).chain([(right, -1.0)]);
        let above = Affine::of(above);
        let conic = &mut program.conic;
        conic.at_least_zero(above);
        conic.at_least_zero(Affine::of([(right, 1.0)]));
        conic.at_least_zero(Affine::of([(right, -1.0)]).plus(1.0));
    }
    let optimum = program.conic.solve()?;
    Ok(optimum.variables[right].iter().sum())
}

/// A convex program over linear models.
struct ConvexProgram {
    conic: Conic,
    /// The divisor of the features.
    length_unit: f64,
    weights: Range<usize>,
    /// One variable, or none without an intercept.
    intercept: Range<usize>,
}

impl ConvexProgram {
    fn new(rows: &Samples, length_unit: f64, intercept: bool, ridge: f64) -> Self {
        let mut conic = Conic::default();
        let weights = conic.variables(rows.features(), 0.0, ridge);
        let intercept = conic.variables(usize::from(intercept), 0.0, 0.0);
        Self {
            conic,
            length_unit,
            weights,
            intercept,
        }
    }

    /// The model's output for one row, times `factor`.
    fn output(&self, features: &[f64], factor: f64) -> impl Iterator<Item = (usize, f64)> {
        let weights = self.weights.clone().zip(features);
        let unit = self.length_unit;
        weights
            .map(move |(weight, feature)| (weight, factor * feature / unit))
            .chain(self.intercept.clone().map(move |at| (at, factor)))
    }

    /// `λ ≥ ‖(−θ, target)‖*`, or without a target `λ ≥ ‖θ‖*`.
    fn price_covers_slope(&mut self, price: usize, norm: Norm, target: Option<f64>) {
        let weights = self.weights.clone();
        let conic = &mut self.conic;
        match norm {
            Norm::L2 => {
                let price = Affine::of([(price, 1.0)]);
                let weights = weights.map(|weight| Affine::of([(weight, 1.0)]));
                let target = target.map(|target| Affine::of([]).plus(target));
                conic.second_order([price].into_iter().chain(weights).chain(target));
            }
            Norm::L1 => {
                for weight in weights {
                    conic.at_least_zero(Affine::of([(price, 1.0), (weight, 1.0)]));
                    conic.at_least_zero(Affine::of([(price, 1.0), (weight, -1.0)]));
                }
                let target = target.map(|target| Affine::of([(price, 1.0)]).plus(-target));
                target
                    .into_iter()
                    .for_each(|above| conic.at_least_zero(above));
            }
            Norm::Linf => {
                let sizes = conic.variables(weights.len(), 0.0, 0.0);
                for (size, weight) in sizes.clone().zip(weights) {
                    conic.at_least_zero(Affine::of([(size, 1.0), (weight, 1.0)]));
                    conic.at_least_zero(Affine::of([(size, 1.0), (weight, -1.0)]));
                }
                let sum = [(price, 1.0)]
                    .into_iter()
                    .chain(sizes.map(|size| (size, -1.0)));
                conic.at_least_zero(Affine::of(sum).plus(-target.unwrap_or(0.0)));
            }
        }
    }

    /// `mean |yₙ − output|` for targets in `unit`: a variable bounds each residual from both sides.
    fn absolute_loss(&mut self, rows: &Samples, unit: f64) {
        let sizes = self
            .conic
            .variables(rows.len(), 1.0 / rows.len() as f64, 0.0);
        for ((x, y), size) in rows.iter().zip(sizes) {
            for sign in [1.0, -1.0] {
                let above = Affine::of(self.output(x, sign).chain([(size, 1.0)]));
                self.conic.at_least_zero(above.plus(-sign * y / unit));
            }
        }
    }

    /// `mean log(1 + exp(−mₙ))`: each term is bounded by a variable `sₙ` with `exp(−mₙ − sₙ) + exp(−sₙ) ≤ 1`.
    fn log_loss(&mut self, rows: &Samples) {
        let losses = self
            .conic
            .variables(rows.len(), 1.0 / rows.len() as f64, 0.0);
        let shares = self.conic.variables(rows.len(), 0.0, 0.0);
        for (((x, y), loss), share) in rows.iter().zip(losses).zip(shares) {
            let wrong = Affine::of(self.output(x, -y).chain([(loss, -1.0)]));
            let right = Affine::of([(loss, -1.0)]);
            self.conic.exponential(wrong, Affine::of([(share, 1.0)]));
            self.conic
                .exponential(right, Affine::of([(share, -1.0)]).plus(1.0));
        }
    }

    /// `mean (mₙ − κλ)₊`: the additional loss by changed labels.
    fn label_flips(&mut self, rows: &Samples, label_cost: f64, price: usize) {
        // Scaled by a large label cost, so that it does not cancel the margins.
        let unit = label_cost.max(1.0);
        let gains = self
            .conic
            .variables(rows.len(), 1.0 / rows.len() as f64, 0.0);
        for ((x, y), gain) in rows.iter().zip(gains) {
            let cost = [(gain, 1.0 / unit), (price, label_cost / unit)];
            let above = Affine::of(self.output(x, -y / unit).chain(cost));
            self.conic.at_least_zero(above);
            self.conic.at_least_zero(Affine::of([(gain, 1.0)]));
        }
    }
}
