//! A strategy of your own: FedAvg with server momentum (FedAvgM; Hsu, Qi & Brown 2019, *Measuring
//! the Effects of Non-Identical Data Distribution*), in a federation of three toy silos.
//!
//! `cargo run --example own_strategy`; explained in `docs/methods/add-a-strategy.md`.

use std::error::Error;
use std::ops::ControlFlow;

use rota::methods::learner::{Optimiser, QuadraticLearner};
use rota::methods::params::weighted_mean;
use rota::methods::strategy::{AssignAndAggregate, OwnRadius, Participant, SettleError};
use rota::methods::{Learner, LoadedManifest, ModelEntry, Params, State, Strategy, Training};

/// Name of the velocity in the state.
const VELOCITY: &str = "fedavgm.velocity";

/// `v ← βv + mean(θ_k) − θ` and `θ ← θ + v`, silos weighted by their training rows.
struct FedAvgM {
    training: Training,
    /// β in [0, 1); 0 is FedAvg.
    momentum: f64,
}

impl AssignAndAggregate for FedAvgM {
    fn name(&self) -> &'static str {
        "fedavgm"
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn by_rows(&self) -> bool {
        true
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        _: &[u32],
        _: u64,
    ) -> Result<State, SettleError> {
        manifest.require_rows()?;
        let rows = |entry: &ModelEntry| entry.weight.unwrap_or(0) as f64;
        let models: Vec<_> = manifest
            .entries
            .iter()
            .map(|entry| (&entry.model, rows(entry)))
            .collect();
        let mean = weighted_mean(&models)?;
        let start = &state.models[0];
        let before = state.tables.get(VELOCITY).and_then(|kept| kept.first());
        let velocity = Params::build(start.layout(), |into| {
            for (at, velocity) in into.iter_mut().enumerate() {
                let before = before.map_or(0.0, |before| f64::from(before.values()[at]));
                let change = f64::from(mean.values()[at]) - f64::from(start.values()[at]);
                *velocity = (self.momentum * before + change) as f32;
            }
        });
        let next = Params::build(start.layout(), |into| {
            for (at, next) in into.iter_mut().enumerate() {
                *next = start.values()[at] + velocity.values()[at];
            }
        });
        let mut after = state.with(vec![next]);
        after.tables.insert(VELOCITY.into(), vec![velocity]);
        Ok(after)
    }
}

/// The weight of the global model after this number of rounds, every step as in a federation.
fn learn(momentum: f64, rounds: u64) -> Result<f32, Box<dyn Error>> {
    // A training goes half of the way to the silo's own best weight.
    let optimiser = Optimiser::Sgd {
        rate: 0.5,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    let strategy: &dyn Strategy = &FedAvgM {
        training: Training {
            epochs: 1,
            batch: 0,
            optimiser,
            decay: None,
        },
        momentum,
    };
    // The best weights of three silos, and their training rows.
    let silos = [(1.0, 10), (2.0, 10), (6.0, 20)]
        .map(|(best, rows)| QuadraticLearner::new(&[best]).with_samples(rows));
    let (personal, radius) = (Params::empty(), OwnRadius::default());
    let mut state = State::genesis(silos[0].initial(0));
    for round in 1..=rounds {
        let plan = strategy.plan(&state, round);
        let mut entries = Vec::new();
        for (member, learner) in (0..).zip(&silos) {
            let participant = Participant {
                member,
                coalition: 0,
                learner,
                personal: &personal,
                radius: &radius,
                seed: round,
            };
            let go_on = &mut |_| ControlFlow::Continue(());
            let (coalition, update) =
                strategy.contribute(&state, &plan, round, participant, go_on)?;
            let entry = ModelEntry {
                model: update.shared,
                coalition: Some(coalition),
                weight: plan.weights.then_some(update.samples),
                member: None,
            };
            strategy.admit(&entry, round)?;
            entries.push(entry);
        }
        let manifest = LoadedManifest {
            entries,
            scores: None,
        };
        // The lead decides; every member checks the decision and computes the outcome.
        let decision = strategy.decide(&state, &manifest, round)?;
        strategy.check(&state, &manifest, &decision, round)?;
        state = strategy.settle(&state, &manifest, &decision, round)?.state;
    }
    Ok(state.models[0].values()[0])
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("best common weight  3.75");
    for momentum in [0.0, 0.1] {
        println!(
            "momentum {momentum}: {:.4} after 4 rounds",
            learn(momentum, 4)?
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::learn;

    #[test]
    fn fedavgm_approaches_the_best_weight_faster_than_fedavg() {
        let off = |momentum| (learn(momentum, 4).expect("four rounds") - 3.75).abs();
        assert!(off(0.1) < off(0.0), "{} {}", off(0.1), off(0.0));
        assert!((learn(0.1, 40).expect("forty rounds") - 3.75).abs() < 1e-4);
    }

    #[test]
    fn fedavgm_without_momentum_equals_fedavg() {
        // FedAvg halves the distance from the best weight in every round.
        let fedavg = 3.75 * (1.0 - 0.5f32.powi(4));
        assert!((learn(0.0, 4).expect("four rounds") - fedavg).abs() < 1e-6);
    }
}
