//! Fits of linear models by plain loss and a ridge, whose strength may be chosen by
//! cross-validation.
//!
//! Such a fit is a silo's local model in CS-RCFL (Konti et al. 2024): the least loss on its rows, without
//! robustness, which enters by the cross-evaluation only. With few rows a plain fit overfits, and on
//! separable labels it does not exist; the ridge makes it unique. It may pull towards any
//! model, such as that of the silo's coalition, instead of towards 0.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::cholesky::solve;
use super::fit::{FitError, plain_logistic};
use super::folds::FoldsError;
use super::logistic::log_loss;
use super::span::RowSpan;
use super::succession::with_one_more_of_each;
use super::{FitConfig, Folds, LinearModel, RobustError, RowLoss, Samples, TransportCost, fit};
use crate::matrix::Matrix;

/// The plain loss of a fit, on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainLoss {
    /// `|y − output|`.
    Absolute,
    /// `(y − output)²`.
    Squared,
    /// `log(1 + exp(−y · output))` for labels `y` ±1.
    Logistic,
}

impl PlainLoss {
    /// The mean loss of a model.
    pub fn mean(self, rows: &Samples, model: &LinearModel) -> f64 {
        let each = rows.iter().map(|(x, y)| {
            let output = model.output(x);
            match self {
                Self::Absolute => (y - output).abs(),
                Self::Squared => (y - output) * (y - output),
                Self::Logistic => log_loss(y * output),
            }
        });
        each.sum::<f64>() / rows.len() as f64
    }

    /// The loss by which folds are divided.
    pub(crate) fn kind(self) -> RowLoss {
        match self {
            Self::Absolute | Self::Squared => RowLoss::Absolute,
            Self::Logistic => RowLoss::Logistic,
        }
    }
}

/// The rule for the strength of a ridge. In TOML, a number or the table of the variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "a number of at least 0, or { folds, grid }")]
pub enum Ridge {
    /// A fixed strength ρ ≥ 0: half of it times the squared norm is added to the mean loss.
    Fixed(f64),
    /// A mean of strengths by their losses in cross-validation: `{ folds = 5, grid = [0.01, 0.1] }`.
    CrossValidated(RidgeGrid),
}

/// Strengths of a ridge to choose from by cross-validation, see [`choose_ridge`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RidgeGrid {
    /// Number of folds; a silo with fewer rows uses one fold per row.
    #[schemars(range(min = 2), extend("x-unit" = "folds"))]
    pub folds: usize,
    /// The strengths, ascending, all at least 0; usually evenly spaced on a logarithmic scale.
    pub grid: Vec<f64>,
}

impl Default for Ridge {
    /// Five folds, ten strengths from 0.0001 to 10: from 0.001 on about three times as strong each.
    fn default() -> Self {
        Self::CrossValidated(RidgeGrid {
            folds: 5,
            grid: vec![1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        })
    }
}

impl Ridge {
    /// Returns whether the rule can be applied.
    pub fn is_valid(&self) -> bool {
        let valid = |ridge: &f64| ridge.is_finite() && *ridge >= 0.0;
        match self {
            Self::Fixed(ridge) => valid(ridge),
            Self::CrossValidated(RidgeGrid { folds, grid }) => {
                let rising = grid.windows(2).all(|pair| pair[0] < pair[1]);
                *folds >= 2 && !grid.is_empty() && grid.iter().all(valid) && rising
            }
        }
    }

