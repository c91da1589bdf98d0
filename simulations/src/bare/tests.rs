//! Many worlds.

#![allow(clippy::unwrap_used)]

use super::*;

fn sweep(members: usize, seeds: std::ops::Range<u64>, faults: Faults) -> Vec<Ended> {
    let options = Options::new(members, faults);
    seeds.map(|seed| run(seed, &options).unwrap_or_else(|failure| panic!("{failure}"))).collect()
}

#[test]
fn without_faults_every_round_takes_one_view() {
    for members in [1, 2, 3, 4, 7, 10] {
        for ended in sweep(members, 0..5, Faults::none()) {
            assert_eq!(ended.faults, 0);
            assert!(ended.views <= 4, "{ended:?}");
            assert_eq!(ended.trainings, vec![members as u64; 3]);
        }
    }
}

#[test]
fn a_seed_is_a_run() {
    let options = Options::new(4, Faults::all());
    assert_eq!(run(1, &options).unwrap(), run(1, &options).unwrap());
    assert_ne!(run(1, &options).unwrap().trace, run(2, &options).unwrap().trace);
}

#[test]
fn everything_goes_wrong() {
    let faults = |ended: Vec<Ended>| ended.iter().map(|e| e.faults).sum::<u64>();
    assert!(faults(sweep(4, 0..150, Faults::all())) > 1_500);
    assert!(faults(sweep(7, 0..40, Faults::all())) > 1_000);
    assert!(faults(sweep(10, 0..15, Faults::all())) > 500);
}

#[test]
fn a_rule_that_the_surroundings_break_is_noticed() {
    let mut late = Options::new(4, Faults { inside: 0.05, crashes: 8, ..Faults::all() });
    late.persist_last = true;
    let mut forget = Options::new(4, Faults { crashes: 8, ..Faults::all() });
    forget.forget = true;
    for broken in [late, forget] {
        assert!((0..400).any(|seed| violated(seed, &broken)));
    }
}

fn violated(seed: u64, options: &Options) -> bool {
    matches!(run(seed, options), Err(Failure::Violated { .. }))
}
