#![allow(clippy::unwrap_used)]
use std::fmt::Write;

use super::*;
use crate::schema::{ColumnType, FeatureColumns, MissingRule};

/// Proposes for one file with these bytes.
fn of(name: &str, bytes: &[u8], wishes: &Wishes) -> Result<Proposal, DataError> {
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
            20 + row % 60,
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

fn feature<'a>(proposal: &'a Proposal, name: &str) -> &'a FeatureColumns {
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
        (proposal.format.delimiter, proposal.format.decimal),
        (';', ',')
    );
    assert_eq!(proposal.rows, 200);
    assert_eq!(proposal.silos.len(), 3);
    assert_eq!(feature(&proposal, "alter").kind, ColumnType::Integer);
    let weight = feature(&proposal, "gewicht");
    assert_eq!(
        (weight.kind, weight.missing),
        (ColumnType::Number, MissingRule::Median)
    );
    let levels = feature(&proposal, "station").levels.as_ref().unwrap();
    assert_eq!(levels.len(), 3);
    assert_eq!(feature(&proposal, "aufnahme_id").kind, ColumnType::Category);
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
    assert_eq!(proposal.format.encoding, "windows-1252");
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
    assert_eq!(feature(&proposal, "aufnahme_id").kind, ColumnType::Integer);
    assert_eq!(feature(&proposal, "alter").kind, ColumnType::Category);
    assert!(
        proposal
            .left_out
            .contains(&("station".into(), "as you asked".into()))
    );
}

#[test]
fn one_silo_is_refused_and_the_columns_that_could_name_silos_are_named() {
    let wishes = Wishes {
        silo_column: None,
        ..wishes()
    };
    let error = of("c.csv", clinics().as_bytes(), &wishes)
        .unwrap_err()
        .to_string();
    assert!(error.contains("--silo-column: \"klinik\""), "{error}");
    assert!(error.contains("--pretend-silos 3"), "{error}");
}

#[test]
fn pretend_silos_get_equal_shares_of_the_rows() {
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
