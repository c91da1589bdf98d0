//! Properties of every step.

use proptest::prelude::*;

use super::*;

/// Some point of the simplex, corners and edges included.
fn weights(clients: usize) -> impl Strategy<Value = Vec<f64>> {
    let parts = prop::collection::vec(prop_oneof![Just(0.0), 1e-9..1.0f64], clients);
    parts.prop_map(|parts| {
        let total: f64 = parts.iter().sum();
        if total > 0.0 {
            parts.iter().map(|part| part / total).collect()
        } else {
            uniform(parts.len())
        }
    })
}

fn clients() -> impl Strategy<Value = (Vec<f64>, Vec<f64>, Vec<f64>)> {
    (1usize..9).prop_flat_map(|n| {
        (
            weights(n),
            weights(n),
            prop::collection::vec(-5.0..5.0f64, n),
        )
    })
}

fn divergence() -> impl Strategy<Value = Divergence> {
    prop_oneof![
        Just(Divergence::L2),
        Just(Divergence::Kl),
        Just(Divergence::ChiSquared)
    ]
}

proptest! {
    #[test]
    fn weights_stay_on_the_simplex(
        (lambda, prior, losses) in clients(), divergence in divergence(),
        q in prop_oneof![Just(0.0), Just(f64::INFINITY), (-6.0..9.0f64).prop_map(|e| libm::pow(10.0, e))],
        rate in prop_oneof![Just(0.0), (-6.0..9.0f64).prop_map(|e| libm::pow(10.0, e))],
        floor in prop_oneof![Just(0.0), 0.0..1.0f64],
    ) {
        let ascent = Ascent { divergence, q, rate, floor };
        let found = ascent.step(&lambda, &prior, &losses).unwrap();
        prop_assert_eq!(found.len(), lambda.len());
        prop_assert!(found.iter().all(|weight| *weight >= 0.0), "{:?}", found);
        prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{:?}", found);
    }

    /// Each step is a step up: `Σ λ_k·v_k − q·D(λ‖p)` does not fall.
    #[test]
    fn every_step_climbs(
        (lambda, _, losses) in clients(), divergence in divergence(),
        q in 0.0..3.0f64, rate in 0.0..3.0f64, tilt in prop::collection::vec(-1.0..1.0f64, 9),
    ) {
        let prior = normalised_exp(&tilt[..lambda.len()]);
        let ascent = Ascent { divergence, q, rate, floor: 0.0 };
        let objective = |lambda: &[f64]| {
            let risk: f64 = lambda.iter().zip(&losses).map(|(l, v)| l * v).sum();
            risk - q * divergence.value(lambda, &prior)
        };
        let next = ascent.step(&lambda, &prior, &losses).unwrap();
        prop_assert!(objective(&next) >= objective(&lambda) - 1e-9);
    }

    /// Nothing that is proportional to (1, …, 1) in the losses matters.
    #[test]
    fn a_constant_added_to_all_losses_changes_nothing(
        (lambda, prior, losses) in clients(), divergence in divergence(), shift in -10.0..10.0f64,
    ) {
        let ascent = Ascent { divergence, ..Ascent::default() };
        let shifted: Vec<f64> = losses.iter().map(|loss| loss + shift).collect();
        let (a, b) =
            (ascent.step(&lambda, &prior, &losses).unwrap(), ascent.step(&lambda, &prior, &shifted).unwrap());
        prop_assert!(distance(&a, &b) < 1e-9);
    }

    #[test]
    fn all_divergences_reach_their_limits(
        (start, _, losses) in clients(), q in 0.5..3.0f64, tilt in prop::collection::vec(-1.0..1.0f64, 9),
    ) {
        let prior = normalised_exp(&tilt[..start.len()]);
        let moved: Vec<f64> = prior.iter().zip(&losses).map(|(p, v)| p + v / q).collect();
        for (divergence, limit) in [
            (Divergence::L2, project(&moved).unwrap()),
            (Divergence::Kl, tilted(&prior, &losses, q)),
            (Divergence::ChiSquared, chi_squared_limit(&prior, &losses, q)),
        ] {
            let ascent = Ascent { divergence, q, rate: 0.2, floor: 0.0 };
            let climb = |lambda: Vec<f64>, _| ascent.step(&lambda, &prior, &losses).unwrap();
            let found = (0..400).fold(start.clone(), climb);
            prop_assert!(distance(&found, &limit) < 1e-6, "{:?} {:?} {:?}", divergence, found, limit);
        }
    }
}
