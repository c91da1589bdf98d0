//! Hospital mortality from drugs on the eICU demo: the task of TFL (Ma et al. 2024, Table 2) in small.

use crate::data::RawFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::eicu::{Eicu, HospitalTables, hours, started_within};
use super::{DataError, DataSet, Table, Target, number};

/// What stands for a drug.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DrugEncoding {
    /// Its name as the hospital wrote it: 1,364 names in the first 48 hours of all stays.
    #[default]
    Name,
    /// Its number in the common list of ingredients, `drughiclseqno`: 812 of them.
    Hiclseqno,
}

/// Which stays and drugs of the eICU demo serve to predict hospital mortality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EicuMortalityConfig {
    /// What stands for a drug. Default `"name"`.
    pub encoding: DrugEncoding,
    /// Fewest rows of a hospital. Default 10, a guess.
    #[schemars(extend("x-unit" = "rows"))]
    pub least_rows: usize,
    /// Fewest stays in which a drug must have been given to be a feature. Default 1: all drugs.
    #[schemars(extend("x-unit" = "stays"))]
    pub least_stays: usize,
    /// True if hospitals whose region is not known take part, too. Default false.
    pub no_region: bool,
}

impl Default for EicuMortalityConfig {
    fn default() -> Self {
        Self {
            encoding: DrugEncoding::Name,
            least_rows: 10,
            least_stays: 1,
            no_region: false,
        }
    }
}

/// Group of the hospitals without a region.
const NO_REGION: &str = "no region";

/// Hospitals of the eICU demo, from `eicu_demo/` under `folder`: whether a patient dies in the
/// hospital, from which drugs were started in the first 48 hours of the stay, 0 or 1 for each. Stays
/// without any drug, or whose end is not known, are left out. A hospital's group is its region:
/// Midwest, Northeast, South or West.
///
/// # Errors
/// [`DataError`], saying where the files can be had; no hospital with enough rows.
pub fn eicu_mortality(
    config: EicuMortalityConfig,
    folder: Option<&Path>,
) -> Result<DataSet, DataError> {
    let eicu = Eicu::new("eicu-mortality", folder);
    let (patients, medicines) = (eicu.table("patient")?, eicu.table("medication")?);
    let regions = eicu.regions()?;
    let column = match config.encoding {
        DrugEncoding::Name => "drugname",
        DrugEncoding::Hiclseqno => "drughiclseqno",
    };
    let given = drugs_of(&medicines, column)?;
    let drugs = frequent(&given, config.least_stays)?;
    let places: BTreeMap<&str, usize> = drugs
        .iter()
        .enumerate()
        .map(|(at, &drug)| (drug, at))
        .collect();
    let names: Vec<String> = drugs
        .iter()
        .map(|drug| match config.encoding {
            DrugEncoding::Name => (*drug).to_owned(),
            DrugEncoding::Hiclseqno => format!("drug {drug}"),
        })
        .collect();
    let mut hospitals = HospitalTables::default();
    let (mut known, mut without_drug, mut without_region) = (0, 0, 0);
    for [stay, hospital, status] in
        patients.cells(["patientunitstayid", "hospitalid", "hospitaldischargestatus"])?
    {
        let died = match status {
            "Expired" => 1.0,
            "Alive" => 0.0,
            _ => continue,
        };
        known += 1;
        let region = regions.get(hospital).map(String::as_str);
        let Some(drugs) = given.get(stay) else {
            without_drug += 1;
            continue;
        };
        if region.is_none() && !config.no_region {
            without_region += 1;
            continue;
        }
        let mut row = vec![0.0; names.len()];
        for place in drugs.iter().filter_map(|drug| places.get(drug)) {
            row[*place] = 1.0;
        }
        let table = hospitals.table(hospital, || {
            let mut table = Table::new(names.clone());
            table.group = Some(region.unwrap_or(NO_REGION).to_owned());
            table
        });
        table.push(&row, died);
    }
    let silos = hospitals.with_rows(config.least_rows);
    if silos.is_empty() {
        return Err(DataError::Config(format!(
            "`eicu-mortality`: no hospital has {} rows: choose a smaller `least-rows`",
            config.least_rows
        )));
    }
    Ok(DataSet {
        target: Target::Classes(vec!["alive".into(), "expired".into()]),
        silos,
        schema: None,
        notes: vec![format!(
            "of {known} stays with a known end, {without_drug} without a drug in the first 48 hours \
             and {without_region} in hospitals without a known region are left out"
        )],
        subgroups: Vec::new(),
    })
}

