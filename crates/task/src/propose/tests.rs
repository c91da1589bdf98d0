#![allow(clippy::unwrap_used)]
use std::fmt::Write;

use super::*;
use crate::schema::{ColumnType, FeatureColumns, Levels, MissingRule, Quantity, ReadCells};

/// The levels of a category.
pub(super) fn levels_in(kind: &ColumnType) -> Option<&Levels> {
    match kind.cells() {
        ReadCells::Levels(levels) => Some(levels),
        ReadCells::Numbers { .. } | ReadCells::Days(_) => None,
    }
}

/// Returns what is agreed of numbers.
pub(super) fn quantity_in(kind: &ColumnType) -> &Quantity {
    match kind.cells() {
        ReadCells::Numbers { agreed, .. } => agreed,
        ReadCells::Days(days) => panic!("{days:?}"),
        ReadCells::Levels(levels) => panic!("{levels:?}"),
    }
}

/// Proposes for one file with these bytes.
fn of(name: &str, bytes: &[u8], wishes: &Wishes) -> Result<SchemaProposal, DataError> {
    let folder = std::env::temp_dir().join(format!("rota-propose-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, bytes).unwrap();
    let proposal = propose(&[file], wishes);
    std::fs::remove_dir_all(&folder).unwrap();
    proposal
}

/// 200 rows of three clinics: semicolons, decimal commas, texts, codes, gaps, an identifier.
fn clinics() -> String {
    let mut text =
        String::from("nr;klinik;alter;gewicht;station;aufnahme_id;notiz;leer;konstant;wieder\n");
    for row in 0..200 {
        let ward = ["Innere", "Chirurgie", "ITS"][row % 3];
        let weight = match row % 40 {
            0 => "NA".to_owned(),
            _ => format!("{},{}", 60 + row % 31, row % 10),
        };
        let clinic = ["Nord", "Süd", "Ost"][row % 7 % 3];
        let again = ["nein", "ja"][usize::from(row % 5 == 0)];
        writeln!(
            text,
            "{};{clinic};{};{weight};{ward};{};text {row};;x;{again}",
            1000 + row,
            20 + row % 30,
            1 + row % 8
        )
        .unwrap();
    }
    text
}

fn wishes() -> Wishes {
    Wishes {
        target: Some("wieder".into()),
        positive: Some("ja".into()),
        silo_column: Some("klinik".into()),
        ..Wishes::default()
    }
}

fn levels_of<'a>(proposal: &'a SchemaProposal, name: &str) -> &'a Levels {
    levels_in(&feature(proposal, name).kind).unwrap()
}

fn feature<'a>(proposal: &'a SchemaProposal, name: &str) -> &'a FeatureColumns {
    let found = proposal
        .schema
        .columns()
        .find(|(column, _)| *column == name);
    found.unwrap().1
}

#[test]
fn a_table_with_semicolons_and_decimal_commas_is_described() {
    let proposal = of("a.csv", clinics().as_bytes(), &wishes()).unwrap();
    assert_eq!(
        (proposal.formats[0].delimiter, proposal.formats[0].decimal),
        (';', ',')
    );
    assert_eq!(proposal.rows, 200);
    assert_eq!(proposal.silos.len(), 3);
    assert!(matches!(
        feature(&proposal, "alter").kind,
        ColumnType::Integer(_)
    ));
    let weight = feature(&proposal, "gewicht");
    assert!(matches!(weight.kind, ColumnType::Number(_)));
    assert_eq!(weight.missing, MissingRule::Median);
    let levels = &levels_of(&proposal, "station").listed;
    assert_eq!(levels.len(), 3);
    assert!(levels_in(&feature(&proposal, "aufnahme_id").kind).is_some());
    let out: Vec<&str> = proposal
        .left_out
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(out, ["nr", "notiz", "leer", "konstant"]);
    let classes = vec!["nein".to_owned(), "ja".to_owned()];
    assert_eq!(proposal.target(), Target::Classes(classes));
}

#[test]
fn the_encoding_is_found() {
    let text = clinics();
    let latin: Vec<u8> = text.chars().map(|letter| letter as u32 as u8).collect();
    let proposal = of("latin.csv", &latin, &wishes()).unwrap();
    assert_eq!(proposal.formats[0].encoding, "windows-1252");
    assert!(proposal.silos.iter().any(|(name, _)| name == "Süd"));
}

#[test]
fn what_the_user_knows_is_followed() {
    let wishes = Wishes {
        drop: vec!["station".into()],
        numbers: vec!["aufnahme_id".into()],
        categories: vec!["alter".into()],
        ..wishes()
    };
    let proposal = of("b.csv", clinics().as_bytes(), &wishes).unwrap();
    assert!(matches!(
        feature(&proposal, "aufnahme_id").kind,
        ColumnType::Integer(_)
    ));
    assert!(levels_in(&feature(&proposal, "alter").kind).is_some());
    assert!(
        proposal
            .left_out
            .contains(&("station".into(), "as you asked".into()))
    );
}

