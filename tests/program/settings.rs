//! `rota federation questions` and `settings`: a schema that is drafted from one table, and settled by sums over all.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::nodes::{good, output, text};

/// A scenario as somebody at one hospital writes it: without ranges, without missing values, with a level that nobody
/// has.
const SCENARIO: &str = include_str!("../../examples/questions/visits.toml");

/// A folder with the scenario and the tables of the repository's example.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/questions");
    for name in ["north", "east", "south", "west"] {
        let table = format!("{name}.csv");
        fs::copy(tables.join(&table), folder.path().join(table)).unwrap();
    }
    fs::write(folder.path().join("visits.toml"), SCENARIO).unwrap();
    folder
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Writes the questions of the scenario, asks them with the tables of all hospitals, and returns the files of their
/// answers.
fn answered(folder: &TempDir) -> Vec<String> {
    let (scenario, questions) = (path(folder, "visits.toml"), path(folder, "asked"));
    let said = good(&[
        "federation",
        "questions",
        &scenario,
        "--rows",
        "410",
        "--out",
        &questions,
    ]);
    assert_eq!(said.matches("written: ").count(), 3, "{said}");
    let ask = |name: &str| {
        let question = path(folder, &format!("asked/{name}.toml"));
        let file = path(folder, &format!("{name}.json"));
        fs::write(&file, good(&["ask", &question, "--json"])).unwrap();
        file
    };
    ["quantiles", "target", "levels"].map(ask).to_vec()
}

fn settings<'a>(scenario: &'a str, answers: &'a [String], options: &[&'a str]) -> Vec<&'a str> {
    let answers = answers.iter().map(String::as_str);
    let mut all = vec!["federation", "settings", scenario];
    all.extend(answers);
    all.extend(options);
    all
}

/// The schema in a text.
fn schema(text: &str) -> toml::Value {
    let file: toml::Table = text.parse().unwrap();
    file["task"]["table"]["schema"].clone()
}

#[test]
fn a_schema_is_settled_by_answers_and_can_be_signed() {
    let folder = folder();
    let answers = answered(&folder);
    let (scenario, new) = (path(&folder, "visits.toml"), path(&folder, "new.toml"));
    let said = good(&settings(&scenario, &answers, &["--out", &new]));
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("values at 4 sites"), "{said}");
    assert!(
        words.contains("\"indicator\" in place of \"refuse\", because 24 of 410 rows (5.854 %)"),
        "{said}"
    );
    assert!(
        words.contains("left out: \"IV\", which no row has"),
        "{said}"
    );
    assert!(words.contains("a constant, the mean"), "{said}");
    assert!(words.contains("nothing is in force by that"), "{said}");
    let written = fs::read_to_string(&new).unwrap();
    assert!(written.contains("# As simple as possible."), "{written}");
    let schema = schema(&written);
    let features = schema["feature"].as_array().unwrap();
    let feature = |name: &str| {
        let is = |feature: &&toml::Value| feature["name"].as_str() == Some(name);
        features.iter().find(is).unwrap()
    };
    // Nine of ten patients are between 48 and 76; the youngest of all is 32, and the oldest 89.
    let range = |of: &toml::Value| {
        let bounds = of["range"].as_array().unwrap();
        [0, 1].map(|at: usize| bounds[at].as_float().unwrap())
    };
    let [low, high] = range(feature("age"));
    assert!(
        (10.0..=40.0).contains(&low) && (85.0..=130.0).contains(&high),
        "{low} {high}"
    );
    assert_eq!(range(&schema["target"])[0], 0.0);
    assert_eq!(
        feature("stage")["levels"].as_array().unwrap().len(),
        3,
        "{schema:?}"
    );
    // It is a scenario that runs, and of which an agreement is made.
    good(&["simulate", &new]);
    let agreement = path(&folder, "federation.toml");
    good(&[
        "federation",
        "new",
        "--clear",
        "--scenario",
        &new,
        "--out",
        &agreement,
    ]);
    let agreed = fs::read_to_string(&agreement).unwrap();
    let of_agreement: toml::Table = agreed.parse().unwrap();
    assert_eq!(
        of_agreement["task"]["table"]["schema"]["usual"],
        schema["usual"]
    );
    // The same answers settle the agreement's schema, which becomes a scenario again.
    let again = path(&folder, "again.toml");
    let said = good(&settings(&agreement, &answers, &["--out", &again]));
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("running federation stays as it is"),
        "{said}"
    );
    let again: toml::Table = fs::read_to_string(&again).unwrap().parse().unwrap();
    assert!(!again.contains_key("start") && !again.contains_key("member"));
}

#[test]
fn without_a_file_the_schema_is_printed_to_paste() {
    let folder = folder();
    let answers = answered(&folder);
    let scenario = path(&folder, "visits.toml");
    let wide = good(&settings(&scenario, &answers, &[]));
    let narrow = good(&settings(&scenario, &answers, &["--margin", "0"]));
    let most = |printed: &str| {
        let schema = schema(printed);
        schema["target"]["range"][1].as_float().unwrap()
    };
    assert!(most(&wide) > most(&narrow), "{wide}{narrow}");
    assert!(wide.contains("# \"age\": range: "), "{wide}");
    assert_eq!(fs::read_to_string(&scenario).unwrap(), SCENARIO);
}

#[test]
fn what_settles_nothing_is_refused() {
    let folder = folder();
    let scenario = path(&folder, "visits.toml");
    let answers = answered(&folder);
    let wrong = |arguments: &[&str]| {
        let output = output(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        text(&output.stderr)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let empty = path(&folder, "empty.json");
    fs::write(&empty, "[]").unwrap();
    let why = wrong(&["federation", "settings", &scenario, &empty]);
    assert!(why.contains("`rota federation questions` writes"), "{why}");
    fs::write(&empty, "{}").unwrap();
    let why = wrong(&["federation", "settings", &scenario, &empty]);
    assert!(why.contains("has no answers"), "{why}");
    let why = wrong(&settings(&scenario, &answers, &["--margin=-1"]));
    assert!(why.contains("--margin"), "{why}");
    let why = wrong(&settings(&scenario, &answers, &["--out", &scenario]));
    assert!(why.contains("exists"), "{why}");
    let asked = path(&folder, "asked");
    let why = wrong(&["federation", "questions", &scenario, "--out", &asked]);
    assert!(why.contains("exists"), "{why}");
    let question = path(&folder, "asked/levels.toml");
    let why = wrong(&["federation", "questions", &question]);
    assert!(why.contains("[task.table.schema]"), "{why}");
}
