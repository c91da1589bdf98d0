//! What a model is punished for: losses on its outputs, and their slopes.

use serde::{Deserialize, Serialize};

/// The loss of a regression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegressionLoss {
    /// `|ŷ − y|`.
    Absolute,
    /// `(ŷ − y)²`.
    #[default]
    Squared,
}

/// The loss of a model family, on rows of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// One output, a number to hit.
    Regression(RegressionLoss),
    /// One output, the log-odds of class 1: `log(1 + exp(−m))`, `m = ±output`.
    Logistic,
    /// One output per class: cross-entropy of the softmax.
    Softmax,
}

impl Loss {
    /// Mean loss over rows, and into `slopes` its gradient with respect to every output.
    ///
    /// `outputs` and `slopes` are rows × k, row-major; `targets` holds one number per row: the
    /// value to hit, or the index of the class.
    pub(crate) fn mean(self, outputs: &[f64], targets: &[f32], slopes: &mut [f64]) -> f64 {
        let rows = targets.len() as f64;
        let width = outputs.len() / targets.len().max(1);
        let mut total = 0.0;
        let each = outputs
            .chunks_exact(width)
            .zip(slopes.chunks_exact_mut(width));
        for ((output, slope), &target) in each.zip(targets) {
            total += self.row(output, target, slope);
            slope.iter_mut().for_each(|value| *value /= rows);
        }
        total / rows
    }

    /// Loss of one row, and its gradient.
    pub(crate) fn row(self, output: &[f64], target: f32, slope: &mut [f64]) -> f64 {
        match self {
            Self::Regression(loss) => {
                let residual = output[0] - f64::from(target);
                match loss {
                    RegressionLoss::Absolute => {
                        slope[0] = if residual == 0.0 {
                            0.0
                        } else {
                            residual.signum()
                        };
                        residual.abs()
                    }
                    RegressionLoss::Squared => {
                        slope[0] = 2.0 * residual;
                        residual * residual
                    }
                }
            }
            Self::Logistic => {
                let sign = if target > 0.5 { 1.0 } else { -1.0 };
                let margin = sign * output[0];
                // Either exponential is of a number at most 0: nothing overflows.
                let tail = (-margin.abs()).exp();
                let miss = if margin >= 0.0 { tail } else { 1.0 } / (1.0 + tail);
                slope[0] = -sign * miss;
                (-margin).max(0.0) + tail.ln_1p()
            }
            Self::Softmax => {
                let top = output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut sum = 0.0;
                for (slope, value) in slope.iter_mut().zip(output) {
                    *slope = (value - top).exp();
                    sum += *slope;
                }
                slope.iter_mut().for_each(|value| *value /= sum);
                let class = target as usize;
                slope[class] -= 1.0;
                top + sum.ln() - output[class]
            }
        }
    }
}
