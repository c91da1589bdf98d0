//! Contribution of one row to the log likelihood, by family.

use serde::{Deserialize, Serialize};

use crate::special::{digamma, trigamma};

/// The distribution of the outcome, with its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GlmFamily {
    /// Numbers, identity link.
    Gaussian,
    /// 0 or 1, logit link.
    Binomial,
    /// Counts, log link.
    Poisson,
    /// Positive numbers, log link.
    Gamma,
    /// Counts that vary more than Poisson's, log link; variance μ + μ²/θ.
    NegativeBinomial,
}

/// One row's log likelihood and its derivatives.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FamilyRow {
    pub(super) log_likelihood: f64,
    /// Derivative by the linear predictor.
    pub(super) score: f64,
    /// Negative second derivative.
    pub(super) weight: f64,
    /// Derivative by log θ.
    pub(super) dispersion: f64,
    /// Negative mixed derivative.
    pub(super) cross: f64,
    /// Negative second derivative by log θ.
    pub(super) curvature: f64,
    pub(super) squared_residual: f64,
}

impl GlmFamily {
    /// The row of an outcome `y` with this linear predictor, and θ where there is one.
    pub(super) fn row(self, y: f64, eta: f64, theta: Option<f64>) -> FamilyRow {
        match self {
            Self::Gaussian => {
                let residual = y - eta;
                let squared_residual = residual * residual;
                FamilyRow {
                    log_likelihood: -0.5 * squared_residual,
                    score: residual,
                    weight: 1.0,
                    squared_residual,
                    ..FamilyRow::default()
                }
            }
            Self::Binomial => {
                let small = libm::exp(-eta.abs());
                let above = 1.0 / (1.0 + small);
                let probability = if eta >= 0.0 { above } else { small * above };
                let log_likelihood = y * eta - eta.max(0.0) - libm::log1p(small);
                let weight = small * above * above;
                FamilyRow {
                    log_likelihood,
                    score: y - probability,
                    weight,
                    ..FamilyRow::default()
                }
            }
            Self::Gamma => {
                let ratio = y * libm::exp(-eta);
                let squared_residual = (ratio - 1.0) * (ratio - 1.0);
                FamilyRow {
                    log_likelihood: -ratio - eta,
                    score: ratio - 1.0,
                    weight: ratio,
                    squared_residual,
                    ..FamilyRow::default()
                }
            }
            Self::Poisson | Self::NegativeBinomial => match theta {
                None => {
                    let mean = libm::exp(eta);
                    let log_likelihood = y * eta - mean - libm::lgamma(y + 1.0);
                    FamilyRow {
                        log_likelihood,
                        score: y - mean,
                        weight: mean,
                        ..FamilyRow::default()
                    }
                }
                Some(theta) => overdispersed(y, libm::exp(eta), theta),
            },
        }
    }

    /// Returns whether a site with these outcomes and weights tells anything of the slopes.
    pub(super) fn tells(self, outcome: &[f64], weights: &[f64]) -> bool {
        let weighted: Vec<f64> = outcome
            .iter()
            .zip(weights)
            .filter(|(_, w)| **w > 0.0)
            .map(|(y, _)| *y)
            .collect();
        match self {
            Self::Gaussian => !weighted.is_empty(),
            Self::Binomial => weighted.contains(&0.0) && weighted.contains(&1.0),
            Self::Poisson | Self::Gamma | Self::NegativeBinomial => {
                weighted.iter().any(|y| *y > 0.0)
            }
        }
    }
}

/// A row of the negative binomial distribution with mean μ and variance μ + μ²/θ.
fn overdispersed(y: f64, mean: f64, theta: f64) -> FamilyRow {
    let q = 1.0 + mean / theta;
    let sum = mean + theta;
    let log_likelihood = libm::lgamma(y + theta) - libm::lgamma(theta) - libm::lgamma(y + 1.0)
        + theta * libm::log(theta / sum)
        + if y > 0.0 {
            y * libm::log(mean / sum)
        } else {
            0.0
        };
    let by_theta =
        digamma(y + theta) - digamma(theta) + libm::log(theta / sum) + 1.0 - (y + theta) / sum;
    let twice =
        trigamma(y + theta) - trigamma(theta) + 1.0 / theta - 2.0 / sum + (y + theta) / (sum * sum);
    FamilyRow {
        log_likelihood,
        score: (y - mean) / q,
        weight: mean * (1.0 + y / theta) / (q * q),
        dispersion: theta * by_theta,
        cross: -(y - mean) * mean / (theta * q * q),
        curvature: -(theta * theta * twice + theta * by_theta),
        squared_residual: 0.0,
    }
}
