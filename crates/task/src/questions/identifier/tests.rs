#![allow(clippy::unwrap_used)]
use super::*;
use crate::random::uniform;

/// A number that looks drawn by chance, from 0 to 1, the same for the same arguments.
fn chance(what: &str, at: usize) -> f64 {
    uniform(&mut stream(at as u64, what))
}

/// A table whose cell of a row each column gives; the last is predicted.
struct TestTable {
    rows: usize,
    columns: Vec<(&'static str, Vec<String>)>,
}

impl TestTable {
    fn new(rows: usize) -> Self {
        let columns = Vec::new();
        Self { rows, columns }
    }

    fn with(mut self, name: &'static str, of: impl Fn(usize) -> String) -> Self {
        self.columns.push((name, (0..self.rows).map(of).collect()));
        self
    }

    /// Labs and an age that are measured at every visit, and an outcome by person from a coin.
    fn of_visits(rows: usize, person: impl Fn(usize) -> usize) -> Self {
        let coin = |row: usize| u8::from(chance("coin", person(row)) < 0.5).to_string();
        let lab = |row: usize| format!("{:.2}", 2.0 + chance("lab", row));
        let pulse = |row: usize| format!("{:.0}", 50.0 + 60.0 * chance("pulse", row));
        Self::new(rows)
            .with("lab", lab)
            .with("pulse", pulse)
            .with("outcome", coin)
    }

    fn asked(&self) -> Vec<String> {
        self.asked_beside(&[])
    }

