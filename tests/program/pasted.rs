//! Whoever types literally what `rota init` prints gets past what it asked.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Patients of three wards: the cell of a column, by its row.
fn table(header: &str, cell: impl Fn(usize) -> String) -> String {
    let mut text = format!("{header},died\n");
    for row in 0..60 {
        writeln!(text, "{},{}", cell(row), ["no", "yes"][row % 7 % 2]).unwrap();
    }
    text
}

/// The answers in a question, as they stand there between semicolons and full stops.
fn answers(question: &str) -> Vec<String> {
    let clauses = question.trim().split("; ");
    let clauses = clauses.flat_map(|part| part.split(". "));
    // The typed text is quoted, and followed by what is wrong with it.
    let clauses = clauses.filter(|clause| !clause.starts_with("error: --"));
    let answers = clauses.filter_map(|clause| Some(clause[clause.find(" --")?..].to_owned()));
    answers.collect()
}

#[test]
#[cfg(unix)]
fn every_answer_that_init_prints_is_taken_as_it_is_printed() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pasted-init");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    // A shell takes it as a person types it.
    let run = |words: &str| {
        let program = env!("CARGO_BIN_EXE_rota");
        let line = format!("'{program}' init a.csv --split-into 3 --force {words}");
        let mut command = Command::new("sh");
        let output = command.current_dir(&folder).args(["-c", &line]).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), said)
    };
    let mut tried = 0;
    for (text, first) in [
        (
            table("x,pulse", |row| {
                format!("{},{}", row % 9, cell(row == 3, "inf", row))
            }),
            "",
        ),
        (
            table("x,pulse", |row| {
                format!("{},{}", row % 9, cell(row % 20 == 3, "n d", row))
            }),
            "",
        ),
        (
            table("x,the ward", |row| {
                format!("{},{}", row % 9, ["A", "a", "b"][row % 3])
            }),
            "",
        ),
        (
            table("x,ward", |row| {
                format!("{},{}", row % 9, ["True", "TRUE", "no"][row % 3])
            }),
            "",
        ),
        (
            table("x,age", |row| format!("{},{}", row % 9, 20 + row % 30)),
            "--keep age=33",
        ),
        (
            table("x,\"cost in US$ (\"\"net\"\")\"", |row| {
                format!("{},{}", row % 9, cell(row % 20 == 3, "n`d$1", row))
            }),
            "",
        ),
        (
            table("x,l'aire >= 5 \\ h=2", |row| {
                format!("{},{}", row % 9, cell(row == 3, "66666", row))
            }),
            "",
        ),
        (
            table("x,-log p", |row| {
                format!("{},{}", row % 9, cell(row % 20 == 3, "n/d", row))
            }),
            "",
        ),
        (
            table("x,a=b", |row| {
                format!("{},{}", row % 9, ["p!", "P!", "q"][row % 3])
            }),
            "",
        ),
        (
            table("x,$lab", |row| {
                format!(
                    "{},{}",
                    row % 9,
                    cell(
                        row % 20 == 3,
                        "a remark of more than forty letters in full",
                        row
                    )
                )
            }),
            "",
        ),
    ] {
        fs::write(folder.join("a.csv"), text).unwrap();
        let (good, question) = run(first);
        assert!(!good, "{first} is no question");
        for answer in answers(&question) {
            let (good, said) = run(&format!("{first}{answer}"));
            assert!(good, "{answer}: {said}\n{question}");
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}

/// A number of this row, or another text in its place.
fn cell(other: bool, text: &str, row: usize) -> String {
    match other {
        true => text.to_owned(),
        false => format!("{}.5", 60 + row),
    }
}
