//! Members that die for good, under every strategy: the others finish with one chain, and every
//! outcome on it follows from its manifest.

#![allow(clippy::unwrap_used)]

use crate::common::{LEAD_PHASES, of_any_model, outcomes, three_tensors};
use lab::{Summary, run_study};
use simulations::{Options, Scenario};

const ROUNDS: usize = 4;

/// Runs a federation of `n` toy silos with an audit.
fn play(strategy: &str, n: usize, seed: u64, faults: &str) -> Summary {
    let text = format!(
        "name = \"toy\"
        seed = {seed}
        rounds = {ROUNDS}
        task = {{ constant = {{ parameters = 3 }} }}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 10
        keep-rounds = {ROUNDS}
        [strategy]
        name = \"{strategy}\"
        training = {{ epochs = 3, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.25 }} }}
        {faults}"
    );
    let scenario = Scenario::parse("toy.toml", &text).unwrap();
    let centre = |at: usize| {
        let near = at as f64 * 0.1;
        let third = if at.is_multiple_of(2) { 4.0 } else { -2.0 };
        [near, 1.0 - near, third]
    };
    let centres: Vec<_> = (0..n).map(centre).collect();
    let options = Options {
        threads: 2,
        references: false,
        audit: true,
        ..Options::default()
    };
    run_study(&scenario, &three_tensors(&centres), options)
        .unwrap_or_else(|error| panic!("{strategy}, {n} members, seed {seed}: {error}\n{faults}"))
}

#[test]
fn every_strategy_finishes_without_a_lead_that_dies_in_any_phase() {
    for info in of_any_model() {
        let calm = play(info.name, 4, 3, "");
        let mut killed = 0;
        for phase in LEAD_PHASES {
            let kill = format!("[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 2");
            let cut = play(info.name, 4, 3, &kill);
            assert_eq!(cut.rounds.len(), ROUNDS, "{}, {phase}", info.name);
            assert_eq!(
                outcomes(&cut)[0],
                outcomes(&calm)[0],
                "{}, {phase}",
                info.name
            );
            killed += usize::from(cut.trace != calm.trace);
        }
        // Not every strategy scores.
        assert!(killed >= 5, "{}: killed in {killed} phases", info.name);
    }
}

#[test]
fn every_strategy_finishes_without_two_of_seven_members_that_die_at_any_time() {
    for (at, info) in of_any_model().enumerate() {
        // Moments spread over the few seconds that the rounds take, others for every strategy.
        let seed = 10 + at as u64;
        let calm = play(info.name, 7, seed, "");
        let time = |round: &lab::summary::RoundInfo| round.led.as_ref().unwrap().at;
        let last = time(calm.rounds.last().unwrap());
        let moment = |nth: f64| last * ((at as f64 * 0.37 + nth * 0.41) % 1.0);
        let (first, second) = (moment(0.0), moment(1.0));
        let (one, other) = (at % 7, (at * 3 + 1) % 7);
        let other = if one == other { (other + 1) % 7 } else { other };
        let faults = format!(
            "[[fault]]\nkill = \"{one}\"\nat = \"{first:.3}s\"\n[[fault]]\nkill = \"{other}\"\nat = \"{second:.3}s\""
        );
        let cut = play(info.name, 7, seed, &faults);
        assert_eq!(cut.rounds.len(), ROUNDS, "{}", info.name);
        let before = |round: &&lab::summary::RoundInfo| time(round) < first.min(second);
        let same = calm.rounds.iter().filter(before).count().saturating_sub(1);
        assert_eq!(
            outcomes(&cut)[..same],
            outcomes(&calm)[..same],
            "{}",
            info.name
        );
    }
}

/// The simplest case.
#[test]
fn four_silos_finish_without_a_lead_that_dies_after_its_proposal() {
    let kill = "[[fault]]\nkill = \"lead\"\nphase = \"voting\"\nround = 2";
    let summary = play("fedavg", 4, 3, kill);
    assert_eq!(summary.rounds.len(), ROUNDS);
    let view = summary.rounds[1].view().unwrap();
    assert!(view <= 4, "{view}");
}
