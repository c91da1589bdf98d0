//! The Breast Cancer Wisconsin (Diagnostic) data of Street, Wolberg and Mangasarian 1993, dealt to clinics.

use super::{DataError, DataSet, Table, Target};

/// One patient per line: thirty numbers, then the diagnosis. `data/README.md` beside it names its source and
/// licence.
const CSV: &str = include_str!("../../data/breast_cancer.csv");
/// The diagnoses; the second one counts as positive.
const CLASSES: [&str; 2] = ["benign", "malignant"];

/// 569 patients of one hospital with 30 numbers each, measured on an image of cell nuclei (mean, standard error
/// and largest of ten shapes); the target is the diagnosis, 357 times benign and 212 times malignant.
pub fn breast_cancer() -> Table {
    let mut lines = CSV.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let features = names.len() - 1;
    let mut table = Table::new(names[..features].iter().map(|&name| name.into()).collect());
    for line in lines {
        let (numbers, diagnosis) = line.rsplit_once(',').unwrap_or_default();
        let row: Result<Vec<f64>, _> = numbers.split(',').map(str::parse).collect();
        let class = CLASSES.iter().position(|class| *class == diagnosis);
        let invariant = "the embedded file holds numbers and diagnoses, as a test checks";
        table.push(&row.expect(invariant), class.expect(invariant) as f64);
    }
    table
}

/// The patients as `silos` clinics that are alike: one after the other is dealt to the next clinic, in the order
/// of the file.
///
/// # Errors
/// [`DataError::TooManySilos`] for more clinics than patients; [`DataError::Config`] for 0.
pub fn breast_cancer_silos(silos: usize) -> Result<DataSet, DataError> {
    if silos == 0 {
        return Err(DataError::Config(
            "a federation needs at least one silo".into(),
        ));
    }
    let table = breast_cancer();
    if silos > table.len() {
        return Err(DataError::TooManySilos {
            asked: silos,
            source_name: "breast-cancer",
            has: format!("{} patients", table.len()),
        });
    }
    let mut tables = vec![Table::new(table.columns.clone()); silos];
    for row in 0..table.len() {
        tables[row % silos].push(table.row(row), table.target[row]);
    }
    let named = |(at, table): (usize, Table)| (format!("clinic {}", at + 1), table);
    Ok(DataSet {
        target: Target::Classes(CLASSES.map(str::to_owned).to_vec()),
        silos: tables.into_iter().enumerate().map(named).collect(),
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
    fn the_data_are_complete() {
        let table = breast_cancer();
        assert_eq!((table.len(), table.columns.len()), (569, 30));
        assert_eq!(table.target.iter().sum::<f64>(), 212.0);
        assert_eq!(table.columns[0], "mean_radius");
        assert_eq!((table.row(0)[0], table.target[0]), (17.99, 1.0));
        assert!(table.values.iter().all(|value| value.is_finite()));
    }

    #[test]
    fn patients_are_dealt_to_clinics_in_turn() {
        for silos in [1, 2, 10, 569] {
            let data = breast_cancer_silos(silos).unwrap();
            let sizes: Vec<usize> = data.silos.iter().map(|(_, table)| table.len()).collect();
            assert_eq!((sizes.len(), sizes.iter().sum()), (silos, 569));
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
        let ten = breast_cancer_silos(10).unwrap();
        assert_eq!(ten.silos[9].0, "clinic 10");
        assert_eq!(ten.silos[1].1.row(0), breast_cancer().row(1));
        for silos in [0, 570, usize::MAX] {
            assert!(breast_cancer_silos(silos).is_err());
        }
    }
}