    /// The columns that are asked about where `groups` are known.
    fn asked_beside(&self, groups: &[u32]) -> Vec<String> {
        let columns: Vec<(String, RowColumn)> = self
            .columns
            .iter()
            .map(|(name, cells)| {
                let numbers: Option<Vec<f64>> =
                    cells.iter().map(|cell| cell.parse().ok()).collect();
                let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
                let column = match numbers {
                    Some(values) => RowColumn {
                        values,
                        kind: RowValues::Numbers,
                    },
                    None => RowColumn::of_texts(&texts),
                };
                ((*name).to_owned(), column)
            })
            .collect();
        let (targets, features): (Vec<_>, Vec<_>) =
            columns.into_iter().partition(|(name, _)| name == "outcome");
        let names = features.iter().map(|(name, _)| name.clone());
        let rows = RowColumns {
            names: names.collect(),
            column: Box::new(|at| features[at].1.clone()),
            targets,
            silos: vec![0; self.rows],
            groups: groups.to_vec(),
        };
        let asked = identifiers(&rows).into_iter();
        asked.map(|question| question.column).collect()
    }
}

/// Whose row it is where patients come again, in no order.
fn again(row: usize) -> usize {
    (chance("visit", row) * 70.0) as usize
}

#[test]
fn a_patients_number_is_asked_about_in_any_name_and_digits() {
    // An outcome from a coin for each patient: nothing predicts it but who it is.
    let ten_digits = |row: usize| (4_000_000_000.0 + 9e8 * chance("nhs", again(row))).round();
    for (name, number) in [
        (
            "nhs_number",
            Box::new(move |row| ten_digits(row).to_string()) as Box<dyn Fn(usize) -> String>,
        ),
        (
            "ssn",
            Box::new(|row| format!("{:03}-55-{:04}", 100 + again(row), 37 * again(row) % 9999)),
        ),
        (
            "KVNR",
            Box::new(|row| format!("A{:09}", 1_000_003 * (1 + again(row)) % 999_999_937)),
        ),
        (
            "AHV",
            Box::new(|row| (7_560_000_000_000_u64 + 7_919 * again(row) as u64).to_string()),
        ),
        (
            "dossier",
            Box::new(|row| (again(row) * 37 % 71 + 100).to_string()),
        ),
        ("Fallnummer", Box::new(|row| (again(row) + 1).to_string())),
        (
            "IPP",
            Box::new(|row| format!("{:x}", 0x10_0000 + 40_503 * again(row))),
        ),
        ("z", Box::new(|row| (again(row) * 29 % 73).to_string())),
        (
            "legajo",
            Box::new(|row| (31_000 + 7_411 * again(row)).to_string()),
        ),
        (
            "ref.",
            Box::new(|row| format!("{:02}/{:05}", again(row) % 7, 313 * again(row))),
        ),
        (
            "Vorgang",
            Box::new(|row| {
                format!(
                    "{:08x}-{:04x}",
                    2_654_435_761_u64 * again(row) as u64 % 4_294_967_291,
                    again(row)
                )
            }),
        ),
        (
            "pesel",
            Box::new(|row| (50_010_100_000_u64 + 9_973 * (again(row) as u64)).to_string()),
        ),
        ("who", Box::new(|row| format!("x{}", again(row) * 17 % 79))),
    ] {
        let asked = TestTable::of_visits(420, again).with(name, number).asked();
        assert_eq!(asked, [name]);
    }
}

#[test]
fn a_number_in_runs_is_asked_about_where_nothing_else_repeats() {
    let of_row = |row: usize| {
        (10_000.0 + 80_000.0 * chance("number", row / 4))
            .round()
            .to_string()
    };
    let coin = |row: usize| u8::from(chance("toss", row) < 0.5).to_string();
    let lab = |row: usize| format!("{:.2}", chance("lab", row));
    let table = || TestTable::new(200).with("outcome", coin).with("lab", lab);
    assert_eq!(table().with("encounter", of_row).asked(), ["encounter"]);
    // The same sorted, or counted from 1 on, or as a text.
    let sorted = |row: usize| (7_000_000 + 12_345 * (row / 4)).to_string();
    assert_eq!(table().with("NIR", sorted).asked(), ["NIR"]);
    assert_eq!(
        table().with("n", |row| (row / 4 + 1).to_string()).asked(),
        ["n"]
    );
    assert_eq!(
        table()
            .with("stay", |row| format!("S{:05}", row / 4 * 17 % 997))
            .asked(),
        ["stay"]
    );
    // One of every row.
    assert_eq!(
        table().with("line", |row| (row + 1).to_string()).asked(),
        ["line"]
    );
    let each = |row: usize| (100_000 + 7_919 * row % 800_000).to_string();
    assert_eq!(table().with("visit", each).asked(), ["visit"]);
}

#[test]
fn what_is_measured_is_not_asked_about() {
    let risk = |row: usize| chance("risk", row);
    let table = TestTable::new(600)
        .with("outcome", |row| {
            u8::from(chance("die", row) < risk(row)).to_string()
        })
        .with("age", |row| format!("{:.0}", 20.0 + 70.0 * risk(row)))
        .with("platelets", |row| {
            format!("{:.0}", 150.0 + 300.0 * chance("plt", row))
        })
        .with("creatine kinase", |row| {
            format!("{:.0}", (9.0 * chance("ck", row)).exp())
        })
        .with("income", |row| {
            format!("{:.0}00", 200.0 + 900.0 * risk(row))
        })
        .with("weight", |row| {
            format!("{:.0}", 55.0 + 40.0 * (risk(row) + chance("kg", row)))
        })
        .with("sex", |row| {
            ["f", "m"][usize::from(chance("sex", row) < 0.5)].into()
        })
        .with("ward", |row| {
            format!("{}", 1 + (12.0 * chance("ward", row)) as usize)
        })
        .with("diagnosis", |row| {
            format!("I{:02}", (60.0 * chance("icd", row)) as usize)
        })
        .with("city", |row| {
            ["Bern", "Chur", "Genf"][(3.0 * chance("city", row)) as usize].into()
        })
        .with("year", |row| {
            format!("{:.0}", 2000.0 + 24.0 * chance("year", row))
        });
    assert_eq!(table.asked(), [""; 0]);
    // Sorted by what is measured.
    let sorted = TestTable::new(300)
        .with("outcome", |row| {
            u8::from(chance("x", row) < 0.5).to_string()
        })
        .with("age", |row| (18 + row / 4).to_string())
        .with("lab", |row| format!("{:.1}", chance("lab", row)));
    assert_eq!(sorted.asked(), [""; 0]);
}

#[test]
fn what_a_known_person_has_in_all_rows_is_not_asked_about() {
    let person = |row: usize| row / 5;
    let table = TestTable::of_visits(400, person).with("income", |row| {
        format!("{:.0}", 20_000.0 + 90_000.0 * chance("pay", person(row)))
    });
    assert_eq!(table.asked(), ["income"]);
    let groups: Vec<u32> = (0..400).map(|row| person(row) as u32).collect();
    assert_eq!(table.asked_beside(&groups), [""; 0]);
}
