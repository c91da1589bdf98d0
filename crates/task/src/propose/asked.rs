//! Tests of what is asked about the cells of a column, and of the answers.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use super::tests::{levels_in, quantity_in};
use super::*;
use crate::schema::{Censored, ColumnType};

/// Returns what is proposed for sixty rows with a column `x` of these cells in turn.
fn column(file: &str, cells: &[&str], wishes: Wishes) -> Result<SchemaProposal, String> {
    let mut text = String::from("age,x,died\n");
    for row in 0..60 {
        let cell = cells[row % cells.len()].replace('"', "\"\"");
        let died = ["no", "yes"][row % 7 % 2];
        writeln!(text, "{},\"{cell}\",{died}", 20 + row % 50).unwrap();
    }
    let folder = std::env::temp_dir().join(format!("rota-asked-{}-{file}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.csv");
    std::fs::write(&path, text).unwrap();
    let wishes = Wishes {
        target: Some("died".into()),
        alone: true,
        ..wishes
    };
    let proposal = propose(&[path], &wishes).map_err(|error| error.to_string());
    std::fs::remove_dir_all(&folder).unwrap();
    proposal
}

fn kind(proposal: &SchemaProposal) -> &ColumnType {
    let mut columns = proposal.schema.columns();
    let found = columns.find(|(name, _)| *name == "x");
    &found.unwrap().1.kind
}

fn named(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

#[test]
fn numbers_that_are_written_as_codes_are_asked_about() {
    for (at, cells) in [
        &["250.0", "250.00", "250.01", "401.9"][..],
        &["250.00", "250.01", "401.9", "428.5"],
        &["038.9", "250.1", "401.9", "428.5"],
        &["250.1", "401.9", "428.0", "414.2"],
        &["1.1", "1.10", "1.9", "2.5"],
        &["0800.5", "8001.5", "3012.5"],
        &["003.1", "042.0", "174.9", "585.6"],
        &["12.01", "12.1", "12.10", "30.4"],
        &["8140.3", "8500.30", "8500.3", "9680.3"],
        &["2.01", "2.1", "2.10", "7.4"],
        &["0041.2", "0119.7", "1204.1", "2250.9"],
        &["99.04", "88.72", "45.13", "39.95", "38.93"],
        &["99.04", "88.7", "45.13", "96.71"],
        &["401.9", "428", "272.4", "585.6"],
        &["8500.3", "8140.6", "9680.3", "8070.2"],
        &["51.23", "47.01", "53.05", "81.54", "81.51"],
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("codes-{at}");
        let error = column(&file, cells, Wishes::default()).unwrap_err();
        for part in [
            "column \"x\": its numbers are written as codes are: ",
            "--category \"x\"",
            "--number \"x\"",
        ] {
            assert!(error.contains(part), "{cells:?}: {error}");
        }
        let codes = Wishes {
            categories: named("x"),
            ..Wishes::default()
        };
        let codes = column(&file, cells, codes).unwrap();
        let levels = &levels_in(kind(&codes)).unwrap().listed;
        assert!(
            cells
                .iter()
                .all(|cell| levels.contains(&(*cell).to_owned()))
        );
        let numbers = Wishes {
            numbers: named("x"),
            ..Wishes::default()
        };
        let numbers = column(&file, cells, numbers).unwrap();
        assert!(matches!(kind(&numbers), ColumnType::Number(_)), "{cells:?}");
    }
}

#[test]
fn numbers_with_a_unit_in_every_cell_are_asked_about() {
    let units = [
        ("mg", "{} mg"),
        ("mg", "{}mg"),
        ("Y", "0{}Y"),
        ("mg", "mg {}"),
        ("\u{B0}C", "{} \u{B0}C"),
        ("kg/m2", "{} kg/m2"),
        ("years", "{} years"),
        ("\u{3BC}kat/l", "{} \u{B5}kat/l"),
        ("Tage", "{}Tage"),
        ("ca.", "ca. {}"),
        ("10*9/L", "{} 10*9/L"),
        ("\u{2103}", "{}\u{2103}"),
        ("x ULN", "{} x ULN"),
    ];
    for (at, (unit, form)) in units.into_iter().enumerate() {
        // As many different ones as free text has.
        let cells: Vec<String> = (20..60)
            .map(|number| form.replace("{}", &number.to_string()))
            .collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let file = format!("units-{at}");
        let error = column(&file, &cells, Wishes::default()).unwrap_err();
        let option = format!("--unit {:?}", format!("x={unit}"));
        assert!(
            error.contains("column \"x\": a number is needed, without "),
            "{error}"
        );
        assert!(error.contains(&option), "{error}");
        let answered = Wishes {
            units: vec![("x".into(), unit.into())],
            ..Wishes::default()
        };
        let proposal = column(&file, &cells, answered).unwrap();
        let quantity = quantity_in(kind(&proposal));
        assert_eq!(quantity.unit.as_deref(), Some(unit));
        let (_, what) = proposal
            .columns
            .iter()
            .find(|(name, _)| name == "x")
            .unwrap();
        assert_eq!(what, "whole numbers from 20 to 59, median 34");
    }
}

#[test]
fn quoted_numbers_are_numbers() {
    for (at, form) in ["=\"{}\"", "'{}", "'{}'", "\"{}\"", "{}"]
        .into_iter()
        .enumerate()
    {
        let cells: Vec<String> = (20..80)
            .map(|number| form.replace("{}", &format!("{number}\u{B7}5")))
            .collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let proposal = column(&format!("quoted-{at}"), &cells, Wishes::default()).unwrap();
        assert!(matches!(kind(&proposal), ColumnType::Number(_)), "{form}");
    }
}

#[test]
fn bounds_among_numbers_are_asked_about_and_the_rule_is_agreed() {
    for (at, (bound, low, half)) in [
        ("<0.5", "0.5", "0.25"),
        ("< 0.5", "0.5", "0.25"),
        ("\u{2264}0.5", "0.5", "0.25"),
        ("=<0.5", "0.5", "0.25"),
        ("less than 0.5", "0.5", "0.25"),
        ("\u{2A7D} 0.5", "0.5", "0.25"),
        ("<= 0.5", "0.5", "0.25"),
        ("below 0.5", "0.5", "0.25"),
        ("unter 0.5", "0.5", "0.25"),
        ("under 0.5", "0.5", "0.25"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut cells: Vec<String> = (1..20).map(|number| format!("{number}.5")).collect();
        cells.push(bound.into());
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let file = format!("bounds-{at}");
        let error = column(&file, &cells, Wishes::default()).unwrap_err();
        for part in [
            "--censored \"x=limit\"",
            "--censored \"x=half\"",
            &format!("--missing-mark={bound:?}"),
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        for (rule, least) in [(Censored::Limit, low), (Censored::Half, half)] {
            let wishes = Wishes {
                censored: vec![("x".into(), rule)],
                ..Wishes::default()
            };
            let proposal = column(&file, &cells, wishes).unwrap();
            assert_eq!(quantity_in(kind(&proposal)).censored, Some(rule));
            let (_, what) = proposal
                .columns
                .iter()
                .find(|(name, _)| name == "x")
                .unwrap();
            assert!(
                what.starts_with(&format!("numbers from {least} to 19.5")),
                "{what}"
            );
        }
    }
    let mut cells: Vec<String> = (50..89).map(|age| age.to_string()).collect();
    cells.push("> 89".into());
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let wishes = Wishes {
        censored: vec![("x".into(), Censored::Half)],
        ..Wishes::default()
    };
    let proposal = column("upper", &cells, wishes).unwrap();
    assert!(matches!(kind(&proposal), ColumnType::Integer(_)));
}

#[test]
fn codes_with_letters_among_numbers_are_said_to_be_codes() {
    for (at, odd) in ["G0283", "V45.81", "E878.2", "M8000", "J1-2"]
        .into_iter()
        .enumerate()
    {
        let mut cells: Vec<String> = (0..19).map(|at| (99_201 + 7 * at).to_string()).collect();
        cells.push(odd.into());
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let error = column(&format!("letters-{at}"), &cells, Wishes::default()).unwrap_err();
        let said =
            "Its cells look like codes: if the column holds categories, say --category \"x\"; ";
        assert!(error.contains(said), "{error}");
        assert!(
            error.ends_with(&format!("--missing-mark={odd:?}")),
            "{error}"
        );
    }
}

#[test]
fn two_numbers_in_each_cell_are_asked_about() {
    for (at, form) in ["{}/{}", "{} / {}", "{}x{}", "{}'{}\"", "{} \u{D7} {}"]
        .into_iter()
        .enumerate()
    {
        let cell = |at: usize| {
            let one = form.replacen("{}", &(110 + at).to_string(), 1);
            one.replacen("{}", &(60 + at * 7 % 12).to_string(), 1)
        };
        let cells: Vec<String> = (0..15).map(cell).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let file = format!("pairs-{at}");
        let error = column(&file, &cells, Wishes::default()).unwrap_err();
        assert!(
            error.contains("column \"x\": there are two numbers in a cell, such as"),
            "{error}"
        );
        let dropped = Wishes {
            drop: named("x"),
            ..Wishes::default()
        };
        column(&file, &cells, dropped).unwrap();
        let categories = Wishes {
            categories: named("x"),
            ..Wishes::default()
        };
        column(&file, &cells, categories).unwrap();
    }
    // Degrees and scores are categories.
    let scores = column("scores", &["1/2", "2/3", "3/4", "4/5"], Wishes::default());
    assert!(levels_in(kind(&scores.unwrap())).is_some());
}

#[test]
fn a_minus_beside_pluses_is_asked_about() {
    for (at, cells) in [
        &["-", "+"][..],
        &["-", "+", "++", "+++"],
        &["(+)", "-", "+"],
        &["-", "+", "+/-"],
        &["+", "-", "n.d."],
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("minus-{at}");
        let error = column(&file, cells, Wishes::default()).unwrap_err();
        assert!(
            error.contains("hold \"-\", which is read as missing, and others \"+\". If it is a value, say --keep \"x=-\""),
            "{error}"
        );
        let keep = Wishes {
            keep: vec![("x".into(), "-".into())],
            ..Wishes::default()
        };
        let kept = column(&file, cells, keep).unwrap();
        let levels = &levels_in(kind(&kept)).unwrap().listed;
        assert!(levels.contains(&"-".to_owned()), "{levels:?}");
    }
    let missing = Wishes {
        missing: vec!["x=-".into()],
        ..Wishes::default()
    };
    let found = column("minus", &["-", "+", "++"], missing).unwrap();
    assert_eq!(levels_in(kind(&found)).unwrap().listed.len(), 2);
}

#[test]
fn a_text_of_another_site_in_another_encoding_is_asked_about() {
    let folder = std::env::temp_dir().join(format!("rota-asked-{}-sites", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rows = |level: &str| {
        let ward = |row: usize| [level, "Ost"][row % 3 % 2];
        let row = |row: usize| format!("{},{},{}\n", 20 + row, ward(row), ["no", "yes"][row % 2]);
        let rows: String = (0..30).map(row).collect();
        format!("age,ward,died\n{rows}")
    };
    let of = |one: &[u8], other: &[u8], wishes: Wishes| {
        let files = [folder.join("north.csv"), folder.join("south.csv")];
        std::fs::write(&files[0], one).unwrap();
        std::fs::write(&files[1], other).unwrap();
        let wishes = Wishes {
            target: Some("died".into()),
            ..wishes
        };
        propose(&files, &wishes).map_err(|error| error.to_string())
    };
    let levels = |proposal: &SchemaProposal| {
        let ward = proposal.schema.columns().find(|(name, _)| *name == "ward");
        ward.map_or(0, |(_, feature)| {
            levels_in(&feature.kind).unwrap().listed.len()
        })
    };
    let utf8 = rows("S\u{FC}d");
    // The same text in every encoding in which it reads well.
    for name in ["windows-1252", "cp850", "macintosh", "utf-16le"] {
        let (north, south) = (rows("Nord\u{E9}"), rows("Nord\u{E9}"));
        let bytes = match crate::data::Charset::of(name) {
            Some(charset) if name != "utf-16le" => charset.bytes(&south).unwrap(),
            _ => south.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        };
        let given = Marks {
            encoding: crate::data::Charset::of(name),
            ..Marks::default()
        };
        let wishes = Wishes {
            marks: given,
            ..Wishes::default()
        };
        let found = of(north.as_bytes(), &bytes, wishes).map(|found| levels(&found));
        assert_eq!(found, Ok(2), "{name}");
    }
    // Two parts of a letter are that letter.
    let parts = rows("Su\u{308}d");
    let one = of(utf8.as_bytes(), parts.as_bytes(), Wishes::default());
    assert_eq!(one.map(|found| levels(&found)), Ok(2));
    // In UTF-8, and read as something else before.
    let twice = rows("S\u{C3}\u{BC}d");
    let error = of(utf8.as_bytes(), twice.as_bytes(), Wishes::default()).unwrap_err();
    assert!(
        error.contains("which is \"S\u{FC}d\" in another encoding, as in")
            && error.contains("--same \"ward\""),
        "{error}"
    );
    let same = Wishes {
        same: named("ward"),
        ..Wishes::default()
    };
    let same = of(utf8.as_bytes(), twice.as_bytes(), same);
    assert_eq!(same.map(|found| levels(&found)), Ok(2));
    let different = Wishes {
        different: named("ward"),
        ..Wishes::default()
    };
    let different = of(utf8.as_bytes(), twice.as_bytes(), different).unwrap();
    assert_eq!(levels(&different), 3);
    // A text that reads well in two encodings.
    let street = crate::data::Charset::of("cp850")
        .unwrap()
        .bytes(&rows("Stra\u{DF}e"))
        .unwrap();
    let error = of(utf8.as_bytes(), &street, Wishes::default()).unwrap_err();
    assert!(
        error.contains("--encoding windows-1252 or --encoding cp850"),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The columns of a table about whose cells a person is asked.
fn asked_about(path: &Path) -> Vec<String> {
    let (format, file) = sniff::read(path, &Marks::default()).unwrap();
    let raw = [(file, format)];
    let mut asked = Vec::new();
    for name in &raw[0].0.header {
        let cells = Cells::of(&raw, name, &MeasuredColumn::default()).unwrap();
        let form = cells.form_question().filter(|_| cells.all_numbers());
        asked.extend(form.or(cells.around_question()));
    }
    asked
}

#[test]
fn of_the_public_tables_hardly_a_column_is_asked_about() {
    let Some(folder) = std::env::var_os("ROTA_DATA") else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    let folder = Path::new(&folder);
    let mut asked = Vec::new();
    for name in ["breast_cancer", "tcga_brca", "tpt48", "eicu_demo"] {
        let files = std::fs::read_dir(folder.join(name)).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let table = |path: &std::path::PathBuf| {
            let name = path.to_string_lossy();
            name.ends_with(".csv") || name.ends_with(".csv.gz")
        };
        for file in files.filter(table) {
            asked.extend(asked_about(&file));
        }
    }
    let names = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,num\n";
    let own = std::env::temp_dir().join(format!("rota-asked-{}-heart", std::process::id()));
    std::fs::create_dir_all(&own).unwrap();
    for name in ["cleveland", "hungarian", "switzerland", "va"] {
        let path = folder
            .join("heart_disease")
            .join(format!("processed.{name}.data"));
        let text = std::fs::read_to_string(path).unwrap();
        let file = own.join(format!("{name}.csv"));
        std::fs::write(&file, format!("{names}{text}")).unwrap();
        asked.extend(asked_about(&file));
    }
    std::fs::remove_dir_all(&own).unwrap();
    assert!(asked.len() <= 2, "{}", asked.join("\n"));
}

#[test]
fn a_column_is_one_of_dates_if_somebody_names_its_first_day() {
    let wishes = |form: Option<&str>| Wishes {
        dates: vec![("x".into(), "2020-01-01".parse().unwrap())],
        date_forms: form
            .map(|form| ("x".into(), form.parse().unwrap()))
            .into_iter()
            .collect(),
        ..Wishes::default()
    };
    let cells = ["2020-03-01", "15.04.2021", "2022-12-31"];
    let proposal = column("dates", &cells, wishes(None)).unwrap();
    assert_eq!(
        kind(&proposal).to_string(),
        "a date, as days since 2020-01-01"
    );
    let found = &proposal
        .columns
        .iter()
        .find(|(name, _)| name == "x")
        .unwrap()
        .1;
    assert_eq!(found, "dates from 2020-03-01 to 2022-12-31");
    let left_out = column("undated", &cells, Wishes::default())
        .unwrap()
        .left_out;
    let why = &left_out.iter().find(|(name, _)| name == "x").unwrap().1;
    assert!(why.contains("--date x=2020-01-01"), "{why}");
    let cells = ["03/01/2020", "04/12/2021", "12/11/2022"];
    let why = column("slashes", &cells, wishes(None)).unwrap_err();
    assert!(
        why.contains("--date-form") && why.contains("MM/DD/YYYY"),
        "{why}"
    );
    let proposal = column("form", &cells, wishes(Some("MM/DD/YYYY"))).unwrap();
    assert_eq!(proposal.dates["x"].name(), "MM/DD/YYYY");
    let why = column("words", &["2020-03-01", "soon"], wishes(None)).unwrap_err();
    assert!(why.contains("\"soon\" is none"), "{why}");
}