#[test]
fn one_silo_is_refused_and_columns_that_could_name_silos_named() {
    let wishes = Wishes {
        silo_column: None,
        ..wishes()
    };
    let error = of("c.csv", clinics().as_bytes(), &wishes)
        .unwrap_err()
        .to_string();
    assert!(error.contains("--silo-column: \"klinik\""), "{error}");
    assert!(error.contains("--split-into 3"), "{error}");
}

#[test]
fn synthetic_silos_get_equal_shares_of_the_rows() {
    let wishes = Wishes {
        silo_column: None,
        pretend_silos: Some(3),
        ..wishes()
    };
    let proposal = of("pretend.csv", clinics().as_bytes(), &wishes).unwrap();
    let rows: Vec<usize> = proposal.silos.iter().map(|(_, rows)| *rows).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows.iter().sum::<usize>(), proposal.rows);
    assert!(rows.iter().max().unwrap() - rows.iter().min().unwrap() <= 1);
}

#[test]
fn a_positive_class_that_does_not_occur_is_refused() {
    let wishes = Wishes {
        positive: Some("yes".into()),
        ..wishes()
    };
    let error = of("d.csv", clinics().as_bytes(), &wishes)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no row has the value \"yes\""), "{error}");
}

/// Sixty rows of a table with a column `x` of these cells in turn, and what is proposed for it.
fn column(file: &str, cells: &[&str], wishes: Wishes) -> Result<SchemaProposal, DataError> {
    let mut text = String::from("age,x,died\n");
    for row in 0..60 {
        let cell = cells[row % cells.len()];
        writeln!(
            text,
            "{},{cell},{}",
            20 + row % 50,
            ["no", "yes"][row % 7 % 2]
        )
        .unwrap();
    }
    let wishes = Wishes {
        target: Some("died".into()),
        ..wishes
    };
    of(
        file,
        text.as_bytes(),
        &Wishes {
            alone: true,
            ..wishes
        },
    )
}

/// Twelve cells, of which two are others.
fn mostly<'a>(usual: [&'a str; 3], other: &'a str) -> Vec<&'a str> {
    let mut cells: Vec<&str> = usual.into_iter().cycle().take(14).collect();
    cells.push(other);
    cells
}

#[test]
fn a_level_of_few_rows_is_folded_unless_it_is_kept_by_name() {
    // Four of sixty rows.
    let cells = mostly(["general", "surgery", "icu"], "rare disease");
    let proposal = column("rare.csv", &cells, Wishes::default()).unwrap();
    let x = levels_of(&proposal, "x");
    assert!(x.other && !x.listed.contains(&"rare disease".into()));
    let (_, what) = proposal
        .columns
        .iter()
        .find(|(name, _)| name == "x")
        .unwrap();
    assert_eq!(
        what,
        "texts, 3 of 4: general 20, surgery 20, icu 16; all others together 4"
    );
    let said = "x: 1 rare level with 4 rows in all is not listed, because fewer than 5 rows have it: \
                \"rare disease\"; to list one all the same, say --keep \"x=rare disease\"";
    assert!(
        proposal.notes.contains(&said.to_owned()),
        "{:?}",
        proposal.notes
    );
    let keep = Wishes {
        keep: vec![("x".into(), "rare disease".into())],
        ..Wishes::default()
    };
    let proposal = column("kept.csv", &cells, keep).unwrap();
    let x = levels_of(&proposal, "x");
    assert!(!x.other && x.listed.contains(&"rare disease".into()));
    // More rows may be asked for, not fewer.
    let rare = |rare| Wishes {
        rare: Some(rare),
        ..Wishes::default()
    };
    let levels = |proposal: &SchemaProposal| levels_of(proposal, "x").listed.clone();
    assert_eq!(
        levels(&column("more.csv", &cells, rare(18)).unwrap()),
        ["general", "surgery"]
    );
    assert_eq!(
        levels(&column("fewer.csv", &cells, rare(1)).unwrap()).len(),
        3
    );
}

