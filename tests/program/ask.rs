//! `rota ask` as a program: known answers, what it says first, refusals, and its record.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::nodes::{good, output, text};

/// A question of the repository's examples.
fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/questions");
    path.join(name).display().to_string()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(&[&["ask"], arguments, &["--json"]].concat())).unwrap()
}

/// The error of a question that is not answered, and its exit code.
fn unanswered(arguments: &[&str]) -> (i32, String) {
    let output = output(&[&["ask"], arguments].concat());
    (output.status.code().unwrap(), text(&output.stderr))
}

/// The number in a row and column of a sheet.
fn number(answer: &Value, sheet: &str, row: usize, column: &str) -> f64 {
    let sheets = answer["answer"].as_array().unwrap();
    let sheet = sheets.iter().find(|one| one["name"] == sheet).unwrap();
    let columns = sheet["columns"].as_array().unwrap();
    let at = columns.iter().position(|name| name == column).unwrap();
    sheet["rows"][row][at].as_f64().unwrap()
}

#[test]
fn a_question_is_answered_as_from_the_pooled_rows() {
    let answer = json(&[&example("patients.toml")]);
    let mut visits = Vec::new();
    for hospital in ["north", "east", "south", "west"] {
        let table = fs::read_to_string(example(&format!("{hospital}.csv"))).unwrap();
        let rows = table
            .lines()
            .skip(1)
            .map(|line| line.split(',').collect::<Vec<_>>());
        let new = rows.filter(|row| row[2] == "new");
        visits.extend(new.map(|row| row[6].parse::<f64>().unwrap()));
    }
    let mean = visits.iter().sum::<f64>() / visits.len() as f64;
    assert!((number(&answer, "columns", 5, "mean") - mean).abs() < 1e-7);
    assert_eq!(number(&answer, "columns", 5, "n"), visits.len() as f64);
    assert_eq!(answer["simulated"], true);
    assert_eq!(answer["sites"].as_array().unwrap().len(), 4);
}

#[test]
fn what_is_opened_is_stated_without_reading_rows() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("q.toml");
    // Its tables are not there.
    fs::copy(example("hazards.toml"), &file).unwrap();
    let said = good(&["ask", file.to_str().unwrap(), "--explain"]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("one process plays all sites"), "{said}");
    assert!(
        said.contains("15 numbers") && said.contains("sum over sites"),
        "{said}"
    );
    let (code, error) = unanswered(&[file.to_str().unwrap()]);
    assert!(code != 0 && error.contains("north.csv"), "{error}");
}

#[test]
fn a_filter_that_singles_out_a_patient_is_refused() {
    let (code, error) = unanswered(&[&example("one-patient.toml")]);
    assert_eq!(code, 1);
    assert!(
        error.contains("rule pieces") && !error.contains("84"),
        "{error}"
    );
}

#[test]
fn a_record_remembers_answers_and_refuses_differences() {
    let folder = TempDir::new().unwrap();
    let record = folder.path().join("record.json");
    let record = record.to_str().unwrap();
    let question = |filter: &str| {
        let text = fs::read_to_string(example("one-patient.toml")).unwrap();
        let text = text.replace("filter = [\"age <= 84\"]", filter);
        let text = text.replace("path = \"", &format!("path = \"{}", example("")));
        let file = folder.path().join("q.toml");
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    // One that is refused before anything is opened is not remembered.
    let wrong = question("filter = [\"ward = a\"]");
    let (code, error) = unanswered(&[&wrong, "--record", record]);
    assert!(code != 0 && error.contains("ward"), "{error}");
    let first = json(&[&question(""), "--record", record]);
    assert_eq!(first["stored"], false);
    let again = json(&[&question(""), "--record", record]);
    assert_eq!(
        (&again["stored"], &again["answer"]),
        (&Value::Bool(true), &first["answer"])
    );
    assert_eq!(again["numbers_opened"], 0);
    // Few patients of some hospital die or leave in the first month.
    let later = question("filter = [\"months >= 1\"]");
    let (code, error) = unanswered(&[&later, "--record", record]);
    assert!(code == 1 && error.contains("rule pieces"), "{error}");
    fs::write(record, "{").unwrap();
    let (code, error) = unanswered(&[&question(""), "--record", record]);
    assert!(code == 2 && error.contains("--record"), "{error}");
}

#[test]
fn tables_are_printed_as_csv_and_as_a_page() {
    let csv = good(&["ask", &example("stages.toml"), "--csv"]);
    let head = csv.lines().next().unwrap();
    assert_eq!(head, "sites,rows,complete,missing,outside");
    // Suppressed cells are empty.
    assert!(csv.contains("II,,63,,0,137"), "{csv}");
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("page.html");
    good(&[
        "ask",
        &example("survival.toml"),
        "--html",
        page.to_str().unwrap(),
    ]);
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("at risk") && text.contains("<path"));
    let (code, error) = unanswered(&[&example("survival.toml"), "--html", page.to_str().unwrap()]);
    assert_eq!(code, 2, "{error}");
    let forest = folder.path().join("forest.html");
    good(&[
        "ask",
        &example("hazards.toml"),
        "--html",
        forest.to_str().unwrap(),
    ]);
    assert!(
        fs::read_to_string(forest)
            .unwrap()
            .contains("treatment = new")
    );
}

