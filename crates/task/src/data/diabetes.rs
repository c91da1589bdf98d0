//! The diabetes study of Efron et al. 2004 (Least Angle Regression), partitioned into hospitals by
//! age and sex.

use super::{DataError, DataSet, Table, Target};

/// The study, one patient per line: ten measurements, then the outcome. `data/README.md` beside it
/// names its source and licence.
const CSV: &str = include_str!("../../data/diabetes.csv");
/// Positions of two columns.
const AGE: usize = 0;
const SEX: usize = 1;

/// 442 patients with 10 measurements at baseline (age, sex, body mass index, blood pressure, six
/// blood serum values), each centred and scaled over the whole study; the target measures the
/// progression of the disease after a year, 25 to 346.
pub fn diabetes() -> Table {
    let mut lines = CSV.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let features = names.len() - 1;
    let mut table = Table::new(names[..features].iter().map(|&name| name.into()).collect());
    for line in lines {
        let cells = line.split(',').map(str::parse);
        let row: Result<Vec<f64>, _> = cells.collect();
        let row = row.expect("the embedded file holds numbers, as a test checks");
        table.push(&row[..features], row[features]);
    }
    table
}

/// The study as `silos` hospitals: bands of age with equal numbers of patients (but for equal
/// ages, which stay together) × the two sexes. Where `silos` is odd, the sex with more patients
/// has one band more. The file codes sex without saying which is which: A is the lower code.
///
/// # Errors
/// [`DataError::TooManySilos`] where a band would be empty; [`DataError::Config`] for 0.
pub fn diabetes_silos(silos: usize) -> Result<DataSet, DataError> {
    if silos == 0 {
        return Err(DataError::Config(
            "a federation needs at least one silo".into(),
        ));
    }
    let table = diabetes();
    let too_many = || DataError::TooManySilos {
        asked: silos,
        source_name: "diabetes",
        has: "58 different ages only, so that an age band is empty: ask for fewer".into(),
    };
    if silos > table.len() {
        return Err(too_many());
    }
    let mut ages: Vec<f64> = (0..table.len()).map(|row| table.row(row)[AGE]).collect();
    ages.sort_by(f64::total_cmp);
    let bands = [silos.div_ceil(2), silos / 2];
    let mut tables = vec![Table::new(table.columns.clone()); silos];
    for row in 0..table.len() {
        let values = table.row(row);
        let sex = usize::from(values[SEX] > 0.0 && silos > 1);
        let younger = ages.partition_point(|&age| age < values[AGE]);
        let band = younger * bands[sex] / table.len();
        tables[sex * bands[0] + band].push(values, table.target[row]);
    }
    if tables.iter().any(Table::is_empty) {
        return Err(too_many());
    }
    let name = |silo: usize| {
        let sex = usize::from(silo >= bands[0]);
        let (band, of) = (silo - sex * bands[0] + 1, bands[sex]);
        let age = match of {
            1 => "all ages".to_owned(),
            _ if bands == [4, 4] => format!("age Q{band}"),
            _ => format!("age {band}/{of}"),
        };
        if silos == 1 {
            "all patients".into()
        } else {
            format!("{age} · sex {}", ["A", "B"][sex])
        }
    };
    Ok(DataSet {
        target: Target::Number {
            unit: "points of disease progression".into(),
        },
        silos: tables
            .into_iter()
            .enumerate()
            .map(|(silo, table)| (name(silo), table))
            .collect(),
        schema: None,
        notes: Vec::new(),
        subgroups: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_study_is_complete_and_standardised() {
        let table = diabetes();
        assert_eq!((table.len(), table.columns.len()), (442, 10));
        assert_eq!(table.target.iter().sum::<f64>(), 67243.0);
        for column in 0..10 {
            let values = (0..442).map(|row| table.row(row)[column]);
            assert!(values.clone().sum::<f64>().abs() < 1e-9);
            assert!((values.map(|value| value * value).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn eight_hospitals_are_quartiles_of_age_by_sex() {
        let data = diabetes_silos(8).unwrap();
        let sizes: Vec<_> = data
            .silos
            .iter()
            .map(|(name, t)| (name.as_str(), t.len()))
            .collect();
        assert_eq!(
            sizes,
            [
                ("age Q1 · sex A", 69),
                ("age Q2 · sex A", 69),
                ("age Q3 · sex A", 54),
                ("age Q4 · sex A", 43),
                ("age Q1 · sex B", 42),
                ("age Q2 · sex B", 47),
                ("age Q3 · sex B", 58),
                ("age Q4 · sex B", 60),
            ]
        );
    }

    #[test]
    fn other_numbers_of_hospitals_hold_all_patients() {
        for silos in [1, 2, 3, 5, 12, 20] {
            let data = diabetes_silos(silos).unwrap();
            assert_eq!(data.silos.len(), silos);
            assert_eq!(
                data.silos
                    .iter()
                    .map(|(_, table)| table.len())
                    .sum::<usize>(),
                442
            );
            let names: std::collections::BTreeSet<_> = data.silos.iter().map(|(n, _)| n).collect();
            assert_eq!(names.len(), silos);
        }
        for silos in [400, usize::MAX] {
            let error = diabetes_silos(silos).unwrap_err().to_string();
            assert!(error.starts_with(&format!(
                "{silos} silos were asked for, but the diabetes data have 58 "
            )));
        }
    }

    #[test]
    fn names_are_alike_where_the_sexes_have_unequal_bands() {
        let names: Vec<_> = diabetes_silos(9).unwrap().silos;
        let names: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "age 1/5 · sex A");
        assert_eq!(names[8], "age 4/4 · sex B");
    }
}