#[test]
fn a_kept_level_is_one_whatever_its_text_and_must_have_rows() {
    let keep = |level: &str| Wishes {
        keep: vec![("x".into(), level.into())],
        ..Wishes::default()
    };
    let cells = mostly(["general", "surgery", "None"], "icu");
    let without = column("none.csv", &cells, Wishes::default()).unwrap();
    assert!(!levels_of(&without, "x").listed.contains(&"None".into()));
    let kept = column("kept-none.csv", &cells, keep("None")).unwrap();
    assert!(levels_of(&kept, "x").listed.contains(&"None".into()));
    assert_eq!(feature(&kept, "x").missing, MissingRule::Refuse);
    assert!(
        !kept.notes.iter().any(|note| note.contains("missing")),
        "{:?}",
        kept.notes
    );
    for (level, said) in [
        ("none", "no row has that value"),
        ("generall", "did you mean \"general\"?"),
    ] {
        let why = column("nobody.csv", &cells, keep(level))
            .unwrap_err()
            .to_string();
        assert!(
            why.contains(&format!("--keep \"x={level}\"")) && why.contains(said),
            "{why}"
        );
    }
    let numbers = Wishes {
        keep: vec![("age".into(), "33".into())],
        ..Wishes::default()
    };
    let why = column("numbers.csv", &cells, numbers)
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("--keep \"age=33\"") && why.contains("say --category \"age\""),
        "{why}"
    );
}

#[test]
fn a_rare_class_is_named_and_asked_and_never_folded() {
    let mut text = String::from("age,died\n");
    (0..60).for_each(|row| writeln!(text, "{},{}", 20 + row % 50, ["no", "yes"][row % 2]).unwrap());
    text += "72,unknown\n";
    let wishes = |keep: &[(&str, &str)], alone| Wishes {
        target: Some("died".into()),
        keep: keep
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect(),
        alone,
        pretend_silos: (!alone).then_some(2),
        ..Wishes::default()
    };
    let error = of("class.csv", text.as_bytes(), &wishes(&[], true))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("1 row holds the class \"unknown\""),
        "{error}"
    );
    assert!(error.contains("--keep \"died=unknown\""), "{error}");
    let kept = of(
        "kept-class.csv",
        text.as_bytes(),
        &wishes(&[("died", "unknown")], true),
    )
    .unwrap();
    assert_eq!(
        kept.predicted,
        "classes, with their rows: no 30, unknown 1, yes 30"
    );
    // A scenario stays where the rows are.
    let stays = of("own-class.csv", text.as_bytes(), &wishes(&[], false)).unwrap();
    assert!(
        stays
            .notes
            .iter()
            .any(|note| note.contains("is rare: 1 row holds it"))
    );
}

#[test]
fn columns_that_identify_persons_are_left_out_with_the_reason() {
    let people: Vec<String> = (b'A'..=b'R')
        .map(|letter| format!("Given{0} Family{0}", char::from(letter)))
        .collect();
    let people: Vec<&str> = people.iter().map(String::as_str).collect();
    let out = |proposal: SchemaProposal| {
        proposal
            .left_out
            .into_iter()
            .find(|(name, _)| name == "x")
            .unwrap()
            .1
    };
    let why = out(column("people.csv", &people, Wishes::default()).unwrap());
    assert!(why.contains("look like names of persons"), "{why}");
    let why = out(column(
        "dates.csv",
        &["31.05.1950", "01.12.1961"],
        Wishes::default(),
    )
    .unwrap());
    assert!(why.starts_with("dates: a model needs a number"), "{why}");
    let line = "\"one\ntwo\"";
    let why = out(column("lines.csv", &["general", "icu", line], Wishes::default()).unwrap());
    assert!(why.starts_with("free text"), "{why}");
    // By name it may be one.
    let asked = Wishes {
        categories: vec!["x".into()],
        rare: Some(5),
        ..Wishes::default()
    };
    let asked = column("asked.csv", &["Anna Meier", "Jo Huber"], asked).unwrap();
    assert_eq!(levels_of(&asked, "x").listed.len(), 2);
}

#[test]
fn codes_are_texts() {
    let proposal = column(
        "codes.csv",
        &["01", "1", "010", "10", "4E2", "400"],
        Wishes::default(),
    )
    .unwrap();
    let mut levels = levels_of(&proposal, "x").listed.clone();
    levels.sort();
    assert_eq!(levels, ["01", "010", "1", "10", "400", "4E2"]);
    // The same codes beside missing values, as programs write them.
    let wishes = || Wishes {
        categories: vec!["x".into()],
        ..Wishes::default()
    };
    let levels = |cells: &[&str], file: &str| {
        let proposal = column(file, cells, wishes()).unwrap();
        levels_of(&proposal, "x").listed.clone()
    };
    assert_eq!(levels(&["1.0", "2.0", ""], "zeros.csv"), ["1", "2"]);
    assert_eq!(levels(&["250", "250.0"], "icd.csv"), ["250", "250.0"]);
}

