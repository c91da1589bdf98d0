//! Members that die and never come back, under every strategy: the others finish on one chain, and
//! every outcome on it follows from its sheet.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use methods::strategy::STRATEGIES;
use simulations::toy::{ToyLearner, study};
use simulations::{Options, Scenario, Summary, run_study};

/// Tensors of which some strategies keep some at home.
const NAMES: [&str; 3] = ["layer0.weight", "layer1.weight", "norm0.weight"];
const ROUNDS: usize = 4;

/// A federation of `n` toys, audited in the end.
fn play(strategy: &str, n: usize, seed: u64, faults: &str) -> Summary {
    let text = format!(
        "name = \"toy\"
        seed = {seed}
        rounds = {ROUNDS}
        task = {{ constant = {{ parameters = 3 }} }}
        [charter]
        beat = \"1s\"
        patience = 10
        keep = {ROUNDS}
        [strategy]
        name = \"{strategy}\"
        training = {{ epochs = 3, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.25 }} }}
        {faults}"
    );
    let scenario = Scenario::parse("toy.toml", &text).unwrap();
    let silo = |at: usize| {
        let near = at as f32 * 0.1;
        let centre = [
            near,
            1.0 - near,
            if at.is_multiple_of(2) { 4.0 } else { -2.0 },
        ];
        Arc::new(ToyLearner::layered(&NAMES, &centre))
    };
    let silos: Vec<_> = (0..n).map(silo).collect();
    let options = Options {
        threads: 2,
        references: false,
        audit: true,
        ..Options::default()
    };
    run_study(&scenario, &study(&silos), options)
        .unwrap_or_else(|error| panic!("{strategy}, {n} members, seed {seed}: {error}\n{faults}"))
}

fn outcomes(summary: &Summary) -> Vec<&str> {
    let rounds = summary.rounds.iter();
    rounds.map(|round| round.outcome.as_str()).collect()
}

#[test]
fn a_lead_that_dies_for_good_in_any_phase_stops_no_strategy() {
    for info in STRATEGIES {
        let calm = play(info.name, 4, 3, "");
        let mut killed = 0;
        for phase in [
            "collecting",
            "scoring",
            "including",
            "deciding",
            "voting",
            "notarised",
        ] {
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
fn f_members_that_die_for_good_at_any_moment_stop_no_strategy() {
    for (at, info) in STRATEGIES.iter().enumerate() {
        // Moments spread over the few seconds that the rounds take, others for every strategy.
        let seed = 10 + at as u64;
        let calm = play(info.name, 7, seed, "");
        let last = calm.rounds.last().unwrap().at;
        let moment = |nth: f64| last * ((at as f64 * 0.37 + nth * 0.41) % 1.0);
        let (first, second) = (moment(0.0), moment(1.0));
        let (one, other) = (at % 7, (at * 3 + 1) % 7);
        let other = if one == other { (other + 1) % 7 } else { other };
        let faults = format!(
            "[[fault]]\nkill = \"{one}\"\nat = \"{first:.3}s\"\n[[fault]]\nkill = \"{other}\"\nat = \"{second:.3}s\""
        );
        let cut = play(info.name, 7, seed, &faults);
        assert_eq!(cut.rounds.len(), ROUNDS, "{}", info.name);
        let before = |round: &&simulations::summary::RoundInfo| round.at < first.min(second);
        let same = calm.rounds.iter().filter(before).count().saturating_sub(1);
        assert_eq!(
            outcomes(&cut)[..same],
            outcomes(&calm)[..same],
            "{}",
            info.name
        );
    }
}

/// The shortest form of the failure that this file is about, over real rules and real models.
#[test]
fn four_silos_lose_the_lead_right_after_its_proposal() {
    let kill = "[[fault]]\nkill = \"lead\"\nphase = \"voting\"\nround = 2";
    let summary = play("fedavg", 4, 3, kill);
    assert_eq!(summary.rounds.len(), ROUNDS);
    assert!(summary.rounds[1].view <= 4, "{:?}", summary.rounds[1].view);
}