    /// The strength for these rows.
    ///
    /// # Errors
    /// As [`choose_ridge`].
    pub fn strength(
        &self,
        rows: &Samples,
        loss: PlainLoss,
        centre: &LinearModel,
    ) -> Result<f64, FitError> {
        match self {
            Self::Fixed(ridge) => Ok(*ridge),
            Self::CrossValidated(grid) => choose_ridge(rows, loss, centre, grid),
        }
    }
}

/// The linear model with an intercept that minimises the mean loss on `rows` plus half of `ridge`
/// times the squared distance of its weights from those of `centre`. The intercept is free. Where all
/// labels are the same, no logistic fit exists: the weights are those of `centre`, and the intercept
/// is fitted with one row more of each label.
///
/// # Errors
/// [`FitError`]: targets other than −1 and 1 for logistic loss, an invalid ridge, a centre of
/// another width; without ridge, a fit that does not exist or is not unique; the solver failed.
pub fn ridge_fit(
    rows: &Samples,
    loss: PlainLoss,
    centre: &LinearModel,
    ridge: f64,
) -> Result<LinearModel, FitError> {
    if !ridge.is_finite() || ridge < 0.0 {
        return Err(FitError::Ridge(ridge));
    }
    let (weights, features) = (centre.weights.len(), rows.features());
    if weights != features {
        return Err(RobustError::Weights { weights, features }.into());
    }
    let outputs: Vec<f64> = rows.iter().map(|(x, _)| centre.output(x)).collect();
    // Without a ridge the fit of least norm is one of many.
    let step = match RowSpan::of_wide(rows).filter(|_| ridge > 0.0) {
        Some(span) => span.model(&step(&span.rows, loss, &outputs, ridge)?, features),
        None => step(rows, loss, &outputs, ridge)?,
    };
    let weights = centre.weights.iter().zip(&step.weights);
    Ok(LinearModel {
        weights: weights.map(|(centre, step)| centre + step).collect(),
        intercept: centre.intercept + step.intercept,
    })
}

/// Returns what to add to a model that has these outputs on the rows.
fn step(
    rows: &Samples,
    loss: PlainLoss,
    outputs: &[f64],
    ridge: f64,
) -> Result<LinearModel, FitError> {
    match loss {
        PlainLoss::Absolute => {
            let config = FitConfig {
                loss: RowLoss::Absolute,
                cost: TransportCost::default(),
                ridge,
                intercept: true,
            };
            Ok(fit(&residual(rows, outputs)?, 0.0, &config)?.model)
        }
        PlainLoss::Squared => least_squares(&residual(rows, outputs)?, ridge),
        PlainLoss::Logistic => plain_logistic(rows, ridge, outputs),
    }
}

/// The rows with what outputs leave of their targets.
fn residual(rows: &Samples, outputs: &[f64]) -> Result<Samples, FitError> {
    let pairs = rows.targets().iter().zip(outputs);
    let left = rows.with_targets(pairs.map(|(y, output)| y - output).collect());
    left.map_err(|_| RobustError::NotFinite.into())
}

/// Minimises `mean (y − xᵀδ − b)² + ρ/2 ‖δ‖²` by its normal equations, on centred columns.
fn least_squares(rows: &Samples, ridge: f64) -> Result<LinearModel, FitError> {
    let (count, width) = (rows.len() as f64, rows.features());
    let mut means = vec![0.0; width];
    for (x, _) in rows.iter() {
        means
            .iter_mut()
            .zip(x)
            .for_each(|(sum, x)| *sum += x / count);
    }
    let level = rows.targets().iter().sum::<f64>() / count;
    let mut system = Matrix::zeros(width, width);
    let mut right = vec![0.0; width];
    for (x, y) in rows.iter() {
        let centred: Vec<f64> = x.iter().zip(&means).map(|(x, mean)| x - mean).collect();
        for (row, own) in centred.iter().enumerate() {
            right[row] += 2.0 / count * own * (y - level);
            for (into, other) in system.row_mut(row).iter_mut().zip(&centred) {
                *into += 2.0 / count * own * other;
            }
        }
    }
    (0..width).for_each(|at| system[(at, at)] += ridge);
    let weights = solve(system, right).ok_or_else(|| FitError::NotSolved {
        status: "columns depend on each other".into(),
    })?;
    let shift: f64 = weights.iter().zip(&means).map(|(w, mean)| w * mean).sum();
    Ok(LinearModel {
        weights,
        intercept: level - shift,
    })
}

/// The strength by cross-validation: fits to all folds but one are scored by their mean loss on that
/// one. The strength is the mean of those of the grid, in their logarithms, in which each counts by its likelihood on
/// the `n` groups of rows, beside the most likely one.
///
/// * Of log losses that is `exp(−n · (L − L₀))`. They are measured as if there were one row more of each class than the
///   rows: seven rows of one class are no reason for certainty.
/// * Of numbers it is the square root, because folds share most of their rows: `(L₀/L)^(n/4)` for mean squares and
///   `(L₀/L)^(n/2)` for mean absolute errors. There a strength below 0.01 counts for its share of 0.01 only, so that
///   many rows have to speak for it.
///
/// 0 counts as a tenth of the least strength above it. With fewer than two rows, the largest is taken.
///
/// With few rows the least of the losses is the luckiest one, and mostly of too weak a ridge; the largest strength
/// within one standard error of it (Breiman et al. 1984, section 3.4.3) is too strong where columns tell much. A mean
/// is wrong by little in both cases.
///
/// Folds and strengths are fitted in parallel; the number of threads does not change the result.
///
/// # Errors
/// As [`ridge_fit`].
///
/// # Panics
/// If the grid is empty.
pub fn choose_ridge(
    rows: &Samples,
    loss: PlainLoss,
    centre: &LinearModel,
    search: &RidgeGrid,
) -> Result<f64, FitError> {
    let grid = &search.grid;
    let largest = *grid.last().expect("a grid has at least one strength");
    let groups = rows.together().len();
    if groups < 2 || grid.len() == 1 {
        return Ok(largest);
    }
    // The order of the rows is not known to others.
    let folds = Folds::new(rows, loss.kind(), search.folds.min(groups), 0);
    let folds = folds.map_err(|FoldsError { .. }| FitError::NotSolved {
        status: "there are too few rows for cross-validation".into(),
    })?;
    let splits = folds.splits(rows);
    let losses: Vec<Result<f64, FitError>> = (0..grid.len() * splits.len())
        .into_par_iter()
        .map(|at| {
            let (seen, unseen) = &splits[at % splits.len()];
            let model = ridge_fit(seen, loss, centre, grid[at / splits.len()])?;
            Ok(held_out(unseen, loss, &model, rows.len() as f64))
        })
        .collect();
    let losses: Vec<f64> = losses.into_iter().collect::<Result<_, _>>()?;
    let means = losses.chunks(splits.len());
    let means: Vec<f64> = means
        .map(|sums| sums.iter().sum::<f64>() / rows.len() as f64)
        .collect();
    Ok(plausible(grid, &means, groups as f64, loss))
}

/// The sum of the losses of a model on rows that it has not seen, of `count` in all folds. Log losses as if there were
/// [one row more of each class](with_one_more_of_each) than these.
fn held_out(rows: &Samples, loss: PlainLoss, model: &LinearModel, count: f64) -> f64 {
    let sum = loss.mean(rows, model) * rows.len() as f64;
    if loss != PlainLoss::Logistic {
        return sum;
    }
    let outputs = rows.iter().map(|(x, _)| model.output(x));
    let any = outputs.map(|output| log_loss(output) + log_loss(-output));
    with_one_more_of_each(sum, any.sum(), count, 2.0)
}

/// The strength below which few rows of numbers do not choose by themselves.
const WEAK: f64 = 0.01;

/// The geometric mean of these strengths. Each counts by its likelihood, which follows from its mean loss and the number
/// of groups of rows.
fn plausible(grid: &[f64], losses: &[f64], groups: f64, loss: PlainLoss) -> f64 {
    let likely = |mean: f64| match loss {
        PlainLoss::Logistic => -groups * mean,
        PlainLoss::Squared => -0.25 * groups * libm::log(mean.max(f64::MIN_POSITIVE)),
        PlainLoss::Absolute => -0.5 * groups * libm::log(mean.max(f64::MIN_POSITIVE)),
    };
    let likely: Vec<f64> = losses.iter().map(|&mean| likely(mean)).collect();
    let most = likely.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = grid.iter().copied().find(|&ridge| ridge > 0.0);
    let least = least.expect("a grid of several strengths has one above 0") / 10.0;
    let (mut sum, mut weights) = (0.0, 0.0);
    for (&ridge, likely) in grid.iter().zip(&likely) {
        let ridge = ridge.max(least);
        let before = match loss {
            PlainLoss::Logistic => 1.0,
            PlainLoss::Squared | PlainLoss::Absolute => (ridge / WEAK).min(1.0),
        };
        let weight = libm::exp(likely - most) * before;
        sum += weight * libm::log(ridge);
        weights += weight;
    }
    libm::exp(sum / weights)
}

#[cfg(test)]
mod tests;
