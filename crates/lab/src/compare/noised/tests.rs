//! Federations with noise beside each silo alone.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::super::choices::Choices;
use super::super::comparison::{Comparison, ComparisonRow};
use super::super::experiment::Experiment;
use super::super::run::{CompareOptions, compare};

/// Four silos of one model; two features of deviation 1.
pub(super) fn scenario(more: &str) -> String {
    format!(
        "name = \"alike\"
        seed = 7
        rounds = 8
        silos = 4
        [task.table]
        data = {{ synthetic = {{ target = \"logistic\", groups = 1, features = 2, scale = 1.0, rows = [60, 60] }} }}
        model = \"logistic\"
        standardise = \"none\"
        split = {{ validation = 0.0 }}
        [strategy]
        name = \"fedavg\"
        weight = \"equal\"
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 1.0 }} }}
        {more}"
    )
}

fn parsed(text: &str, epsilons: &[f64]) -> Result<Experiment, String> {
    let choices = Choices {
        epsilons: epsilons.to_vec(),
        seeds: Some(2),
        ..Choices::default()
    };
    let parsed = Experiment::parse("alike.toml", text, Path::new(""), &choices);
    parsed.map_err(|error| error.to_string())
}

fn compared(text: &str, epsilons: &[f64]) -> Comparison {
    let experiment = parsed(text, epsilons).unwrap();
    compare(&experiment, CompareOptions::default()).unwrap()
}

fn row<'a>(comparison: &'a Comparison, label: &str) -> &'a ComparisonRow {
    let rows = &comparison.variants[0].strategies;
    rows.iter().find(|row| row.label == label).unwrap()
}

fn loss(row: &ComparisonRow) -> f64 {
    let scope = row.metrics[0].inside.as_ref().unwrap();
    scope.silos.unwrap().mean
}

#[test]
fn local_no_noise_and_every_epsilon_stand_side_by_side() {
    let comparison = compared(&scenario(""), &[0.05, 100.0]);
    let rows = &comparison.variants[0].strategies;
    assert!(rows.iter().all(|row| row.failed.is_empty()), "{rows:?}");
    let labels: Vec<&str> = rows.iter().map(|row| &row.label[..]).collect();
    let expected = [
        "own-fit",
        "without noise",
        "steps, epsilon 0.05",
        "steps, epsilon 0.05, own intercept",
        "steps, epsilon 0.05, shrunken",
        "once, epsilon 0.05",
        "once, epsilon 0.05, own intercept",
        "once, epsilon 0.05, shrunken",
        "steps, epsilon 100",
        "steps, epsilon 100, own intercept",
        "steps, epsilon 100, shrunken",
        "once, epsilon 100",
        "once, epsilon 100, own intercept",
        "once, epsilon 100, shrunken",
    ];
    assert_eq!(labels, expected);
    for (release, rounds) in [("steps", 20.0), ("once", 1.0)] {
        beside_the_others(&comparison, release, rounds);
    }
    assert_eq!(row(&comparison, "own-fit").noise, None);
    assert_eq!(row(&comparison, "without noise").noise, None);
    assert!(comparison.meshes.contains("direct") && comparison.meshes.len() == 1);
}

/// Checks the rows of a release with so many rounds, at both ε.
fn beside_the_others(comparison: &Comparison, release: &str, rounds: f64) {
    let [strong, weak] =
        ["0.05", "100"].map(|epsilon| row(comparison, &format!("{release}, epsilon {epsilon}")));
    let losses = [loss(strong), loss(weak)];
    assert!(losses[0] > losses[1], "{release}: {losses:?}");
    // Where silos are alike, an intercept of its own does not help a silo, and hardly harms it.
    let own = loss(row(
        comparison,
        &format!("{release}, epsilon 100, own intercept"),
    ));
    let apart = own - losses[1];
    assert!(apart != 0.0 && apart < 0.05, "{release}: {own}, {losses:?}");
    for noised in [strong, weak] {
        let against: Vec<&str> = noised.against.iter().map(|one| &one.over[..]).collect();
        assert_eq!(against, ["own-fit", "without noise"]);
        let bound = noised.noise.as_ref().unwrap();
        assert!(bound.epsilon_alone.unwrap() > bound.epsilon.unwrap());
        // The last of all rounds, without a choice.
        assert_eq!(noised.to_best.unwrap().rounds.mean, rounds);
        assert_eq!((noised.tuning, noised.tried.len()), (0.0, 0));
        assert!(noised.to_end.unwrap().bytes.mean > 0.0);
    }
    assert!(strong.noise.as_ref().unwrap().epsilon.unwrap() <= 0.0501);
}

#[test]
fn a_scenario_with_noise_keeps_its_settings_at_every_epsilon() {
    let noise = "[privacy]\nmode = \"differential-privacy\"\nnoise-multiplier = 30.0\nclipping-norm = 2.0\n";
    let comparison = compared(&scenario(noise), &[1.0]);
    let noised = row(&comparison, "steps, epsilon 1");
    // Its own eight rounds.
    assert_eq!(noised.to_best.unwrap().rounds.mean, 8.0);
    let epsilon = noised.noise.as_ref().unwrap().epsilon.unwrap();
    assert!((0.999..=1.0).contains(&epsilon), "{epsilon}");
    assert_eq!(row(&comparison, "without noise").noise, None);
}

#[test]
fn a_model_without_settings_or_with_a_local_scale_is_refused() {
    let mlp = scenario("").replace("\"logistic\"\n", "{ mlp = { hidden = [3] } }\n");
    let why = parsed(&mlp, &[1.0]).unwrap_err();
    assert!(
        why.contains("For another model write a table [privacy]"),
        "{why}"
    );
    let own_scale = scenario("").replace("\"none\"", "\"silo\"");
    let why = parsed(&own_scale, &[1.0]).unwrap_err();
    assert!(
        why.contains("steps, epsilon 1") && why.contains("agreed ranges"),
        "{why}"
    );
    let why = parsed(&scenario(""), &[0.0]).unwrap_err();
    assert!(why.contains("epsilon of 0"), "{why}");
}
