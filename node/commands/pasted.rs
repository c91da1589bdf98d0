//! Whoever does literally what is printed gets past what refused it: every remedy about rows is taken out of the
//! text, pasted as it stands there, and tried.
#![allow(clippy::unwrap_used)]

use std::fs;

use clap::Parser;
use task::data::OwnRows;
use task::schema::LocalNames;
use task::survey::Survey;

use super::rows::what_would_fit;
use crate::cli::OwnNames;
use crate::fixture::North;
use crate::institution::{Configured, Data, fit, surveyed};

/// North with these edits of its rows.
fn north(edits: &[(&str, &str)]) -> North {
    let north = North::new();
    let file = north.folder.path().join("rows.csv");
    let mut rows = fs::read_to_string(&file).unwrap();
    for (from, to) in edits {
        assert!(rows.contains(from), "{from}: {rows}");
        rows = rows.replace(from, to);
    }
    fs::write(file, rows).unwrap();
    north
}

/// The rows as `node.toml` says, why they do not fit, and what was surveyed.
fn tried(north: &North) -> (OwnRows, Result<(), String>, Survey) {
    let configured = Configured::load(&north.folder.path().join("node.toml")).unwrap();
    let Data::Rows(rows) = configured.data else {
        panic!("north has rows")
    };
    let (agreement, folder) = (&configured.agreement, &configured.folder);
    let fits = fit(agreement, &rows, "north", folder, (0, None));
    let survey = surveyed(agreement, &rows, folder);
    let fits = fits.map(drop).map_err(|why| why.to_string());
    (*rows, fits, survey.unwrap_or_default())
}

