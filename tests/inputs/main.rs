//! Wrong inputs, and what Rota answers: the table in `cases.toml`, case by case.
//!
//! A case starts from a federation that runs, and changes one thing. `ROTA_GOLDEN=write` prints the
//! answers as they are now, to be read and copied.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What is wrong.
    input: String,
    /// The command; by default it simulates the scenario.
    #[serde(default)]
    command: Vec<String>,
    /// File, text in it, and the text that takes its place.
    #[serde(default)]
    change: Vec<[String; 3]>,
    /// Files that are written whole, with a byte for each character up to U+00FF.
    #[serde(default)]
    write: BTreeMap<String, String>,
    /// What goes to standard error.
    answer: String,
    /// The exit code.
    #[serde(default = "wrong_configuration")]
    code: i32,
}

fn wrong_configuration() -> i32 {
    2
}

const SCENARIO: &str = include_str!("scenario.toml");

/// Patients of a hospital.
fn rows(shift: usize) -> String {
    let mut text = String::from("age,pulse,ward,outcome\n");
    for row in 0..24 {
        let ward = ["general", "intensive"][row % 2];
        let outcome = ["home", "died"][usize::from((row + shift).is_multiple_of(3))];
        let (age, pulse) = (40 + row + shift, 60 + 2 * row);
        writeln!(text, "{age},{pulse},{ward},{outcome}").unwrap();
    }
    text
}

/// Exit code and standard error of a case.
fn answer(folder: &Path, case: &Case) -> (i32, String) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("scenario.toml"), SCENARIO).unwrap();
    fs::write(folder.join("north.csv"), rows(0)).unwrap();
    fs::write(folder.join("south.csv"), rows(1)).unwrap();
    for (file, text) in &case.write {
        let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
        fs::write(folder.join(file), bytes).unwrap();
    }
    for [file, from, to] in &case.change {
        let file = folder.join(file);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{}: no {from:?}", case.input);
        fs::write(&file, text.replace(from, to)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.current_dir(folder).env_remove("ROTA_DATA");
    match case.command.as_slice() {
        [] => command.args(["simulate", "scenario.toml", "--no-references", "--quiet"]),
        words => command.args(words),
    };
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said.trim().to_owned())
}

#[test]
fn every_wrong_input_is_answered_with_what_where_and_what_to_do() {
    let cases: Cases = toml::from_str(include_str!("cases.toml")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inputs");
    let write = std::env::var_os("ROTA_GOLDEN").is_some();
    let mut wrong = String::new();
    for case in &cases.case {
        let (code, said) = answer(&folder, case);
        if write {
            println!("# {}\nanswer = {said:?}\ncode = {code}\n", case.input);
        } else if (code, said.as_str()) != (case.code, case.answer.trim()) {
            let (expected, answer) = (case.code, &case.answer);
            writeln!(
                wrong,
                "{}\n  expected {expected}: {answer}\n  found    {code}: {said}",
                case.input
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases.case.len() >= 40, "{} cases", cases.case.len());
}

#[test]
fn the_federation_that_the_cases_change_runs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inputs-good");
    let case = Case {
        input: String::new(),
        command: Vec::new(),
        change: Vec::new(),
        write: BTreeMap::new(),
        answer: String::new(),
        code: 0,
    };
    assert_eq!(answer(&folder, &case), (0, String::new()));
}