/// The drugs of every stay, by its id, that were given in its first 48 hours.
fn drugs_of<'a>(
    medicines: &'a RawFile,
    column: &'a str,
) -> Result<BTreeMap<&'a str, BTreeSet<&'a str>>, DataError> {
    let mut given = BTreeMap::<&str, BTreeSet<&str>>::new();
    for [stay, offset, drug] in medicines.cells(["patientunitstayid", "drugstartoffset", column])? {
        if !drug.is_empty() && started_within(offset, hours(48)) {
            given.entry(stay).or_default().insert(drug);
        }
    }
    Ok(given)
}

/// The drugs that were given in at least so many stays: numbers by their size, names by the alphabet.
fn frequent<'a>(
    given: &BTreeMap<&str, BTreeSet<&'a str>>,
    least_stays: usize,
) -> Result<Vec<&'a str>, DataError> {
    let mut stays = BTreeMap::<&str, usize>::new();
    for &drug in given.values().flatten() {
        *stays.entry(drug).or_default() += 1;
    }
    stays.retain(|_, count| *count >= least_stays);
    let mut drugs: Vec<&str> = stays.into_keys().collect();
    drugs.sort_by(|a, b| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    });
    if drugs.is_empty() {
        return Err(DataError::Config(format!(
            "`eicu-mortality`: no drug was given in {least_stays} stays: choose a smaller `least-stays`"
        )));
    }
    Ok(drugs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Rows, deaths and hospitals by group.
    fn counts(data: &DataSet) -> BTreeMap<&str, (usize, usize, usize)> {
        let mut counts = BTreeMap::<&str, (usize, usize, usize)>::new();
        for (_, table) in &data.silos {
            let of = counts.entry(table.group.as_deref().unwrap()).or_default();
            of.0 += table.len();
            of.1 += table.target.iter().sum::<f64>() as usize;
            of.2 += 1;
        }
        counts
    }

    #[test]
    fn counts_are_those_of_the_files_in_both_encodings() {
        let Some(folder) = std::env::var_os("ROTA_DATA") else {
            crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
            return;
        };
        let folder = Path::new(&folder);
        let patients = Eicu::new("eicu-mortality", Some(folder))
            .table("patient")
            .unwrap();
        let ends = patients.cells(["hospitaldischargestatus"]).unwrap();
        let ends: Vec<&str> = ends.map(|[end]| end).collect();
        let deaths = ends.iter().filter(|end| **end == "Expired").count();
        let known = ends.iter().filter(|end| !end.is_empty()).count();
        assert_eq!((ends.len(), known, deaths), (2520, 2492, 212));
        let read = |encoding, least_rows| {
            let config = EicuMortalityConfig {
                encoding,
                least_rows,
                no_region: true,
                ..EicuMortalityConfig::default()
            };
            eicu_mortality(config, Some(folder)).unwrap()
        };
        let names = read(DrugEncoding::Name, 1);
        assert_eq!(names.silos[0].1.columns.len(), 1364);
        let expected = [
            ("Midwest", (697, 49, 58)),
            ("Northeast", (128, 16, 12)),
            ("South", (456, 46, 41)),
            ("West", (309, 33, 19)),
            (NO_REGION, (92, 8, 8)),
        ];
        assert_eq!(counts(&names), expected.into());
        let numbers = read(DrugEncoding::Hiclseqno, 10);
        assert_eq!(numbers.silos[0].1.columns.len(), 812);
        let expected = [
            ("Midwest", (609, 39, 49)),
            ("Northeast", (140, 19, 12)),
            ("South", (446, 45, 34)),
            ("West", (313, 32, 19)),
            (NO_REGION, (115, 10, 10)),
        ];
        assert_eq!(counts(&numbers), expected.into());
        assert!(
            names.silos[0]
                .1
                .values
                .iter()
                .all(|&value| value == 0.0 || value == 1.0)
        );
        let usual = eicu_mortality(EicuMortalityConfig::default(), Some(folder)).unwrap();
        assert!(!counts(&usual).contains_key(NO_REGION));
        assert!(usual.notes[0].starts_with("of 2492 stays with a known end, 810 without a drug"));
    }
}
