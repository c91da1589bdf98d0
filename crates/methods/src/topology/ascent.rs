//! The weights λ of clients, and how they climb towards those who lose most without going far from
//! the prior: `max_λ Σ λ_k·f_k − q·D(λ‖p)` (TFL, Ma et al. 2024, eqs. (5)–(7)).

use serde::{Deserialize, Serialize};

use super::prior::normalised_exp;
use super::simplex::{contains, level, project};

/// Weights below this count as this where a logarithm or a quotient of them is taken.
const LEAST: f64 = 1e-12;

/// Largest absolute loss: leaves room for rates and sums.
const LARGEST: f64 = 1e100;

/// `rate · q` at which a proximal step lands where it would end, up to rounding.
const STIFF: f64 = 1e15;

/// How the distance `D(λ‖p)` of weights from the prior is measured. The paper leaves it open;
/// ℓ2 is what the authors' earlier method uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Divergence {
    /// `½‖λ − p‖²`.
    #[default]
    L2,
    /// `Σ λ_k·log(λ_k/p_k)`: Kullback & Leibler's.
    Kl,
    /// `Σ (λ_k − p_k)²/p_k`: Pearson's χ².
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

/// Why weights cannot take a step.
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
    #[error("there are {lambda} weights, {prior} priors and {losses} losses: one per client each")]
    Lengths {
        /// Weights at hand.
        lambda: usize,
        /// Priors at hand.
        prior: usize,
        /// Losses at hand.
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
        /// Which client, from 0.
        client: usize,
    },
}

/// How weights climb.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ascent {
    /// How the distance from the prior is measured. Default: ℓ2.
    pub divergence: Divergence,
    /// `q`: how much that distance counts, in units of the loss. 0: not at all, which is DRFA
    /// (Deng et al. 2020) under ℓ2 and χ²; infinite: weights are the prior. Default 0.1, the
    /// paper's.
    pub q: f64,
    /// `η_λ`: how far a step goes, in weight per unit of loss. Default 0.1, a guess: the paper has
    /// none.
    pub rate: f64,
    /// No client's weight falls below this before all are scaled to sum to 1 again. With 0, the
    /// default, a client may be left out until its loss lifts it.
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
    /// Whether all options are in their ranges.
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

    /// The next weights, a point of the simplex, by the step that behaves under this divergence:
    ///
    /// * ℓ2: the projected gradient step of eq. (7), `P_Δ(λ + η·(v − q·(λ − p)))`. For losses that
    ///   stay it ends at `P_Δ(p + v/q)`.
    /// * Kullback–Leibler: the mirror step `λ_k^{1−ηq}·p_k^{ηq}·exp(η·v_k)`, scaled to sum to 1,
    ///   which ends at `p_k·exp(v_k/q)`. The gradient is unbounded where weights vanish: the
    ///   projected step throws clients out for good unless `ηq` is tiny.
    /// * χ²: the proximal step, `argmax_λ Σ λ_k·v_k − q·D(λ‖p) − ‖λ − λᵗ‖²/(2η)`, which ends at
    ///   `p_k·(1 + (v_k − Σ p_l·v_l)/(2q))` where that is nowhere negative. Priors divide here,
    ///   so an explicit step would need a rate below the smallest.
    ///
    /// The first two use a rate of at most `1/q`: there a step lands where it would end, and a
    /// longer one goes beyond.
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

    /// Lifts all to the floor and scales them to sum to 1.
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

/// The projection of what was checked: bounded losses, rates and strengths leave it finite.
fn on_simplex(moved: &[f64]) -> Vec<f64> {
    project(moved).expect("checked weights move to finite places")
}

#[cfg(test)]
mod tests;
