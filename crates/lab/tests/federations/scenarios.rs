//! The built-in scenarios on their real data. Those with data in files need the folder `ROTA_DATA`,
//! and say that they are skipped where it is not set.

#![allow(clippy::unwrap_used)]

use crate::skipped;

use std::path::PathBuf;

use lab::{Summary, run};
use simulations::{Options, Overrides, Scenario, Signatures};

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("ROTA_DATA").map(PathBuf::from);
    if folder.is_none() {
        skipped::skipped("needs the data sets, and ROTA_DATA is not set");
    }
    folder
}

fn play(name: &str, cache: bool, references: bool, data: Option<PathBuf>) -> Summary {
    let scenario = Scenario::load(name).unwrap();
    let options = Options {
        data,
        cache,
        // The trace is the same, then, whoever checks.
        signatures: Signatures::Ed25519,
        references,
        ..Options::default()
    };
    run(&scenario, options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_default_scenario_improves_on_training_alone_with_two_coalitions() {
    let summary = play("diabetes", false, true, None);
    assert_eq!((summary.silos.len(), summary.rounds.len()), (8, 7));
    assert_eq!(summary.rounds[0].kind, "summarise");
    assert_eq!(summary.rounds[6].coalitions.len(), 2);
    let leads: Vec<_> = summary
        .rounds
        .iter()
        .map(|round| &round.led.as_ref().unwrap().lead)
        .collect();
    assert!(
        leads.windows(2).all(|pair| pair[0] != pair[1]),
        "the lead rotates: {leads:?}"
    );
    let rows: usize = summary.silos.iter().map(|silo| silo.test_samples).sum();
    let mean = |value: fn(&lab::summary::SiloInfo) -> Option<f64>| {
        let sum = |silo| value(silo).unwrap() * silo.test_samples as f64;
        summary.silos.iter().map(sum).sum::<f64>() / rows as f64
    };
    let (local, coalition) = (mean(|silo| silo.local), mean(|silo| silo.coalition));
    assert!(
        coalition < local && mean(|silo| silo.global) < local,
        "{coalition} {local}"
    );
    assert!(
        (35.0..55.0).contains(&coalition),
        "the spread of the target is 77: {coalition}"
    );
    assert!(summary.refused.is_empty() && summary.nullified.is_empty());
    let sent = summary.bytes_messages.zip(summary.bytes_blobs);
    assert_eq!(
        summary.bytes,
        sent.map(|(messages, blobs)| messages + blobs)
    );
}

#[test]
fn a_shared_cache_of_checks_changes_only_how_many_are_computed() {
    let (all, cache) = (
        play("diabetes", false, false, None),
        play("diabetes", true, false, None),
    );
    assert_eq!(
        (&all.trace, &all.rounds, all.bytes),
        (&cache.trace, &cache.rounds, cache.bytes)
    );
    let (all, cache) = (all.checks.unwrap(), cache.checks.unwrap());
    assert!(cache.signatures < all.signatures);
    assert!(cache.bytes_hashed < all.bytes_hashed);
}

#[test]
fn four_real_hospitals_form_two_coalitions() {
    let Some(data) = folder() else { return };
    let summary = play("heart", false, true, Some(data));
    let samples: Vec<_> = summary.silos.iter().map(|silo| silo.samples).collect();
    assert_eq!(
        samples,
        [199, 172, 30, 85],
        "66 % of 303, 261, 46 and 130 patients"
    );
    assert_eq!(summary.rounds[0].coalitions.len(), 2);
    assert!(
        summary
            .silos
            .iter()
            .all(|silo| silo.coalition.unwrap() > 0.6)
    );
}

#[test]
fn digits_reach_the_weights_and_accuracies_of_other_systems() {
    let Some(data) = folder() else { return };
    for (name, expected, accuracy) in [
        ("digits20", 610.335, 0.7827),
        ("digits100", 574.564, 0.1448),
    ] {
        let summary = play(name, true, false, Some(data.clone()));
        let sum = summary.weights_abs_sum.unwrap();
        assert!((sum - expected).abs() < 0.01, "{name}: {sum}");
        let reached = summary.silos[0].coalition.unwrap();
        assert!((reached - accuracy).abs() < 0.006, "{name}: {reached}");
    }
}

#[test]
fn null_training_adds_constants_to_the_model() {
    let overrides = Overrides {
        rounds: Some(2),
        silos: Some(5),
        ..Overrides::default()
    };
    let scenario = Scenario::load("null").unwrap().with(&overrides).unwrap();
    let summary = run(
        &scenario,
        Options {
            cache: true,
            ..Options::default()
        },
    )
    .unwrap();
    assert_eq!((summary.silos.len(), summary.rounds.len()), (5, 2));
    let sum = summary.weights_abs_sum.unwrap();
    assert!(sum > 0.0 && sum < 2.0 * 0.01 * 1e6, "{sum}");
}

#[test]
fn long_federations_are_measured_every_few_rounds_and_say_so() {
    let text = "name = 'long'\nrounds = 1003\nsilos = 2\n\
                [strategy]\nname = 'fedavg'\ntraining = { epochs = 1, batch = 0, \
                optimiser = { name = 'sgd', rate = 0.05 } }\n\
                [task.table]\ndata = 'diabetes'\nmodel = { linear = {} }\nstandardise = 'silo'\n";
    let scenario = Scenario::parse("long.toml", text).unwrap();
    let options = Options {
        references: false,
        ..Options::default()
    };
    let summary = run(&scenario, options).unwrap();
    assert_eq!(summary.curves.len(), 2 * 1003);
    let measured = |round: u64| round.is_multiple_of(2) || round == 1003;
    for point in &summary.curves {
        assert!(point.loss.is_some());
        assert_eq!(point.metric.is_some(), measured(point.round), "{point:?}");
    }
    let said = "curves show the held-out metric once every 2 rounds and for the last one, because all silos and \
                rounds together have 2,006 models";
    assert!(
        summary.notes.contains(&said.to_owned()),
        "{:?}",
        summary.notes
    );
}
