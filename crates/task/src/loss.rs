//! Losses of a model's outputs, and their slopes.

use serde::{Deserialize, Serialize};

use crate::survival::partial_likelihood;

/// The loss of a regression.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RegressionLoss {
    /// `|ŷ − y|`.
    Absolute,
    /// `(ŷ − y)²`.
    #[default]
    Squared,
}

/// Added above and below in the soft Dice loss, so that empty images have one.
const SMOOTH: f64 = 1.0;

/// The loss of a model family, on rows of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Numbers to hit, one output for each; a row with several counts as several of one.
    Regression(RegressionLoss),
    /// One output, the log-odds of class 1: `log(1 + exp(−m))`, `m = ±output`.
    Logistic,
    /// One output per class: cross-entropy of the softmax.
    Softmax,
    /// One output per pixel, the log-odds that it belongs to the object: the soft Dice loss
    /// `1 − (2Σpg + 1)/(Σp + Σg + 1)` of every image, `p` the probability and `g` the 0 or 1 of a
    /// pixel (Milletari et al. 2016, with sums instead of sums of squares).
    Dice {
        /// Pixels of an image.
        pixels: usize,
    },
    /// One output, the logarithm of the relative hazard of a row: Cox's negative log partial likelihood per event,
    /// see [`partial_likelihood`]. The rows of a step are those at risk, so it
    /// is the loss of rows together and none of a single row.
    Cox,
}

impl Loss {
    /// Mean loss over rows, and into `slopes` its gradient with respect to every output.
    ///
    /// `outputs` and `slopes` are rows × k, row-major; `targets` holds the values to hit, one index
    /// of a class per row, or all pixels of every row.
    #[inline]
    pub fn mean(self, outputs: &[f64], targets: &[f32], slopes: &mut [f64]) -> f64 {
        let given = match self {
            Self::Cox => return partial_likelihood(outputs, targets, slopes),
            Self::Dice { pixels } => pixels,
            _ => 1,
        };
        let count = targets.len() / given;
        let width = outputs.len() / count.max(1);
        let mut total = 0.0;
        let each = outputs
            .chunks_exact(width)
            .zip(slopes.chunks_exact_mut(width));
        for ((output, slope), target) in each.zip(targets.chunks_exact(given)) {
            total += self.row(output, target, slope);
            slope.iter_mut().for_each(|value| *value /= count as f64);
        }
        total / count as f64
    }

    /// Returns whether the rows of a step have one loss together, which is no mean of losses of single rows.
    pub fn joins_rows(self) -> bool {
        self == Self::Cox
    }

    /// Loss of one row, and its gradient: 0 where rows have a loss [together](Self::joins_rows) only.
    #[inline]
    pub fn row(self, output: &[f64], target: &[f32], slope: &mut [f64]) -> f64 {
        match self {
            Self::Regression(loss) => {
                let residual = output[0] - f64::from(target[0]);
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
                let sign = if target[0] > 0.5 { 1.0 } else { -1.0 };
                let margin = sign * output[0];
                // Either exponential is of a number at most 0: nothing overflows.
                let tail = (-margin.abs()).exp();
                let miss = if margin >= 0.0 { tail } else { 1.0 } / (1.0 + tail);
                slope[0] = -sign * miss;
                (-margin).max(0.0) + tail.ln_1p()
            }
            Self::Softmax => {
                let log = softmax(output, slope);
                let class = target[0] as usize;
                slope[class] -= 1.0;
                log - output[class]
            }
            Self::Dice { .. } => {
                let (mut common, mut all) = (SMOOTH, SMOOTH);
                for ((slope, &value), &inside) in slope.iter_mut().zip(output).zip(target) {
                    *slope = 1.0 / (1.0 + (-value).exp());
                    common += 2.0 * *slope * f64::from(inside);
                    all += *slope + f64::from(inside);
                }
                for (slope, &inside) in slope.iter_mut().zip(target) {
                    let p = *slope;
                    let towards = (common - 2.0 * f64::from(inside) * all) / (all * all);
                    *slope = towards * p * (1.0 - p);
                }
                1.0 - common / all
            }
            Self::Cox => partial_likelihood(output, target, slope),
        }
    }
}

/// Writes the probability of every class of a row into `probabilities`, and gives the logarithm of the sum of
/// all exponentials: the loss of the row is that less the output of its class.
pub(crate) fn softmax(output: &[f64], probabilities: &mut [f64]) -> f64 {
    let top = output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (raised, value) in probabilities.iter_mut().zip(output) {
        *raised = (value - top).exp();
        sum += *raised;
    }
    probabilities.iter_mut().for_each(|value| *value /= sum);
    top + sum.ln()
}
