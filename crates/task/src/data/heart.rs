//! UCI Heart Disease: four hospitals, as in Fed-Heart-Disease of FLamby (Ogier du Terrail et al.
//! 2022).

use std::path::Path;

use super::label::Rule;
use super::{
    ColumnsConfig, DataError, DataSet, Format, Incomplete, RawFile, RawRows, RowsConfig, RowsFile,
    SplitConfig,
};
use crate::schema::Schema;

/// Source of the files, with the hashes that identify the right ones.
pub(crate) const HINT: &str = "The four files are public: UCI Machine Learning Repository, dataset 45 \"Heart Disease\", \
archive.ics.uci.edu/dataset/45; put them into the folder heart_disease under the data folder, or let `rota data get heart` download them. Their SHA-256: \
processed.cleveland.data a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8, \
processed.hungarian.data d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796, \
processed.switzerland.data 834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314, \
processed.va.data e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f";

const HOSPITALS: [(&str, &str); 4] = [
    ("Cleveland", "processed.cleveland.data"),
    ("Hungary", "processed.hungarian.data"),
    ("Switzerland", "processed.switzerland.data"),
    ("Long Beach VA", "processed.va.data"),
];

/// FLamby's preprocessing: without slope, ca and thal, then without incomplete rows; chest pain
/// and resting ECG one-hot without their first level; ill where `num` is above 0. 740 patients,
/// 13 features.
pub fn heart_config() -> RowsConfig {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    let file = |(silo, file): (&str, &str)| RowsFile {
        path: Path::new("heart_disease").join(file),
        silo: Some(silo.to_owned()),
        part: None,
        names: Default::default(),
        format: None,
    };
    let levels = [
        ("cp", ["1", "2", "3", "4"].as_slice()),
        ("restecg", &["0", "1", "2"]),
    ];
    RowsConfig {
        files: HOSPITALS.map(file).to_vec(),
        silo_column: None,
        silo_rows: 0,
        pretend_silos: None,
        ignore: Vec::new(),
        format: Format {
            columns: Some(names(&[
                "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang",
                "oldpeak", "slope", "ca", "thal", "num",
            ])),
            missing: names(&["?"]),
            ..Format::default()
        },
        answers: Default::default(),
        columns: Some(ColumnsConfig {
            target: "num".into(),
            positive: Some(Rule::try_from("> 0".to_owned()).expect("this is a rule")),
            classes: None,
            unit: None,
            features: None,
            drop: names(&["slope", "ca", "thal"]),
            one_hot: names(&["cp", "restecg"]),
            levels: levels
                .map(|(name, levels)| (name.to_owned(), names(levels)))
                .into(),
            only: Vec::new(),
            subgroup: None,
            incomplete: Incomplete::Drop,
        }),
    }
}

/// Returns what the columns of the four files mean.
///
/// # Errors
/// [`DataError`], never: the description is complete.
pub fn heart_schema() -> Result<Schema, DataError> {
    let config = heart_config();
    let header = config.format.columns.clone().unwrap_or_default();
    let empty = RawFile {
        path: "processed.*.data".into(),
        header,
        rows: RawRows::default(),
        notes: Vec::new(),
        left_out: Vec::new(),
        unreadable: Vec::new(),
    };
    let columns = config
        .columns
        .as_ref()
        .expect("the files are described in short");
    columns.schema(&[empty], &[], std::slice::from_ref(&config.format))
}

/// The four hospitals, from `heart_disease/` under `folder`.
///
/// # Errors
/// [`DataError`], saying where the files can be had.
pub fn heart(folder: Option<&Path>) -> Result<DataSet, DataError> {
    let folder = folder.ok_or(DataError::NoFolder {
        source_name: "heart",
        hint: HINT,
    })?;
    heart_config()
        .read(None, Some(folder), &SplitConfig::default())
        .map_err(|error| match error {
            DataError::File { path, reason, .. } => DataError::File {
                path,
                reason,
                hint: format!(". {HINT}"),
            },
            other => other,
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::data::Target;

    #[test]
    fn without_a_folder_the_error_names_the_source_of_the_files() {
        let error = heart(None).unwrap_err().to_string();
        assert!(error.starts_with(
            "the heart data are read from files: give their folder with --data DIR or ROTA_DATA."
        ));
        let error = heart(Some(Path::new("/nowhere"))).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nowhere/heart_disease/processed.cleveland.data: "));
        assert!(error.contains("archive.ics.uci.edu/dataset/45") && error.contains("a74b7efa"));
    }

    #[test]
    fn counts_are_those_of_fed_heart_disease() {
        let Some(folder) = std::env::var_os("ROTA_DATA") else {
            crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
            return;
        };
        let data = heart(Some(Path::new(&folder))).unwrap();
        let rows: Vec<usize> = data.silos.iter().map(|(_, table)| table.len()).collect();
        assert_eq!(rows, [303, 261, 46, 130]);
        assert_eq!(
            data.silos[0].1.columns,
            [
                "age",
                "sex",
                "trestbps",
                "chol",
                "fbs",
                "thalach",
                "exang",
                "oldpeak",
                "cp=2",
                "cp=3",
                "cp=4",
                "restecg=1",
                "restecg=2"
            ]
        );
        let Target::Classes(classes) = &data.target else {
            panic!("two classes")
        };
        assert_eq!(classes, &["not num > 0", "num > 0"]);
        // 63-year-old man with typical angina (cp 1) and restecg 2, healthy.
        assert_eq!(
            data.silos[0].1.row(0),
            [
                63.0, 1.0, 145.0, 233.0, 1.0, 150.0, 0.0, 2.3, 0.0, 0.0, 0.0, 0.0, 1.0
            ]
        );
        let ill: Vec<f64> = data
            .silos
            .iter()
            .map(|(_, table)| table.target.iter().sum())
            .collect();
        assert_eq!(ill[0], 139.0);
    }
}