/// Puts lines into `node.toml` in place of a table with their header, as an editor does.
fn paste(north: &North, lines: &[String]) {
    let file = north.folder.path().join("node.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (before, _) = text.split_once(&lines[0]).unwrap_or((&text, ""));
    fs::write(file, format!("{before}{}\n", lines.join("\n"))).unwrap();
}

/// The lines of TOML in what is printed.
fn pasted(printed: &[String]) -> Vec<String> {
    let at = printed.iter().position(|line| line == "[data.rows.names]");
    let lines = printed[at.unwrap()..].iter();
    lines.take_while(|line| !line.is_empty()).cloned().collect()
}

#[derive(Parser)]
struct NamesTyped {
    #[command(flatten)]
    names: OwnNames,
    #[arg(long)]
    ignore: Vec<String>,
}

/// The names of the options in what is printed.
fn options(printed: &[String]) -> LocalNames {
    let line = printed
        .iter()
        .find(|line| line.starts_with("  --"))
        .unwrap();
    let read = NamesTyped::parse_from(shlex::split(&format!("rota {line}")).unwrap());
    let mut names = LocalNames {
        ignore: read.ignore,
        ..LocalNames::default()
    };
    read.names.add_to(&mut names);
    names
}

/// Files that differ in names only, with the answers to what nobody but a person knows.
#[test]
fn printed_names_and_codes_are_pasted_whole_past_the_refusal() {
    gets_past(&north(&[("age,", "Age,"), ("days\n", "DAYS\n")]), &[]);
    gets_past(
        &north(&[("general", "General"), ("intensive", "INTENSIVE")]),
        &[],
    );
    gets_past(
        &north(&[("age,", "Jahre,"), ("severity", "Grad")]),
        &[
            ("columns.age = \"?\"", "columns.age = \"Jahre\""),
            ("columns.severity = \"?\"", "columns.severity = \"Grad\""),
            ("ignore = [\"Jahre\", \"Grad\"]", "ignore = []"),
        ],
    );
    gets_past(
        &north(&[("general", "N"), ("intensive", "0 x")]),
        &[
            ("codes.ward.N = \"?\"", "codes.ward.N = \"general\""),
            (
                "codes.ward.\"0 x\" = \"?\"",
                "codes.ward.\"0 x\" = \"intensive\"",
            ),
        ],
    );
    gets_past(
        &north(&[("\n20,0,", "\n20,n/d,")]),
        &[(
            "codes.severity.\"n/d\" = \"?\"",
            "codes.severity.\"n/d\" = \"2\"",
        )],
    );
    gets_past(
        &north(&[("\n20,0,", "\n20,n/d,")]),
        &[(
            "codes.severity.\"n/d\" = \"?\"",
            "missing.severity = [\"n/d\"]",
        )],
    );
    gets_past(
        &north(&[("\n", ",7\n"), ("days,7\n", "days,patient no\n")]),
        &[],
    );
    let lacks = north(&[
        ("severity,", ""),
        (",0,", ","),
        (",1,", ","),
        (",2,", ","),
        (",3,", ","),
        (",4,", ","),
    ]);
    let file = lacks.folder.path().join("federation.toml");
    let usual = (
        "min-rows = 10",
        "usual = { severity = [0.0, 4.0] }\nmin-rows = 10",
    );
    fs::write(file, North::text(&[usual])).unwrap();
    gets_past(
        &lacks,
        &[("columns.severity = \"?\"", "absent = [\"severity\"]")],
    );
}

/// Pastes what is printed until the rows fit: first as it is, then with the answers in place of what is open.
fn gets_past(north: &North, answers: &[(&str, &str)]) {
    let (rows, refused, survey) = tried(north);
    assert!(refused.is_err(), "nothing was refused");
    let printed = what_would_fit(&survey);
    let lines = pasted(&printed);
    // Options and lines say the same.
    let names: LocalNames = toml::from_str(&lines[1..].join("\n")).unwrap();
    assert_eq!(options(&printed), names);
    paste(north, &lines);
    let (_, fits, again) = tried(north);
    let open = names.open();
    if let Err(why) = &fits {
        assert!(!open.is_empty(), "{why}: {lines:#?}");
        assert!(open.iter().all(|question| why.contains(question)), "{why}");
        // Right answers stay, and only what is open is printed again.
        assert_eq!(again.names.unwrap(), names, "{rows:?}");
    }
    let mut text = lines.join("\n");
    for (question, answer) in answers {
        assert!(text.contains(question), "{question}: {text}");
        text = text.replace(question, answer);
    }
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    paste(north, &lines);
    let (_, fits, last) = tried(north);
    assert_eq!(fits, Ok(()), "{text}: {:?}", last.misfits);
}

/// Files whose cells are written otherwise: every way that is offered is a line of `format`, and is taken.
#[test]
fn printed_marks_and_separators_are_pasted_past_the_refusal() {
    let mut ways = 0;
    for edits in [
        &[(",", ";")][..],
        &[(",", "\t")],
        &[(",", "|")],
        &[("\n20,", "\n\"20,5\",")],
        &[("\n20,", "\n\"1,234\",")],
        &[("\n20,", "\n1'234,")],
        &[("\n20,", "\n1 234,")],
        &[("\n20,", "\n1_234,")],
        &[("\n20,", "\n\"1.234,5\",")],
        &[("\n20,", "\n\"1,234.5\",")],
        &[("\n20,", "\n\"1 234,5\",")],
    ] {
        let refused = tried(&north(edits)).1.unwrap_err();
        let (_, remedy) = refused.split_once("`format`").expect(&refused);
        let (_, remedy) = remedy.split_once(": ").expect(&refused);
        for way in remedy.split(" or ") {
            let north = north(edits);
            let file = north.folder.path().join("node.toml");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, format!("{text}format = {{ {way} }}\n")).unwrap();
            let again = tried(&north).1;
            assert_eq!(again, Ok(()), "{way}: {refused}");
            ways += 1;
        }
    }
    assert!(ways > 11, "{ways}");
}

#[test]
fn a_printed_encoding_is_pasted_past_the_refusal() {
    let north = North::new();
    let file = north.folder.path().join("rows.csv");
    let mut rows = fs::read(&file).unwrap();
    rows.extend(b"# Universit\xE9\n");
    fs::write(&file, rows).unwrap();
    let refused = tried(&north).1.unwrap_err();
    let (_, name) = refused
        .split_once("`encoding` it has, for example ")
        .unwrap();
    let silo = north.folder.path().join("node.toml");
    let text = fs::read_to_string(&silo).unwrap();
    fs::write(&silo, format!("{text}format = {{ encoding = {name} }}\n")).unwrap();
    let again = tried(&north).1;
    assert!(
        again.is_ok() || !again.clone().unwrap_err().contains("encoding"),
        "{again:?}"
    );
}
