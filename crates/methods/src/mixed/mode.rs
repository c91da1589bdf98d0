//! The penalised fit of one site: the most probable coefficients, given its rows and what all know.

use super::symmetric::Factor;
use super::{Family, MixedError};
use crate::matrix::Matrix;
use crate::robust::{LinearModel, Samples};

/// Most Newton steps of a fit.
const STEPS: usize = 100;

/// Common knowledge of a model: the prior of a site's own coefficients. The intercept is first everywhere.
#[derive(Debug, Clone, Copy)]
pub struct Prior<'a> {
    /// The common coefficients μ.
    pub mean: &'a [f64],
    /// The variance T of every coefficient, ≥ 0.
    pub strengths: &'a [f64],
    /// The variance s² of the noise, above 0; 1 for classes.
    pub noise: f64,
}

/// The fit of one site: `B = μ + r·v` with `r = √T`, of largest `ℓ(B) − ½ vᵀv`.
#[derive(Debug, Clone)]
pub struct SiteMode {
    /// The site's coefficients B, the intercept first.
    pub coefficients: Vec<f64>,
    /// The derivative z of the log likelihood by the coefficients, `Xᵀ(y − ŷ)/s²`.
    pub score: Vec<f64>,
    /// `M = XᵀŵX/s²`, with ŵ the variance of a class, and 1 for numbers.
    pub curvature: Matrix,
    /// The inverse of `A = I + r·M·r`.
    pub inner: Matrix,
    /// Sum of squared residuals; 0 for classes.
    pub residual: f64,
    /// Log likelihood of the rows, given the site's coefficients.
    pub conditional: f64,
    /// Log likelihood of the rows with the deviations integrated out: exact for numbers, by Laplace's
    /// approximation for classes.
    pub log_likelihood: f64,
}

impl SiteMode {
    /// The coefficients as a linear model.
    pub fn model(&self) -> LinearModel {
        linear(&self.coefficients)
    }

    /// The effective number of coefficients that the site estimates itself, `p − tr A⁻¹`.
    pub fn freedom(&self) -> f64 {
        let each = (0..self.inner.rows()).map(|at| 1.0 - self.inner[(at, at)]);
        each.sum()
    }
}

/// Coefficients with the intercept first as a linear model.
pub(super) fn linear(coefficients: &[f64]) -> LinearModel {
    LinearModel {
        weights: coefficients[1..].to_vec(),
        intercept: coefficients[0],
    }
}

/// The fit of a site's rows, see [`SiteMode`].
///
/// # Errors
/// [`MixedError::Width`] where `prior` is of other columns; [`MixedError::NotFinite`].
pub fn mode(rows: &Samples, family: Family, prior: Prior<'_>) -> Result<SiteMode, MixedError> {
    let (known, needed) = (prior.mean.len(), rows.features() + 1);
    if known != needed || prior.strengths.len() != needed {
        return Err(MixedError::Width { known, needed });
    }
    let roots: Vec<f64> = prior.strengths.iter().map(|t| t.sqrt()).collect();
    let site = SiteRows {
        rows,
        family,
        prior,
        roots,
    };
    let found = site.fitted().ok_or(MixedError::NotFinite)?;
    let numbers = found.coefficients.iter().chain(&found.score);
    let numbers = numbers.chain(found.curvature.values());
    let all_finite = numbers
        .chain([&found.log_likelihood])
        .all(|number| number.is_finite());
    all_finite.then_some(found).ok_or(MixedError::NotFinite)
}

/// A site's rows, and what all know.
struct SiteRows<'a> {
    rows: &'a Samples,
    family: Family,
    prior: Prior<'a>,
    /// The square roots of the variances.
    roots: Vec<f64>,
}

/// The derivatives at some coefficients.
struct Derivatives {
    score: Vec<f64>,
    curvature: Matrix,
    /// Log likelihood of the rows, given the coefficients.
    log_likelihood: f64,
    residual: f64,
}

