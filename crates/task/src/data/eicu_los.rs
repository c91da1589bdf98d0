//! Length of stay in intensive care on the eICU demo, as in CS-RCFL's case study (Konti et al. 2024).

use crate::data::RawFile;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::eicu::{Eicu, HospitalTables, hours, started_within};
use super::{DataError, DataSet, Table, Target, number};
use crate::random::{shuffle, stream};

/// The six features with the constants by which all hospitals scale them: roughly mean and deviation
/// over the 1,776 stays.
const FEATURES: [(&str, f64, f64); 6] = [
    ("male", 0.607, 0.488),
    ("caucasian", 0.791, 0.407),
    ("age", 63.0, 17.8),
    ("medicines in 24 h", 11.6, 11.5),
    ("heart rate", 101.0, 31.7),
    ("apache score", 53.3, 24.3),
];

/// A column of the patients whose values are subgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EicuSubgroup {
    /// Female and male.
    Gender,
    /// The six ethnicities of the database.
    Ethnicity,
}

/// Which hospitals of the eICU demo take part in the prediction of the length of stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EicuLosConfig {
    /// Number of hospitals, drawn by the seed from those with enough rows; 0: all of them. Default 20
    /// (CS-RCFL).
    #[schemars(extend("x-unit" = "hospitals"))]
    pub hospitals: usize,
    /// Fewest rows of a hospital. Default 10 (CS-RCFL).
    #[schemars(extend("x-unit" = "rows"))]
    pub least_rows: usize,
    /// Subgroups of the patients, by which reports can measure. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subgroup: Option<EicuSubgroup>,
}

impl Default for EicuLosConfig {
    fn default() -> Self {
        Self {
            hospitals: 20,
            least_rows: 10,
            subgroup: None,
        }
    }
}

/// Names of the features.
pub fn eicu_los_columns() -> Vec<String> {
    FEATURES.map(|(name, ..)| name.to_owned()).to_vec()
}

/// The target.
pub fn eicu_los_target() -> Target {
    Target::Classes(vec!["1 day or less".into(), "more than 1 day".into()])
}

/// Hospitals of the eICU demo, from `eicu_demo/` under `folder`: whether a stay in intensive care lasts
/// more than a day, from gender, ethnicity (Caucasian or not), age (90 for "> 89"), the number of
/// medicines started in the first 24 hours, heart rate and APACHE score. Stays without one of these are
/// left out, which leaves 1,776 in 173 hospitals. The features of all hospitals are scaled by the
/// same constants.
///
/// # Errors
/// [`DataError`], saying where the files can be had; fewer hospitals than asked for.
pub fn eicu_los(
    config: EicuLosConfig,
    folder: Option<&Path>,
    seed: u64,
) -> Result<DataSet, DataError> {
    let eicu = Eicu::new("eicu-los", folder);
    let (patients, medicines) = (eicu.table("patient")?, eicu.table("medication")?);
    let (results, measurements) = (
        eicu.table("apachepatientresult")?,
        eicu.table("apacheapsvar")?,
    );
    let regions = eicu.regions()?;
    let scores = measured(&results, "apachescore")?;
    let heart_rates = measured(&measurements, "heartrate")?;
    let counts = medicines_of(&medicines)?;
    let mut hospitals = HospitalTables::default();
    let mut subgroups: Vec<String> = Vec::new();
    let (mut all, mut used) = (0, 0);
    for [stay, hospital, gender, ethnicity, age, left] in patients.cells(COLUMNS)? {
        all += 1;
        let age = match age {
            "> 89" => Some(90.0),
            other => known(other),
        };
        let of = |map: &BTreeMap<&str, Option<f64>>| map.get(stay).copied().flatten();
        let complete = !ethnicity.is_empty() && ["Female", "Male"].contains(&gender);
        let (Some(age), Some(rate), Some(score), Some(left), true) =
            (age, of(&heart_rates), of(&scores), number(left), complete)
        else {
            continue;
        };
        used += 1;
        let values = [
            f64::from(u8::from(gender == "Male")),
            f64::from(u8::from(ethnicity == "Caucasian")),
            age,
            f64::from(counts.get(stay).copied().unwrap_or(0)),
            rate,
            score,
        ];
        let mut scaled = values;
        for (value, (_, mean, deviation)) in scaled.iter_mut().zip(FEATURES) {
            *value = (*value - mean) / deviation;
        }
        let table = hospitals.table(hospital, || {
            let mut table = Table::new(eicu_los_columns());
            table.group = regions.get(hospital).cloned();
            table
        });
        table.push(&scaled, f64::from(u8::from(left > hours(24))));
        let subgroup = config.subgroup.map(|of| match of {
            EicuSubgroup::Gender => gender,
            EicuSubgroup::Ethnicity => ethnicity,
        });
        if let Some(subgroup) = subgroup {
            table
                .subgroups
                .push(place_of(&mut subgroups, subgroup) as u16);
        }
    }
    let silos = hospitals.with_rows(config.least_rows);
    let found = silos.len();
    let silos = drawn(silos, config, seed)?;
    Ok(DataSet {
        target: eicu_los_target(),
        notes: vec![format!(
            "{used} of {all} stays have all six features; {} of {found} hospitals with at least {} rows",
            silos.len(),
            config.least_rows
        )],
        silos,
        schema: None,
        subgroups,
    })
}

