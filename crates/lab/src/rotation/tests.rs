#![allow(clippy::unwrap_used)]
//! Small experiments with the built-in scenario.

use protocol::parameters::Rotation;

use super::*;
use simulations::scenario::{Overrides, Scenario};

fn experiment(policies: &[Rotation]) -> RotationExperiment {
    let overrides = Overrides {
        rounds: Some(12),
        ..Overrides::default()
    };
    RotationExperiment {
        scenario: Scenario::load(SCENARIO).unwrap().with(&overrides).unwrap(),
        policies: policies.to_vec(),
        seeds: 1,
        faults: None,
        limit: None,
    }
}

#[test]
fn only_a_fixed_lead_that_dies_loses_rounds_and_only_it_sees_all_authors() {
    let policies = [Rotation::EveryRound, Rotation::OnFailure, Rotation::Fixed];
    let all = rotation(&experiment(&policies), LabOptions::default()).unwrap();
    assert_eq!(all.faults.len(), 5);
    let [every, on_failure, fixed] = &all.policies[..] else {
        panic!("three policies")
    };
    for going_on in [every, on_failure] {
        assert_eq!(going_on.rounds_lost.mean, 0.0, "{}", going_on.policy);
        assert_eq!(going_on.never, 0, "{}", going_on.policy);
        assert!(going_on.leads_stopped >= 4, "{}", going_on.leads_stopped);
        assert!(going_on.take_over_worst.is_some_and(|worst| worst < 60.0));
        assert!(going_on.stalled_worst.is_some_and(|worst| worst < 60.0));
    }
    // The lead of round 6 dies for good.
    assert!(fixed.rounds_lost.mean >= 6.0, "{:?}", fixed.rounds_lost);
    assert_eq!(fixed.never, 1);
    assert_eq!(fixed.stalled_worst, None);
    assert_eq!(fixed.seconds, None);
    // One of eight has seen seven others; under rotation nearly everybody has.
    assert_eq!((fixed.seen_mean.mean, fixed.seen_most.mean), (0.125, 1.0));
    assert!(every.seen_mean.mean > 0.8, "{:?}", every.seen_mean);
    assert!(on_failure.seen_mean.mean < every.seen_mean.mean);
    // The first lead that stops was finishing the same round under each policy.
    let first = |policy: &PolicyResult| policy.trials[0].take_overs[0].round;
    assert_eq!(policies.len(), all.policies.len());
    assert_eq!([first(every), first(on_failure), first(fixed)], [2; 3]);
    // Twelve rounds with five faults tell the fixed lead from the others, and these not from each other.
    for changing in [every, on_failure] {
        assert!(fixed.gini_led.mean > changing.gini_led.mean);
    }
    // The lead answers for the others: it sends more than its share.
    let share = every.lead_bytes_per_round.mean / every.bytes_per_round.mean;
    assert!(share > 1.0 / 8.0, "{share}");
    assert!(every.lead_work_per_round.mean > 0.0);
}

#[test]
fn the_same_experiment_gives_the_same_document() {
    let one = || {
        let mut experiment = experiment(&[Rotation::Reliability]);
        experiment.scenario.rounds = 4;
        rotation(&experiment, LabOptions::default()).unwrap()
    };
    assert_eq!(one(), one());
}
