//! Silos that stay outside of a federation: by the group that they belong to, or because they have no
//! rows to train on.

#![allow(clippy::unwrap_used)]

use crate::skipped;

use std::path::PathBuf;

use lab::{Summary, run};
use simulations::{Options, Scenario};

fn play(head: &str, strategy: &str, rate: f64, data: Option<PathBuf>) -> Result<Summary, String> {
    let text = format!(
        "name = \"outside\"
        seed = 3
        rounds = 2
        {head}
        [strategy]
        {strategy}
        [strategy.training]
        epochs = 5
        batch = 16
        optimiser = {{ name = \"sgd\", rate = {rate} }}"
    );
    let scenario = Scenario::parse("outside.toml", &text).unwrap();
    let options = Options {
        data,
        cache: true,
        ..Options::default()
    };
    run(&scenario, options).map_err(|error| error.to_string())
}

#[test]
fn a_group_of_silos_stays_outside_and_gets_models() {
    let head = |outside: &str| {
        format!(
            "silos = 8\nunseen = [{outside}]
            [task.table]
            data.synthetic = {{ groups = 4, features = 3 }}
            model = {{ linear = {{ loss = \"squared\" }} }}"
        )
    };
    let summary = play(
        &head("\"group 2\", \"silo 1\""),
        "name = \"fedavg\"",
        0.01,
        None,
    )
    .unwrap();
    let outside = summary.silos.iter().filter(|silo| silo.outside);
    let outside: Vec<&str> = outside.map(|silo| silo.name.as_str()).collect();
    assert_eq!(outside, ["silo 1", "silo 2", "silo 6"]);
    assert!(
        summary
            .silos
            .iter()
            .all(|silo| silo.coalition.is_some() && silo.local.is_some())
    );
    let error = play(&head("\"group 9\""), "name = \"fedavg\"", 0.01, None).unwrap_err();
    assert!(
        error.contains("or of the groups group 1, group 2, group 3, group 4"),
        "{error}"
    );
}

#[test]
fn states_that_only_test_are_given_a_model_and_states_that_only_train_are_not_measured() {
    let Some(data) = std::env::var_os("ROTA_DATA").map(PathBuf::from) else {
        skipped::skipped("needs the temperatures, and ROTA_DATA is not set");
        return;
    };
    let head = "[task.table]
        data.tpt48 = { from = \"east\", to = \"west\" }
        model = { mlp = { hidden = [] } }
        metric = \"mse\"";
    for strategy in [
        "name = \"fedavg\"",
        "name = \"cs-rcfl\"\ncoalitions = 2",
        "name = \"tfl\"",
    ] {
        let summary = play(head, strategy, 0.05, Some(data.clone())).unwrap();
        assert!(
            summary.unusable.is_empty(),
            "{strategy}: {:?}",
            summary.unusable
        );
        let (outside, members): (Vec<_>, Vec<_>) =
            summary.silos.iter().partition(|silo| silo.outside);
        assert_eq!((outside.len(), members.len()), (24, 24));
        for silo in &outside {
            assert_eq!((silo.samples, silo.test_samples), (0, 12));
            assert!(silo.local.is_none() && silo.served.is_none());
        }
        let error = outside
            .iter()
            .map(|silo| silo.coalition.unwrap())
            .sum::<f64>()
            / 24.0;
        assert!(error < 0.9, "{strategy}: {error}");
        assert!(
            members
                .iter()
                .all(|silo| silo.samples == 133 && silo.coalition.is_none())
        );
    }
}

#[test]
fn newcomers_of_earlier_rounds_are_given_the_model_of_that_round() {
    let head = |rounds: &str| {
        format!(
            "silos = 4\nunseen = [\"silo 1\"]\nnewcomers = {rounds}
            [task.table]
            data.synthetic = {{ groups = 1, features = 3 }}
            model = {{ linear = {{ loss = \"squared\" }} }}"
        )
    };
    for strategy in ["name = \"fedavg\"", "name = \"hcct\"", "name = \"ditto\""] {
        let summary = play(&head("[2, 1]"), strategy, 0.001, None).unwrap();
        let rounds: Vec<u64> = summary.newcomers.iter().map(|one| one.round).collect();
        assert_eq!(rounds, [1, 2]);
        let [first, last] = [0, 1].map(|at| summary.newcomers[at].metric.unwrap());
        assert!(last < first, "{strategy}: {first} {last}");
        // A newcomer of the last round is given what the silo outside is given in the end.
        assert_eq!(Some(last), summary.silos[3].coalition, "{strategy}");
        assert_eq!(summary.silos[3].name, summary.newcomers[0].silo);
    }
    let text = "name = \"a\"\nrounds = 2\nnewcomers = [3]\n[task.constant]\nparameters = 1\n\
        [strategy]\nname = \"fedavg\"\n\
        training = { epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 0.1 } }";
    let error = Scenario::parse("a.toml", text).unwrap_err().to_string();
    assert!(
        error.contains("must be between 1, the first that trains, and 2"),
        "{error}"
    );
}

#[test]
fn a_rate_that_falls_to_nothing_stops_every_model_where_it_is() {
    let play = |decay: &str, rounds: u64| {
        let text = format!(
            "name = \"decay\"
            rounds = {rounds}
            silos = 4
            [task.table]
            data.synthetic = {{ groups = 2, features = 3 }}
            model = {{ linear = {{ loss = \"squared\" }} }}
            standardise = \"federation\"
            [strategy]
            name = \"fedavg\"
            [strategy.training]
            epochs = 2
            batch = 16
            optimiser = {{ name = \"sgd\", rate = 0.01 }}
            {decay}"
        );
        let scenario = Scenario::parse("decay.toml", &text).unwrap();
        run(&scenario, Options::default()).unwrap()
    };
    // Training alone is tuned, and tries as many rounds as the federation has.
    let scores = |summary: &Summary| -> Vec<[Option<f64>; 3]> {
        let silos = summary.silos.iter();
        silos
            .map(|silo| [silo.global, silo.coalition, silo.pooled])
            .collect()
    };
    // After the round that agrees on a scale, only the first training counts.
    let one = play("", 2);
    let many = play("decay.step = { every = 1, factor = 1e-30 }", 6);
    assert_eq!(scores(&many), scores(&one));
    assert_ne!(scores(&play("", 6)), scores(&one));
    let cosine = play("decay.cosine = {}", 6);
    assert_ne!(scores(&cosine), scores(&play("", 6)));
}
