//! The data of the known answers, from the folder `ROTA_DATA`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::agreed;
use crate::AgreedColumns;
use crate::table::RowTable;

fn folder() -> Option<PathBuf> {
    let data = std::env::var_os("ROTA_DATA");
    if data.is_none() {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
    }
    data.map(PathBuf::from)
}

/// The 854 complete rows of four hospitals: seven prepared columns and the raw ones that the questions need.
/// `None` without the data.
pub(super) fn heart() -> Option<Vec<RowTable>> {
    let folder = folder()?.join("heart_disease");
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("processed.{name}.data"))).unwrap();
        let rows = text.lines().map(|line| {
            line.split(',')
                .map(|cell| cell.trim().parse().ok())
                .collect::<Vec<Option<f64>>>()
        });
        let complete = rows.filter(|row| row.len() == 14).filter_map(|row| {
            let used = [0, 1, 2, 3, 7, 8, 9, 13].map(|at: usize| row[at]);
            used.into_iter().collect::<Option<Vec<f64>>>()
        });
        let rows: Vec<Vec<f64>> = complete.collect();
        let column =
            |of: &dyn Fn(&[f64]) -> f64| rows.iter().map(|row| of(row)).collect::<Vec<f64>>();
        RowTable::new(rows.len())
            .with("age10", &column(&|r| (r[0] - 55.0) / 10.0))
            .with("sex", &column(&|r| r[1]))
            .with("cp", &column(&|r| r[2]))
            .with("trestbps20", &column(&|r| (r[3] - 130.0) / 20.0))
            .with("thalach25", &column(&|r| (r[4] - 140.0) / 25.0))
            .with("thalach", &column(&|r| r[4]))
            .with("exang", &column(&|r| r[5]))
            .with("oldpeak", &column(&|r| r[6]))
            .with("count", &column(&|r| r[6].max(0.0).round_ties_even()))
            .with("exposure", &column(&|r| libm::log(r[0] / 50.0)))
            .with("num", &column(&|r| r[7]))
    };
    Some(
        ["cleveland", "hungarian", "switzerland", "va"]
            .map(read)
            .into(),
    )
}

/// The ranges of its columns.
pub(super) fn heart_ranges() -> AgreedColumns {
    let ranges = [
        ("age10", [-6.0, 6.0]),
        ("trestbps20", [-8.0, 8.0]),
        ("thalach25", [-8.0, 8.0]),
        ("thalach", [0.0, 300.0]),
        ("oldpeak", [-10.0, 10.0]),
    ];
    agreed(&ranges, &[])
}

/// Six regions of breast cancer patients: the columns of the known answers. `None` without the data.
pub(super) fn tcga() -> Option<Vec<RowTable>> {
    let text = std::fs::read_to_string(folder()?.join("tcga_brca/tcga_brca.csv")).unwrap();
    let mut lines = text.lines();
    let names = cells(lines.next().unwrap());
    let mut regions: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for line in lines {
        let row = cells(line);
        let number = |name: &str| {
            let at = names.iter().position(|other| other == name);
            row[at.unwrap_or_else(|| panic!("{name} in {names:?}"))]
                .parse::<f64>()
                .unwrap()
        };
        let days = number("days");
        let values = vec![
            (number("age_at_index") - 58.0) / 10.0,
            number("race_black or african american"),
            number("prior_malignancy_yes"),
            number("treatment_or_therapy_yes"),
            number("primary_diagnosis_Lobular carcinoma, NOS"),
            number("ajcc_pathologic_n_N1a"),
            days,
            (days.max(0.0) / 30.4375).ceil(),
            number("event"),
        ];
        regions.entry(row[0].clone()).or_default().push(values);
    }
    let names = [
        "age",
        "black",
        "prior",
        "treatment",
        "lobular",
        "n1a",
        "days",
        "months",
        "event",
    ];
    let table = |rows: &Vec<Vec<f64>>| {
        let empty = RowTable::new(rows.len());
        names.iter().enumerate().fold(empty, |table, (at, name)| {
            let column: Vec<f64> = rows.iter().map(|row| row[at]).collect();
            table.with(name, &column)
        })
    };
    Some(regions.values().map(table).collect())
}

/// The cells of a line, of which some are quoted.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(letter),
        }
    }
    cells
}