/// A number; negative ones stand for what was not measured.
fn known(text: &str) -> Option<f64> {
    number(text).filter(|value| *value >= 0.0)
}

/// Returns what was measured of every stay, by its id.
fn measured<'a>(
    table: &'a RawFile,
    column: &'a str,
) -> Result<BTreeMap<&'a str, Option<f64>>, DataError> {
    let cells = table.cells(["patientunitstayid", column])?;
    Ok(cells.map(|[stay, value]| (stay, known(value))).collect())
}

/// Columns that are read of every stay.
const COLUMNS: [&str; 6] = [
    "patientunitstayid",
    "hospitalid",
    "gender",
    "ethnicity",
    "age",
    "unitdischargeoffset",
];

/// Returns the number of medicines that every stay began in its first day, by its id.
fn medicines_of(medicines: &RawFile) -> Result<BTreeMap<&str, u32>, DataError> {
    let mut counts = BTreeMap::<&str, u32>::new();
    for [stay, offset] in medicines.cells(["patientunitstayid", "drugstartoffset"])? {
        if started_within(offset, hours(24)) {
            *counts.entry(stay).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The position of a name in a list, to which it is added where it is new.
fn place_of(names: &mut Vec<String>, name: &str) -> usize {
    let at = names.iter().position(|own| own == name);
    at.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// As many hospitals as are asked for, drawn by the seed; all of them where no number is.
fn drawn(
    mut silos: Vec<(String, Table)>,
    config: EicuLosConfig,
    seed: u64,
) -> Result<Vec<(String, Table)>, DataError> {
    let found = silos.len();
    if config.hospitals > found {
        return Err(DataError::TooManySilos {
            asked: config.hospitals,
            source_name: "eicu-los",
            has: format!("{found} with at least {} rows", config.least_rows),
        });
    }
    if config.hospitals > 0 {
        let mut order: Vec<usize> = (0..found).collect();
        shuffle(&mut stream(seed, "eicu-los hospitals"), &mut order);
        let mut kept = vec![false; found];
        order[..config.hospitals]
            .iter()
            .for_each(|&at| kept[at] = true);
        let mut kept = kept.into_iter();
        silos.retain(|_| kept.next().unwrap_or(false));
    }
    Ok(silos)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn without_the_files_the_error_states_where_they_can_be_had() {
        let none = eicu_los(EicuLosConfig::default(), None, 1).unwrap_err();
        let none = none.to_string();
        assert!(
            none.starts_with("the eicu-los data are read from files"),
            "{none}"
        );
        assert!(
            none.contains("physionet.org") && none.contains("a719233f"),
            "{none}"
        );
    }

    #[test]
    fn counts_are_those_of_the_case_study() {
        let Some(folder) = std::env::var_os("ROTA_DATA") else {
            crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
            return;
        };
        let folder = Path::new(&folder);
        let read = |hospitals, least_rows, seed| {
            let subgroup = Some(EicuSubgroup::Gender);
            let config = EicuLosConfig {
                hospitals,
                least_rows,
                subgroup,
            };
            eicu_los(config, Some(folder), seed).unwrap()
        };
        let all = read(0, 1, 0);
        let rows: usize = all.silos.iter().map(|(_, table)| table.len()).sum();
        assert_eq!((all.silos.len(), rows), (173, 1776));
        let long: f64 = all.silos.iter().flat_map(|(_, table)| &table.target).sum();
        assert_eq!(long, 1282.0, "a share of .722");
        // The constants leave every column with about mean 0 and deviation 1.
        for column in 0..6 {
            let tables = || all.silos.iter().map(|(_, table)| table);
            let values =
                tables().flat_map(|table| (0..table.len()).map(|row| table.row(row)[column]));
            let moments = super::super::Moments::of(values);
            assert!(moments.mean.abs() < 0.01, "{column}: {}", moments.mean);
            assert!((moments.deviation() - 1.0).abs() < 0.01, "{column}");
        }
        let men: usize = all
            .silos
            .iter()
            .flat_map(|(_, table)| &table.subgroups)
            .filter(|at| all.subgroups[usize::from(**at)] == "Male")
            .count();
        assert_eq!((all.subgroups.len(), men), (2, 1078));
        assert_eq!(read(0, 10, 0).silos.len(), 115);
        let names = |seed| -> Vec<String> {
            let drawn = read(20, 10, seed);
            assert!(drawn.silos.iter().all(|(_, table)| table.len() >= 10));
            drawn.silos.into_iter().map(|(name, _)| name).collect()
        };
        let first = names(1);
        assert_eq!((first.len(), &first), (20, &names(1)));
        assert_ne!(first, names(2));
        let many = EicuLosConfig {
            hospitals: 116,
            ..EicuLosConfig::default()
        };
        let error = eicu_los(many, Some(folder), 1).unwrap_err().to_string();
        assert!(error.ends_with("have 115 with at least 10 rows"), "{error}");
    }
}
