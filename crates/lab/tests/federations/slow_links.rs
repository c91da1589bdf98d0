//! Models that are large for the links: nobody who contributes in time is left out.

#![allow(clippy::unwrap_used)]

use lab::{Summary, run};
use simulations::{Options, Scenario};

/// One model takes 160 s from one silo to another, which is longer than the usual patience of a minute.
fn play(patience: &str) -> Summary {
    let text = format!(
        r#"
name = "slow links"
seed = 4
rounds = 2
silos = 3
task = {{ constant = {{ parameters = 10_000 }} }}

[strategy]
name = "fedavg"
training = {{ epochs = 1, batch = 0, optimiser = {{ name = "sgd", rate = 0.1 }} }}

[network]
bandwidth-mbit = 0.002

[protocol]
{patience}
"#
    );
    let scenario = Scenario::parse("slow.toml", &text).unwrap();
    let options = Options {
        threads: 1,
        references: false,
        ..Options::default()
    };
    run(&scenario, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn silos_whose_models_take_over_a_minute_are_in_every_round() {
    let summary = play("");
    for round in &summary.rounds {
        assert_eq!(round.authors.len(), 3, "round {}", round.round);
    }
    assert_eq!(summary.rounds.len(), 2);
    assert_eq!(summary.left_out, []);
    assert_eq!(summary.nullified, []);
}

/// With a patience that is too short the simulation says in which rounds who is missing.
#[test]
fn every_round_without_a_silo_that_trained_for_it_is_listed() {
    let summary = play("straggler-timeout = 12");
    let mut missing = 0;
    for round in &summary.rounds {
        for silo in &summary.silos {
            if round.authors.contains(&silo.name) {
                continue;
            }
            missing += 1;
            let mut listed = summary.left_out.iter();
            assert!(
                listed.any(|left| left.round == round.round && left.members.contains(&silo.name)),
                "round {} is without {}: {:?}",
                round.round,
                silo.name,
                summary.left_out
            );
        }
    }
    assert!(missing > 1, "{:?}", summary.left_out);
}
