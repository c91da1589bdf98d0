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
fn authors_of_models_without_names_are_recognised_by_their_models() {
    let found = linkage(&["diabetes", "--strategy", "local"]);
    let strongest = &found["clues"][0];
    assert_eq!(strongest["kind"], "model");
    // Eight silos that train alone: each continues from its own model.
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
fn a_simulation_says_in_a_line_how_many_authors_can_be_recognised() {
    let text = rota(&[
        "simulate",
        "diabetes",
        "--quiet",
        "--no-references",
        "--rounds",
        "4",
    ]);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.contains("note: models carry no names, but"), "{text}");
}
