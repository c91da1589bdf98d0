//! Measures for experiments whether a prior singles out adversaries. No strategy uses it.

use serde::{Deserialize, Serialize};

/// Priors whose relative difference is smaller are equal: sums over a graph may run in another order
/// for another client.
const SAME: f64 = 1e-12;

/// Numbers of adversaries and honest clients that have the smallest prior. A prior defends a federation only
/// as far as it singles out the adversaries; Ma et al. 2024 leave the question to future work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Isolation {
    /// Number of adversaries.
    pub adversaries: usize,
    /// Number of adversaries that have the smallest prior.
    pub adversaries_minimal: usize,
    /// Number of honest clients.
    pub honest: usize,
    /// Number of honest clients that have the smallest prior.
    pub honest_minimal: usize,
    /// The adversaries' total prior, from 0 to 1; under a uniform prior it is their share of the
    /// clients.
    pub share: f64,
}

impl Isolation {
    /// Returns whether all adversaries have the smallest prior, and no honest client has.
    pub fn singled_out(&self) -> bool {
        self.adversaries_minimal == self.adversaries && self.honest_minimal == 0
    }
}

/// Counts who has the smallest prior. `adversaries` are clients from 0; numbers beyond the clients are
/// ignored.
pub fn isolation(prior: &[f64], adversaries: &[usize]) -> Isolation {
    let least = prior.iter().copied().fold(f64::INFINITY, f64::min);
    let mut found = Isolation {
        adversaries: 0,
        adversaries_minimal: 0,
        honest: 0,
        honest_minimal: 0,
        share: 0.0,
    };
    for (client, &weight) in prior.iter().enumerate() {
        let minimal = usize::from(weight - least <= SAME * least);
        if adversaries.contains(&client) {
            found.adversaries += 1;
            found.adversaries_minimal += minimal;
            found.share += weight;
        } else {
            found.honest += 1;
            found.honest_minimal += minimal;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_with_the_smallest_prior_are_counted() {
        let apart = isolation(&[0.3, 0.1, 0.35, 0.25], &[1]);
        assert!(apart.singled_out());
        assert_eq!((apart.adversaries, apart.honest, apart.share), (1, 3, 0.1));
        // Minimal, and so are most of the honest, up to rounding.
        let hidden = isolation(&[0.1, 0.1, 0.1 * (1.0 + 1e-15), 0.7], &[0]);
        assert!(!hidden.singled_out());
        assert_eq!((hidden.adversaries_minimal, hidden.honest_minimal), (1, 2));
        let missed = isolation(&[0.1, 0.2, 0.7], &[1, 2]);
        assert_eq!((missed.adversaries_minimal, missed.honest_minimal), (0, 1));
        assert!((missed.share - 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_uniform_prior_singles_out_no_client() {
        let all = isolation(&[0.25; 4], &[0, 9]);
        assert_eq!(
            (all.adversaries, all.adversaries_minimal, all.honest_minimal),
            (1, 1, 3)
        );
        assert!(!all.singled_out());
        let none = isolation(&[], &[0]);
        assert_eq!((none.adversaries, none.honest, none.share), (0, 0, 0.0));
    }
}
