//! The group of a row, from its column.

use super::*;

const VISITS: &str =
    "patient,age,y\nrosa,1,10\nrosa,2,20\nemil,3,30\n007,4,40\n7,5,50\nrosa,6,60\n";

fn read(folder: &Folder, config: &str, split: &str) -> Result<DataSet, DataError> {
    let split: SplitConfig = toml::from_str(split).unwrap();
    let config: RowsConfig = toml::from_str(config).unwrap();
    config.read(None, Some(&folder.0), &split)
}

#[test]
fn a_group_is_no_feature_and_becomes_a_meaningless_number() {
    let folder = Folder::with(&[("a.csv", VISITS)]);
    let data = read(&folder, A, "group = 'patient'").unwrap();
    let table = &data.silos[0].1;
    assert_eq!(table.columns, ["age"]);
    assert_eq!(table.groups, [0, 0, 1, 2, 3, 0]);
    let all = format!("{data:?}");
    for id in ["rosa", "emil", "007"] {
        assert!(!all.contains(id), "{all}");
    }
}

#[test]
fn a_missing_group_and_a_group_as_a_feature_are_refused_by_line() {
    let folder = Folder::with(&[("a.csv", &VISITS.replace("emil", "NA"))]);
    let error = read(&folder, A, "group = 'patient'")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("line 4: column \"patient\" holds \"NA\", but the group"),
        "{error}"
    );
    let folder = Folder::with(&[("a.csv", VISITS)]);
    let error = read(&folder, A, "group = 'person'")
        .unwrap_err()
        .to_string();
    assert!(error.contains("there is no column \"person\""), "{error}");
    let feature = format!("{A}features = ['age', 'patient']\n");
    let feature = read(&folder, &feature, "group = 'patient'")
        .unwrap_err()
        .to_string();
    assert!(
        feature.contains("`group = \"patient\"` is a feature in the schema, too"),
        "{feature}"
    );
    let target = read(&folder, A, "group = 'y'").unwrap_err().to_string();
    assert!(
        target.contains("is the target in the schema, too"),
        "{target}"
    );
}

#[test]
fn synthetic_silos_share_no_patient_and_files_of_one_silo_do() {
    let folder = Folder::with(&[("a.csv", VISITS)]);
    let dealt = A.replace("[columns]", "split-into = 2\n[columns]");
    let data = read(&folder, &dealt, "group = 'patient'").unwrap();
    let sizes: Vec<usize> = data.silos.iter().map(|(_, table)| table.len()).collect();
    assert_eq!(sizes, [4, 2], "rosa and 007; emil and 7");
    let both = "files = [{ path = 'a.csv', silo = 's' }, { path = 'b.csv', silo = 's' }]\n\
                [columns]\ntarget = 'y'\n";
    let more = "patient,age,y\nemil,7,70\nada,8,80\n";
    let folder = Folder::with(&[("a.csv", VISITS), ("b.csv", more)]);
    let data = read(&folder, both, "group = 'patient'").unwrap();
    assert_eq!(data.silos[0].1.groups, [0, 0, 1, 2, 3, 0, 1, 4]);
}

#[test]
fn a_file_may_call_the_column_of_the_group_by_another_name() {
    let folder = Folder::with(&[("a.csv", &VISITS.replace("patient", "Pat.-Nr."))]);
    let schema: Schema =
        toml::from_str("min-rows = 2\ntarget = { name = 'y' }\nfeature = [{ name = 'age' }]")
            .unwrap();
    let read = |names: &str| {
        let config = format!("files = [{{ path = 'a.csv', names = {names} }}]");
        let config: RowsConfig = toml::from_str(&config).unwrap();
        let split: SplitConfig = toml::from_str("group = 'patient'").unwrap();
        config.read(Some(&schema), Some(&folder.0), &split)
    };
    let data = read("{ columns = { patient = 'Pat.-Nr.' } }").unwrap();
    assert_eq!(data.silos[0].1.groups, [0, 0, 1, 2, 3, 0]);
    let error = |names: &str| read(names).unwrap_err().to_string();
    let none = error("{ ignore = ['Pat.-Nr.'] }");
    assert!(none.contains("there is no column \"patient\""), "{none}");
    let mistyped = error("{ columns = { patiemt = 'Pat.-Nr.' } }");
    assert!(
        mistyped.contains(
            "\"patiemt\" stands in `columns` or `codes`, but the schema has no such column"
        ),
        "{mistyped}"
    );
}
