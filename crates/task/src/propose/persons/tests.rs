#![allow(clippy::unwrap_used)]
use super::*;

/// A table in which cell `row` of each column is given by a function.
fn found(
    rows: usize,
    columns: &[(&str, &dyn Fn(usize) -> String)],
    silos: &[u32],
) -> Option<GroupColumn> {
    let cells: Vec<Vec<String>> = columns
        .iter()
        .map(|(_, of)| (0..rows).map(of).collect())
        .collect();
    let columns = columns.iter().zip(&cells).filter_map(|((name, _), cells)| {
        ColumnCells::of(name, rows, cells.iter().map(String::as_str))
    });
    group_column(&columns.collect::<Vec<_>>(), silos)
}

fn lab(row: usize) -> String {
    format!("{}.{}", row * 7919 % 13, row * 31 % 97)
}

#[test]
fn a_column_whose_name_names_persons_is_proposed() {
    let visits = |row: usize| format!("north{}", row / 6);
    for name in [
        "patient",
        "Patient_ID",
        "patientId",
        "PATIENTID",
        "mrn",
        "study subject id",
        "Fall-Nr",
        "PID",
    ] {
        let proposed = found(120, &[("lab", &lab), (name, &visits)], &[]).unwrap();
        assert_eq!(
            (proposed.column.as_str(), proposed.groups, proposed.rows),
            (name, 20, 120)
        );
        assert!(
            proposed.reason.contains("has 20 values in 120 rows"),
            "{}",
            proposed.reason
        );
        assert!(
            proposed
                .reason
                .contains(&format!("split = {{ group = {name:?} }}"))
        );
    }
    // A measurement of a patient does not identify it; a row each, two kinds, and a gap are no persons.
    for name in ["patient_age", "pathology", "caseload", "personal"] {
        assert_eq!(
            found(120, &[("lab", &lab), (name, &visits)], &[]),
            None,
            "{name}"
        );
    }
    let each = |row: usize| row.to_string();
    let kinds = |row: usize| (row % 2).to_string();
    let gap = |row: usize| if row == 3 { String::new() } else { visits(row) };
    for of in [&each as &dyn Fn(usize) -> String, &kinds, &gap] {
        assert_eq!(found(120, &[("patient", of)], &[]), None);
    }
}

#[test]
fn an_identifier_with_constant_companions_is_proposed_with_them() {
    let id = |row: usize| format!("x{:03}", row % 40);
    let sex = |row: usize| {
        if (row % 40).is_multiple_of(3) {
            "f"
        } else {
            "m"
        }
        .to_owned()
    };
    let born = |row: usize| (1940 + row % 40 % 17).to_string();
    let columns: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("lab", &lab),
        ("pseudo", &id),
        ("sex", &sex),
        ("born", &born),
    ];
    let proposed = found(160, &columns, &[]).unwrap();
    assert_eq!((proposed.column.as_str(), proposed.groups), ("pseudo", 40));
    assert!(
        proposed
            .reason
            .contains("\"sex\" and \"born\" never change within one"),
        "{}",
        proposed.reason
    );
    // Without companions, or with few rows for chance, nothing is said.
    assert_eq!(found(160, &columns[..2], &[]), None);
    let few: [(&str, &dyn Fn(usize) -> String); 2] = [
        ("pseudo", &|row| format!("x{}", row % 10)),
        ("sex", &|row| (row % 10 % 2).to_string()),
    ];
    assert_eq!(found(17, &few, &[]), None);
    // Wards of hundreds of rows, which lie in one building, are no persons.
    let ward = |row: usize| format!("w{}", row % 12);
    let building = |row: usize| (row % 12 % 3).to_string();
    assert_eq!(
        found(1200, &[("ward", &ward), ("building", &building)], &[]),
        None
    );
}

#[test]
fn patients_come_before_their_cases_and_silos_number_their_own() {
    let case = |row: usize| format!("c{}", row / 2);
    let patient = |row: usize| (row / 6).to_string();
    let proposed = found(120, &[("case_id", &case), ("patient_id", &patient)], &[]);
    assert_eq!(proposed.unwrap().column, "patient_id");
    // Both silos number their patients from 0.
    let own = |row: usize| (row % 60 / 6).to_string();
    let silos: Vec<u32> = (0..120).map(|row| row / 60).collect();
    assert_eq!(found(120, &[("patient", &own)], &silos).unwrap().groups, 20);
}

fn table(rows: &[[f64; 3]]) -> Table {
    let mut table = Table::new(vec!["a".into(), "b".into()]);
    rows.iter()
        .for_each(|[a, b, target]| table.push(&[*a, *b], *target));
    table
}

#[test]
fn duplicate_rows_are_counted_within_and_between_silos() {
    let silos = [
        (
            "north".to_owned(),
            table(&[
                [1.0, 2.0, 0.0],
                [1.0, 2.0, 0.0],
                [3.0, f64::NAN, 1.0],
                [4.0, 4.0, 1.0],
            ]),
        ),
        (
            "south".to_owned(),
            table(&[[3.0, f64::NAN, 1.0], [4.0, 4.0, 0.0], [5.0, 5.0, 0.0]]),
        ),
    ];
    let found = repeated(&silos);
    assert_eq!(
        (found.within, found.across, found.rows, found.different),
        (1, 1, 7, 5)
    );
    assert_eq!(
        found.silos,
        [("north".to_owned(), 1), ("south".to_owned(), 1)]
    );
    let note = found.note().unwrap();
    assert!(
        note.starts_with(
            "1 of 7 rows repeats another row of the same silo, and 1 a row of another silo: north (1), south (1);"
        ),
        "{note}"
    );
    // Two columns of zeros and ones.
    let few: Vec<[f64; 3]> = (0..40)
        .map(|row| [f64::from(row % 2), f64::from(row % 4 / 2), 0.0])
        .collect();
    let found = repeated(&[("north".to_owned(), table(&few))]);
    assert_eq!((found.within, found.note()), (36, None));
    assert_eq!(repeated(&silos[1..]).note(), None);
}
