//! Client weights, with a measure of the topology's effect on them.

use serde::{Deserialize, Serialize};

use super::ascent::{Ascent, AscentError};
use super::prior::uniform;

/// The weights of clients, and the weights that the same losses would have given under a uniform
/// prior. If the two hardly differ, the topology has no effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// λ, a point of the simplex.
    pub lambda: Vec<f64>,
    /// λ under a uniform prior, a point of the simplex.
    pub without_topology: Vec<f64>,
}

impl Weights {
    /// The weights of the first round: all equal.
    pub fn uniform(clients: usize) -> Self {
        Self {
            lambda: uniform(clients),
            without_topology: uniform(clients),
        }
    }

    /// One step of `ascent` for both with the same `losses`: λ under `prior`, the other under a uniform
    /// prior.
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

    /// Diagnostics of a round.
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics {
            effective_clients: effective_clients(&self.lambda),
            topology_effect: total_variation(&self.lambda, &self.without_topology),
        }
    }
}

/// The spread of the weights, and the effect of the topology on them.
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

/// `1/Σ λ_k²`: the number of equally weighted clients with the same spread.
fn effective_clients(lambda: &[f64]) -> f64 {
    1.0 / lambda.iter().map(|weight| weight * weight).sum::<f64>()
}

/// Total variation distance `½ Σ |a_k − b_k|` of two points of the simplex, from 0 to 1.
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
    fn the_topology_effect_grows_with_the_strength_of_the_prior() {
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
