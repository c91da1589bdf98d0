//! Ascent of the client weights λ: `max_λ Σ λ_k·f_k − q·D(λ‖p)` (TFL, Ma et al. 2024, eqs. (5)–(7)).
//!
//! Clients with large losses gain weight, as far as the divergence from the prior `p` allows.

use serde::{Deserialize, Serialize};

use super::prior::normalised_exp;
use super::simplex::{contains, level, project};

/// Lower bound of weights in logarithms and divisions.
const LEAST: f64 = 1e-12;

/// Largest absolute loss: products with rates and sums stay finite.
const LARGEST: f64 = 1e100;

/// `rate · q` from which a proximal step reaches its limit, up to rounding.
const STIFF: f64 = 1e15;

/// The divergence `D(λ‖p)` of weights from the prior. The paper leaves it open; ℓ2 is that of the
/// authors' earlier method.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Divergence {
    /// `½‖λ − p‖²`.
    #[default]
    L2,
    /// `Σ λ_k·log(λ_k/p_k)` (Kullback-Leibler).
    Kl,
    /// `Σ (λ_k − p_k)²/p_k` (Pearson's χ²).
    ChiSquared,
}

impl Divergence {
    /// `D(λ‖p)`, with `0·log 0 = 0` and priors of at least 1e-12.
    ///
    /// `lambda` and `prior` are points of the simplex over the same clients.
    pub fn value(self, lambda: &[f64], prior: &[f64]) -> f64 {
        let pairs = lambda.iter().zip(prior);
        match self {
            Self::L2 => pairs.map(|(l, p)| (l - p) * (l - p)).sum::<f64>() / 2.0,
            Self::Kl => pairs
                .filter(|(l, _)| **l > 0.0)
                .map(|(l, p)| l * (libm::log(*l) - libm::log(p.max(LEAST))))
                .sum(),
            Self::ChiSquared => pairs.map(|(l, p)| (l - p) * (l - p) / p.max(LEAST)).sum(),
        }
    }

    /// `∂D/∂λ_k` for every client, with weights and priors of at least 1e-12 where they are
    /// divided by or a logarithm of them is taken.
    ///
    /// `lambda` and `prior` are points of the simplex over the same clients.
    pub fn gradient(self, lambda: &[f64], prior: &[f64]) -> Vec<f64> {
        let slope = |l: f64, p: f64| match self {
            Self::L2 => l - p,
            Self::Kl => libm::log(l.max(LEAST)) - libm::log(p.max(LEAST)) + 1.0,
            Self::ChiSquared => 2.0 * (l - p) / p.max(LEAST),
        };
        let pairs = lambda.iter().zip(prior);
        pairs.map(|(&l, &p)| slope(l, p)).collect()
    }
}

/// Errors of a step of the weights.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum AscentError {
    /// A strength of the prior that is negative or NaN.
    #[error("q, the strength of the prior, must be at least 0 (or infinite), not {0}")]
    Q(f64),
    /// A rate that is negative, not finite, or beyond 1e100.
    #[error("the rate of the weights must be between 0 and 1e100, not {0}")]
    Rate(f64),
    /// A floor outside of `[0, 1]`.
    #[error("the floor of the weights must be between 0 and 1, not {0}")]
    Floor(f64),
    /// Vectors over different numbers of clients.
    #[error(
        "there are {lambda} weights, {prior} priors and {losses} losses: one of each is needed per client"
    )]
    Lengths {
        /// Number of weights.
        lambda: usize,
        /// Number of priors.
        prior: usize,
        /// Number of losses.
        losses: usize,
    },
    /// Weights that are no distribution.
    #[error("the weights of clients must be at least 0 and sum to 1")]
    Lambda,
    /// A prior that is no distribution.
    #[error("the prior over clients must be at least 0 and sum to 1")]
    Prior,
    /// A loss that is NaN, infinite, or beyond 1e100.
    #[error("the loss of client {client} is not finite, or beyond 1e100")]
    Loss {
        /// Number of the client, from 0.
        client: usize,
    },
}

/// Options of the ascent of client weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ascent {
    /// The divergence from the prior. Default: ℓ2.
    pub divergence: Divergence,
    /// `q`: the weight of the divergence, in units of the loss. With 0 the prior has no effect, which
    /// is DRFA (Deng et al. 2020) under ℓ2 and χ²; with infinity the weights are the prior. Default
    /// 0.1, the paper's.
    pub q: f64,
    /// `η_λ`: the step size, in weight per unit of loss. Default 0.1, a guess: the paper states none.
    pub rate: f64,
    /// Lower bound of every weight, applied before the weights are scaled to sum to 1. With 0, the
    /// default, a client may have weight 0 until its loss increases it.
    pub floor: f64,
}

impl Default for Ascent {
    fn default() -> Self {
        Self {
            divergence: Divergence::default(),
            q: 0.1,
            rate: 0.1,
            floor: 0.0,
        }
    }
}

