//! `rota attack`: what a curious member finds out.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;

fn rota(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn linkage(arguments: &[&str]) -> Value {
    let all = [&["attack", "linkage", "--quiet", "--json"], arguments].concat();
    let document: Value = serde_json::from_str(&rota(&all)).unwrap();
    document["linkage"].clone()
}

#[test]
fn authors_of_models_without_names_are_recognised_by_them() {
    let found = linkage(&["diabetes", "--strategy", "local"]);
    let strongest = &found["clues"][0];
    assert_eq!(strongest["kind"], "model");
    // Eight silos that train alone: each continues from its local model.
    let share = strongest["share"].as_f64().unwrap();
    assert!(share > 0.8, "{found}");
    assert!(found["chance"].as_f64().unwrap() < 0.2, "{found}");
    // Rounds and models without names that had one before.
    assert!(found["entries"].as_u64().unwrap() > 8 * (found["rounds"].as_u64().unwrap() - 1));

    let text = rota(&["attack", "linkage", "diabetes", "--quiet"]);
    assert!(
        text.contains("authors recognised") && text.contains("guessing"),
        "{text}"
    );
}

#[test]
fn where_names_are_shown_there_is_nothing_to_recognise() {
    assert_eq!(linkage(&["diabetes", "--strategy", "tfl"]), Value::Null);
    let text = rota(&[
        "attack",
        "linkage",
        "diabetes",
        "--strategy",
        "tfl",
        "--quiet",
    ]);
    assert!(text.contains("nothing to recognise"), "{text}");
}

#[test]
fn a_simulation_prints_how_many_authors_can_be_recognised() {
    let text = rota(&[
        "simulate",
        "diabetes",
        "--quiet",
        "--no-references",
        "--rounds",
        "4",
    ]);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        line.contains(
            "note: members see models without names, but the lead of the round before can tell"
        ),
        "{text}"
    );
}

/// A small federation with noise.
const NOISED: &str = "name = 'small'
seed = 1
rounds = 3
silos = 4
[task.table]
data = { synthetic = { target = 'logistic', groups = 1, features = 12, scale = 1.0, rows = [40, 50] } }
standardise = 'none'
model = 'logistic'
[privacy]
mode = 'differential-privacy'
epsilon = 2.0
[strategy]
name = 'fedavg'
weight = 'equal'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.5 } }
";

/// The file of a scenario, in a folder of its own.
fn small(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

#[test]
fn attacks_on_rows_are_printed_as_text_and_json_and_drawn() {
    let (folder, file) = small(NOISED);
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let few = ["--shadows", "16", "--targets", "2", "--quiet"];
    let membership = ["attack", "membership", &file, "--page", page];
    let text = rota(&[&membership[..], &few].concat());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("bound for every attack, by differential privacy 0.639"),
        "{text}"
    );
    assert!(
        flat.contains("baseline: guessing 0.500") && flat.contains("Not tried: "),
        "{text}"
    );
    let drawn = std::fs::read_to_string(page).unwrap();
    assert!(
        drawn.contains("What was not tried")
            && drawn.contains("bound by differential privacy 0.639")
    );
    let json = rota(&[&membership[..], &few, &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["shadows"], 16, "{json}");
    assert!(
        json["tests"][0]["auc"]["low"].as_f64().unwrap() < 0.639,
        "{json}"
    );

    let canary = [
        "attack", "canary", &file, "--runs", "2", "--page", page, "--quiet",
    ];
    let text = rota(&canary);
    assert!(text.contains("cannot contradict the claim"), "{text}");
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains("audit with canaries")
    );
    let json = rota(&[&canary[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 2, "{json}");
    assert_eq!(json["canaries"], 13, "{json}");

    let text = rota(&["attack", "absence", &file, "--runs", "6", "--quiet"]);
    assert!(
        text.contains("a random direction") && text.contains("95 % interval"),
        "{text}"
    );
}

#[test]
fn an_audit_of_a_scenario_without_noise_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["attack", "canary", "diabetes"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("this scenario has no noise"), "{said}");
}