impl SiteRows<'_> {
    fn width(&self) -> usize {
        self.roots.len()
    }

    /// `μ + r·v`.
    fn coefficients(&self, deviation: &[f64]) -> Vec<f64> {
        let each = self.prior.mean.iter().zip(&self.roots).zip(deviation);
        each.map(|((mean, root), v)| mean + root * v).collect()
    }

    /// Returns what one row adds to log likelihood and squared residual, its `y − ŷ`, and its weight ŵ.
    fn row(&self, output: f64, target: f64) -> (f64, f64, f64, f64) {
        match self.family {
            Family::Gaussian => {
                let left = target - output;
                let log = libm::log(std::f64::consts::TAU * self.prior.noise);
                let likelihood = -0.5 * (left * left / self.prior.noise + log);
                (likelihood, left * left, left, 1.0)
            }
            Family::Binomial => {
                let margin = target * output;
                // log(1 + e^(−m)) without overflow.
                let tail = libm::exp(-margin.abs());
                let loss = libm::log1p(tail) + (-margin).max(0.0);
                // The probability of the class that the row is not of.
                let other = if margin >= 0.0 {
                    tail / (1.0 + tail)
                } else {
                    1.0 / (1.0 + tail)
                };
                let weight = tail / ((1.0 + tail) * (1.0 + tail));
                (-loss, 0.0, target * other, weight)
            }
        }
    }

    fn derivatives(&self, coefficients: &[f64]) -> Derivatives {
        let width = self.width();
        let mut score = vec![0.0; width];
        let mut curvature = Matrix::zeros(width, width);
        let (mut log_likelihood, mut residual) = (0.0, 0.0);
        let mut row = vec![1.0; width];
        for (features, target) in self.rows.iter() {
            row[1..].copy_from_slice(features);
            let output: f64 = row.iter().zip(coefficients).map(|(x, b)| x * b).sum();
            let (likelihood, square, left, weight) = self.row(output, target);
            log_likelihood += likelihood;
            residual += square;
            for at in 0..width {
                score[at] += row[at] * left;
                let scaled = row[at] * weight;
                for (entry, x) in curvature.row_mut(at).iter_mut().zip(&row) {
                    *entry += scaled * x;
                }
            }
        }
        let noise = self.prior.noise;
        score.iter_mut().for_each(|entry| *entry /= noise);
        curvature
            .values_mut()
            .iter_mut()
            .for_each(|entry| *entry /= noise);
        Derivatives {
            score,
            curvature,
            log_likelihood,
            residual,
        }
    }

    /// `I + r·M·r`.
    fn inner(&self, curvature: &Matrix) -> Option<Factor> {
        let roots = &self.roots;
        Factor::of(&Matrix::from_fn(
            self.width(),
            self.width(),
            |row, column| {
                let identity = f64::from(u8::from(row == column));
                identity + roots[row] * curvature[(row, column)] * roots[column]
            },
        ))
    }

    /// Newton's method on the deviations v. `None` where a number is not finite.
    fn fitted(&self) -> Option<SiteMode> {
        let mut deviation = vec![0.0; self.width()];
        let mut at = self.derivatives(&self.coefficients(&deviation));
        for _ in 0..STEPS {
            let gradient: Vec<f64> = (0..self.width())
                .map(|j| self.roots[j] * at.score[j] - deviation[j])
                .collect();
            let step = self.inner(&at.curvature)?.solve(&gradient);
            let decrement: f64 = gradient.iter().zip(&step).map(|(g, s)| g * s).sum();
            let objective = at.log_likelihood - 0.5 * square(&deviation);
            if !(decrement.is_finite() && objective.is_finite()) {
                return None;
            }
            // Half of it is what a step gains to second order.
            if decrement <= 1e-15 * (1.0 + objective.abs()) {
                break;
            }
            (deviation, at) = self.moved(&deviation, &step, objective);
        }
        let inner = self.inner(&at.curvature)?;
        let likelihood =
            at.log_likelihood - 0.5 * square(&deviation) - 0.5 * inner.log_determinant();
        Some(SiteMode {
            coefficients: self.coefficients(&deviation),
            score: at.score,
            curvature: at.curvature,
            inner: inner.inverse(),
            residual: at.residual,
            conditional: at.log_likelihood,
            log_likelihood: likelihood,
        })
    }

    /// The whole step, or the longest of its halves that does not lower the objective.
    fn moved(&self, from: &[f64], step: &[f64], objective: f64) -> (Vec<f64>, Derivatives) {
        let mut length = 1.0;
        loop {
            let to: Vec<f64> = from
                .iter()
                .zip(step)
                .map(|(v, step)| v + length * step)
                .collect();
            let at = self.derivatives(&self.coefficients(&to));
            let now = at.log_likelihood - 0.5 * square(&to);
            if now >= objective - 1e-12 * (1.0 + objective.abs()) || length < 1e-9 {
                return (to, at);
            }
            length *= 0.5;
        }
    }
}

fn square(deviation: &[f64]) -> f64 {
    deviation.iter().map(|v| v * v).sum()
}