#[test]
fn trees_are_printed_and_written_for_other_programs() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (model, onnx) = (file("risk.json"), file("risk.onnx"));
    let answer = json(&[&example("risk.toml"), "--export", &model]);
    assert_eq!(answer["question"], "trees");
    let trees = answer["trees"]["trees"].as_array().unwrap().len();
    assert_eq!(number(&answer, "fit", 0, "trees"), trees as f64);
    let held_out = |row: usize| number(&answer, "learning_curve", row, "held_out_log_loss");
    assert!(held_out(1) < held_out(0), "{answer}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&model).unwrap()).unwrap();
    let booster = &written["learner"]["gradient_booster"]["model"];
    assert_eq!(booster["trees"].as_array().unwrap().len(), trees);
    let page = file("page.html");
    good(&[
        "ask",
        &example("risk.toml"),
        "--export",
        &onnx,
        "--html",
        &page,
    ]);
    assert!(fs::read(&onnx).unwrap().len() > 1000);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Log loss by the number of trees") && page.contains("Importance"));
    for (question, export, says) in [
        ("risk.toml", &onnx, "exists"),
        ("risk.toml", &file("risk.txt"), ".onnx or .json"),
        ("hazards.toml", &file("hazards.onnx"), "kind \"trees\""),
    ] {
        let (code, error) = unanswered(&[&example(question), "--export", export]);
        assert!(code == 2 && error.contains(says), "{error}");
    }
}

#[test]
fn few_rows_grow_few_trees_where_the_rule_is_not_weakened() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("q.toml");
    let text = fs::read_to_string(example("risk.toml")).unwrap();
    let text = text.replace("path = \"", &format!("path = \"{}", example("")));
    fs::write(&file, text.replace("unknowns-per-number = 0.2", "")).unwrap();
    let (code, error) = unanswered(&[file.to_str().unwrap()]);
    assert!(code == 1 && error.contains("rule numbers"), "{error}");
}

#[test]
fn the_silos_of_a_scenario_are_sites_too() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("q.toml");
    let question = "kind = \"describe\"\ncolumns = [\"target = malignant\"]\n[sites]\nscenario = \"breast-cancer\"\nsilos = 4\n";
    fs::write(&file, question).unwrap();
    let answer = json(&[file.to_str().unwrap()]);
    assert_eq!(number(&answer, "rows", 0, "rows"), 569.0);
}

#[test]
fn a_cell_that_is_no_number_is_named_with_its_line() {
    let folder = TempDir::new().unwrap();
    for (name, cell) in [("a.csv", "5"), ("b.csv", "6 days")] {
        let rows: String = (0..20).map(|row| format!("{row},3\n")).collect();
        fs::write(
            folder.path().join(name),
            format!("id,days\n{rows}20,{cell}\n"),
        )
        .unwrap();
    }
    let file = folder.path().join("q.toml");
    let question = "kind = \"describe\"\ncolumns = [\"days\"]\n[ranges]\ndays = [0, 50]\n[sites]\nfiles = [{ path = \"a.csv\" }, { path = \"b.csv\" }]\n";
    fs::write(&file, question).unwrap();
    let (code, error) = unanswered(&[file.to_str().unwrap()]);
    assert!(
        code != 0 && error.contains("b.csv, line 22") && error.contains("6 days"),
        "{error}"
    );
}
