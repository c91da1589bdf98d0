//! Weights with what tells whether the topology moved them.

use serde::{Deserialize, Serialize};

use super::ascent::{Ascent, AscentError};
use super::prior::uniform;

/// The weights of clients, and beside them those that the same losses would have led to under a
/// uniform prior. Where the two hardly differ the topology does nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// λ, a point of the simplex.
    pub lambda: Vec<f64>,
    /// What λ would be without a topology, a point of the simplex.
    pub without_topology: Vec<f64>,
}

impl Weights {
    /// Those of the first round: everybody alike.
    pub fn uniform(clients: usize) -> Self {
        Self {
            lambda: uniform(clients),
            without_topology: uniform(clients),
        }
    }

    /// Both after one step of `ascent` for the same `losses`: λ under `prior`, the other under a
    /// uniform one.
    ///
    /// # Errors
    /// As [`Ascent::step`].
    pub fn step(
        &self,
        ascent: &Ascent,
        prior: &[f64],
        losses: &[f64],
    ) -> Result<Self, AscentError> {
        let alike = uniform(prior.len());
        Ok(Self {
            lambda: ascent.step(&self.lambda, prior, losses)?,
            without_topology: ascent.step(&self.without_topology, &alike, losses)?,
        })
    }

    /// What to report of a round.
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics {
            effective_clients: effective_clients(&self.lambda),
            topology_effect: total_variation(&self.lambda, &self.without_topology),
        }
    }
}

/// How weights are spread, and what the topology has to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Diagnostics {
    /// `1/Σ λ_k²`: how many equally weighted clients would be as spread out, from 1 (all weight on
    /// one client) to the number of clients.
    pub effective_clients: f64,
    /// Total variation distance of λ from the weights without a topology, from 0 to 1. Below about
    /// 0.02 the topology has no visible effect on the results.
    pub topology_effect: f64,
}

/// `1/Σ λ_k²`: how many equally weighted clients would be as spread out; from 1 (all weight on one)
/// to their number.
fn effective_clients(lambda: &[f64]) -> f64 {
    1.0 / lambda.iter().map(|weight| weight * weight).sum::<f64>()
}

/// `½ Σ |a_k − b_k|`: the part of the weight that has to be moved to make one of the other; from 0
/// (equal) to 1 (nothing in common). Both are points of the simplex over the same clients.
pub(crate) fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_distance_of_known_weights() {
        assert_eq!(effective_clients(&[0.25; 4]), 4.0);
        assert_eq!(effective_clients(&[0.0, 1.0]), 1.0);
        assert_eq!(effective_clients(&[0.5, 0.5, 0.0]), 2.0);
        assert_eq!(total_variation(&[1.0, 0.0], &[0.0, 1.0]), 1.0);
        assert_eq!(
            total_variation(&[0.5, 0.25, 0.25], &[0.25, 0.5, 0.25]),
            0.25
        );
    }

    #[test]
    fn a_uniform_prior_has_no_effect() {
        let mut weights = Weights::uniform(3);
        for _ in 0..5 {
            let ascent = Ascent::default();
            weights = weights
                .step(&ascent, &uniform(3), &[0.1, 0.5, 0.2])
                .unwrap();
        }
        assert_eq!(weights.diagnostics().topology_effect, 0.0);
        assert!(weights.diagnostics().effective_clients < 3.0);
    }

    #[test]
    fn a_weak_prior_has_little_effect_and_a_strong_one_all() {
        let prior = [0.2, 0.3, 0.5];
        let effect = |q: f64| {
            let ascent = Ascent {
                q,
                ..Ascent::default()
            };
            let step = Weights::uniform(3).step(&ascent, &prior, &[0.3, 0.2, 0.1]);
            step.unwrap().diagnostics().topology_effect
        };
        assert!(effect(0.1) < 0.02);
        assert!((effect(f64::INFINITY) - total_variation(&prior, &uniform(3))).abs() < 1e-12);
    }
}