#[test]
fn one_odd_cell_never_makes_a_category_of_numbers() {
    let numbers: Vec<String> = (0..59).map(|number| format!("{}.5", number)).collect();
    for odd in ["inf", "<5", "error", "#", "12 mg", "n.d.?"] {
        let mut cells: Vec<&str> = numbers.iter().map(String::as_str).collect();
        cells.push(odd);
        let error = column("odd.csv", &cells, Wishes::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(&format!("{odd:?} 1")), "{error}");
        assert!(
            error.contains(&format!("--missing-mark={odd:?}")),
            "{error}"
        );
        let marked = Wishes {
            missing: vec![odd.into()],
            ..Wishes::default()
        };
        let proposal = column("marked.csv", &cells, marked).unwrap();
        let kind = &feature(&proposal, "x").kind;
        assert!(matches!(kind, ColumnType::Number(_)), "{odd}");
        assert!(proposal.formats[0].missing.contains(&odd.into()));
    }
}

#[test]
fn values_that_look_alike_are_a_question() {
    let cells = ["True", "TRUE", "False", "FALSE"];
    let error = column("alike.csv", &cells, Wishes::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"FALSE\" 15 and \"False\" 15; \"TRUE\" 15 and \"True\" 15"),
        "{error}"
    );
    let with = |same: &[&str], different: &[&str]| Wishes {
        same: same.iter().map(|name| (*name).into()).collect(),
        different: different.iter().map(|name| (*name).into()).collect(),
        ..Wishes::default()
    };
    let same = column("same.csv", &cells, with(&["x"], &[])).unwrap();
    assert_eq!(&levels_of(&same, "x").listed, &["FALSE", "TRUE"]);
    assert_eq!(same.codes["x"]["True"], "TRUE");
    let different = column("different.csv", &cells, with(&[], &["x"])).unwrap();
    assert_eq!(levels_of(&different, "x").listed.len(), 4);
}

#[test]
fn a_real_level_called_other_is_its_own() {
    let mut cells: Vec<&str> = ["a", "b", "other"].into_iter().cycle().take(29).collect();
    cells.push("rare");
    let proposal = column("other.csv", &cells, Wishes::default()).unwrap();
    let x = levels_of(&proposal, "x");
    assert!(x.other && x.listed.contains(&"other".into()));
    assert_eq!(x.all().last().unwrap(), "any other");
}

#[test]
fn rows_of_one_person_are_proposed_to_stay_together() {
    let mut text = String::from("patient,lab,outcome\n");
    for row in 0..120 {
        let (patient, lab) = (row / 6, (row * 37 % 101) as f64 / 10.0);
        writeln!(
            text,
            "north{patient},{lab},{}",
            ["no", "yes"][patient * 7 % 3 % 2]
        )
        .unwrap();
    }
    let wishes = |drop: &[&str]| Wishes {
        target: Some("outcome".into()),
        drop: drop.iter().map(|name| (*name).into()).collect(),
        alone: true,
        ..Wishes::default()
    };
    let proposal = of("visits.csv", text.as_bytes(), &wishes(&[])).unwrap();
    assert_eq!(proposal.group.as_ref().unwrap().0, "patient");
    assert!(
        proposal
            .left_out
            .iter()
            .any(|(name, why)| name == "patient" && why.contains("whose a row is"))
    );
    assert!(proposal.schema.names().eq(["lab"]));
    // Whoever drops it is told what follows.
    let dropped = of("dropped.csv", text.as_bytes(), &wishes(&["patient"])).unwrap();
    assert_eq!(dropped.group, None);
    assert!(
        dropped
            .notes
            .iter()
            .any(|note| note.contains("--group \"patient\"")),
        "{:?}",
        dropped.notes
    );
}

#[test]
fn a_column_that_leaks_the_target_and_siloless_rows_are_named() {
    let mut text = String::from("hospital,age,discharge,died\n");
    for row in 0..90 {
        let died = row * 7 % 5 < 2;
        let hospital = ["h1", "h2", ""][row % 15 % 3 * usize::from(row % 15 < 3)];
        let discharge = if died { 10 + row % 3 } else { row % 3 };
        writeln!(
            text,
            "{hospital},{},{discharge},{}",
            20 + row % 50,
            ["no", "yes"][usize::from(died)]
        )
        .unwrap();
    }
    let wishes = Wishes {
        target: Some("died".into()),
        silo_column: Some("hospital".into()),
        ..Wishes::default()
    };
    let proposal = of("leak.csv", text.as_bytes(), &wishes).unwrap();
    let notes = proposal.notes.join("\n");
    assert!(
        notes.contains("\"discharge\" alone gives AUC 1.000"),
        "{notes}"
    );
    assert!(
        notes.contains("6 rows have no value of \"hospital\", which names the silo: left out"),
        "{notes}"
    );
    let rows: usize = proposal.silos.iter().map(|(_, rows)| rows).sum();
    assert_eq!((proposal.rows, rows), (90, 84));
}