impl Ascent {
    /// Checks that all options are in their ranges.
    ///
    /// # Errors
    /// [`AscentError::Q`], [`AscentError::Rate`], [`AscentError::Floor`].
    pub fn validate(&self) -> Result<(), AscentError> {
        if self.q.is_nan() || self.q < 0.0 {
            return Err(AscentError::Q(self.q));
        }
        if !(0.0..=LARGEST).contains(&self.rate) {
            return Err(AscentError::Rate(self.rate));
        }
        if !(0.0..=1.0).contains(&self.floor) {
            return Err(AscentError::Floor(self.floor));
        }
        Ok(())
    }

    /// The next weights, a point of the simplex, by the step that is stable under the divergence:
    ///
    /// * ℓ2: the projected gradient step of eq. (7), `P_Δ(λ + η·(v − q·(λ − p)))`. With
    ///   constant losses it converges to `P_Δ(p + v/q)`.
    /// * Kullback–Leibler: the mirror step `λ_k^{1−ηq}·p_k^{ηq}·exp(η·v_k)`, scaled to sum to 1,
    ///   which converges to `p_k·exp(v_k/q)`. The gradient is unbounded where weights vanish: a
    ///   projected step would remove clients permanently unless `ηq` is tiny.
    /// * χ²: the proximal step, `argmax_λ Σ λ_k·v_k − q·D(λ‖p) − ‖λ − λᵗ‖²/(2η)`, which converges
    ///   to `p_k·(1 + (v_k − Σ p_l·v_l)/(2q))` where that is nowhere negative. The gradient is divided
    ///   by priors, so an explicit step would need a rate below the smallest prior.
    ///
    /// The first two use a rate of at most `1/q`: with that rate a step reaches the limit, and a larger
    /// one overshoots.
    ///
    /// * `lambda`, `prior`: points of the simplex.
    /// * `losses`: `v`, in any unit; `q` has the same.
    ///
    /// # Errors
    /// [`AscentError`]: options out of range, different lengths, weights or a prior that are no
    /// distribution, a loss that is not finite.
    pub fn step(
        &self,
        lambda: &[f64],
        prior: &[f64],
        losses: &[f64],
    ) -> Result<Vec<f64>, AscentError> {
        self.check(lambda, prior, losses)?;
        if self.q == f64::INFINITY {
            return Ok(self.floored(prior.to_vec()));
        }
        let clients = lambda.iter().zip(prior).zip(losses);
        let clients = clients.map(|((&lambda, &prior), &loss)| (lambda, prior, loss));
        let (rate, pull) = self.rate_within(match self.divergence {
            Divergence::L2 | Divergence::Kl => 1.0,
            Divergence::ChiSquared => STIFF,
        });
        let next = match self.divergence {
            Divergence::L2 => {
                let moved = clients.map(|(l, p, v)| l + rate * v - pull * (l - p));
                on_simplex(&moved.collect::<Vec<_>>())
            }
            Divergence::Kl => {
                let log = |weight: f64| libm::log(weight.max(LEAST));
                let moved =
                    clients.map(|(l, p, v)| (1.0 - pull) * log(l) + pull * log(p) + rate * v);
                normalised_exp(&moved.collect::<Vec<_>>())
            }
            Divergence::ChiSquared => {
                // The optimum of a quadratic with curvature 1/η + 2q/p_k, times η.
                let (heights, slopes): (Vec<f64>, Vec<f64>) = clients
                    .map(|(l, p, v)| (p.max(LEAST), l + rate * v))
                    .map(|(p, height)| (height, p / (p + 2.0 * pull)))
                    .unzip();
                level(&heights, &slopes)
            }
        };
        Ok(self.floored(next))
    }

    fn check(&self, lambda: &[f64], prior: &[f64], losses: &[f64]) -> Result<(), AscentError> {
        self.validate()?;
        if lambda.len() != prior.len() || lambda.len() != losses.len() {
            return Err(AscentError::Lengths {
                lambda: lambda.len(),
                prior: prior.len(),
                losses: losses.len(),
            });
        }
        if !contains(lambda) {
            return Err(AscentError::Lambda);
        }
        if !contains(prior) {
            return Err(AscentError::Prior);
        }
        let odd = |loss: &f64| loss.is_nan() || loss.abs() > LARGEST;
        match losses.iter().position(odd) {
            Some(client) => Err(AscentError::Loss { client }),
            None => Ok(()),
        }
    }

    /// The rate `η` and `ηq`, with a rate for which the latter is at most `most`.
    fn rate_within(&self, most: f64) -> (f64, f64) {
        let pull = self.rate * self.q;
        if pull < most {
            (self.rate, pull)
        } else {
            (most / self.q, most)
        }
    }

    /// Raises all weights to the floor and scales them to sum to 1.
    fn floored(&self, mut lambda: Vec<f64>) -> Vec<f64> {
        if lambda.iter().any(|weight| *weight < self.floor) {
            lambda
                .iter_mut()
                .for_each(|weight| *weight = weight.max(self.floor));
            let total: f64 = lambda.iter().sum();
            lambda.iter_mut().for_each(|weight| *weight /= total);
        }
        lambda
    }
}

/// Projects checked values, which are finite because losses, rates and `q` are bounded.
fn on_simplex(moved: &[f64]) -> Vec<f64> {
    project(moved).expect("bounded losses, rates and q give finite values")
}

#[cfg(test)]
mod tests;
