//! Parts, times and subgroups of rows, from columns and files to the rows of silos.

use super::*;

const ROWS: &str = "x,sex,on,part,y\n1,f,2024-03-01,train,10\n2,m,2024-01-01,Test,20\n\
                    3,f,2024-02-01,validation,30\n4,,2024-04-01 06:00,train,40\n";

fn read(folder: &Folder, config: &str, split: &str) -> Result<DataSet, String> {
    let split: SplitConfig = toml::from_str(split).unwrap();
    let config: RowsConfig = toml::from_str(config).unwrap();
    let read = config.read(None, Some(&folder.0), &split);
    read.map_err(|error| {
        error
            .to_string()
            .replace(&format!("{}/", folder.0.display()), "")
    })
}

#[test]
fn a_column_gives_the_part_of_every_row_and_is_no_feature() {
    let folder = Folder::with(&[("a.csv", ROWS)]);
    let drop = "drop = ['sex', 'on']";
    let data = read(&folder, &format!("{A}{drop}"), "column = 'part'").unwrap();
    let table = &data.silos[0].1;
    assert_eq!(table.columns, ["x"]);
    let (train, validation, test) = (Split::Train, Split::Validation, Split::Test);
    assert_eq!(table.parts, [train, test, validation, train]);
    let all = "drop = ['sex', 'on', 'part']";
    let error = read(&folder, &format!("{A}{all}"), "column = 'sex'").unwrap_err();
    assert!(
        error.starts_with(
            "a.csv, line 2: column \"sex\" holds \"f\", but train, validation or test"
        ),
        "{error}"
    );
    let error = read(&folder, &format!("{A}{drop}"), "column = 'fold'").unwrap_err();
    assert!(error.contains("there is no column \"fold\""), "{error}");
}

#[test]
fn files_give_the_part_of_their_rows() {
    let folder = Folder::with(&[
        ("a.csv", "x,z,y\n1,0,10\n2,0,20\n"),
        ("b.csv", "x,z,y\n3,0,30\n"),
    ]);
    let files = |second: &str| {
        format!(
            "files = [{{ path = 'a.csv', silo = 'Bern', part = 'train' }}, \
             {{ path = 'b.csv', silo = 'Bern'{second} }}]\n[columns]\ntarget = 'y'"
        )
    };
    let data = read(&folder, &files(", part = 'test'"), "").unwrap();
    assert_eq!(data.silos.len(), 1);
    assert_eq!(
        data.silos[0].1.parts,
        [Split::Train, Split::Train, Split::Test]
    );
    let error = read(&folder, &files(""), "").unwrap_err();
    assert!(
        error.starts_with("silo \"Bern\": some of its files have a `part`"),
        "{error}"
    );
    let error = read(&folder, &files(", part = 'test'"), "column = 'z'").unwrap_err();
    assert!(error.contains("exclude each other"), "{error}");
}

#[test]
fn times_are_numbers_or_dates() {
    let folder = Folder::with(&[("a.csv", ROWS)]);
    let config = format!("{A}drop = ['sex', 'part']");
    let data = read(&folder, &config, "time = 'on'").unwrap();
    let table = &data.silos[0].1;
    assert_eq!(table.columns, ["x"]);
    let first = table.times[1];
    let days: Vec<f64> = table.times.iter().map(|time| time - first).collect();
    assert_eq!(days, [60.0, 0.0, 31.0, 91.25]);
    let all = format!("{A}drop = ['sex', 'part', 'on']");
    let error = read(&folder, &all, "time = 'part'").unwrap_err();
    assert!(
        error.contains("holds \"train\", but a number or a date such as"),
        "{error}"
    );
    let data = read(
        &folder,
        &format!("{A}drop = ['sex', 'part', 'on']"),
        "time = 'x'",
    );
    assert!(data.unwrap_err().contains("no feature columns are left"));
}

#[test]
fn values_of_a_column_become_subgroups_in_alphabetical_order() {
    let folder = Folder::with(&[
        ("a.csv", ROWS),
        ("b.csv", "x,sex,on,part,y\n5,d,,,1\n6,m,,,2\n"),
    ]);
    let files = "files = [{ path = 'a.csv' }, { path = 'b.csv' }]\n[columns]\ntarget = 'y'\n";
    let config = format!("{files}drop = ['sex', 'on', 'part']\nsubgroup = 'sex'");
    let data = read(&folder, &config, "").unwrap();
    assert_eq!(data.subgroups, ["d", "f", "m", "not stated"]);
    assert_eq!(data.silos[0].1.subgroups, [1, 2, 1, 3]);
    assert_eq!(data.silos[1].1.subgroups, [0, 2]);
    assert_eq!(data.silos[0].1.columns, ["x"]);
    // It may be a feature, too.
    let config = format!(
        "{files}drop = ['on', 'part']\none-hot = ['sex']\nincomplete = 'impute'\nsubgroup = 'sex'"
    );
    let both = read(&folder, &config, "").unwrap();
    assert_eq!(both.silos[0].1.columns, ["x", "sex=f", "sex=m"]);
    assert_eq!(both.silos[0].1.subgroups, [1, 2, 1, 3]);
}

#[test]
fn a_schema_names_the_subgroup_by_its_agreed_name_and_values() {
    let folder = Folder::with(&[("a.csv", "x,geschlecht,y\n1,w,10\n2,m,20\n3,,30\n")]);
    let schema: Schema = toml::from_str(
        "subgroup = 'sex'\n[target]\nname = 'y'\nunit = 'm'\n[[feature]]\nname = 'x'",
    )
    .unwrap();
    let config: RowsConfig = toml::from_str(
        "files = [{ path = 'a.csv', names = { columns = { sex = 'geschlecht' }, codes = { sex = { w = 'f' } } } }]",
    )
    .unwrap();
    let split = SplitConfig::default();
    let data = config.read(Some(&schema), Some(&folder.0), &split).unwrap();
    assert_eq!(data.subgroups, ["f", "m", "not stated"]);
    assert_eq!(data.silos[0].1.subgroups, [0, 1, 2]);
    let without = Folder::with(&[("a.csv", "x,y\n1,10\n2,20\n")]);
    let config: RowsConfig = toml::from_str("files = [{ path = 'a.csv' }]").unwrap();
    let error = config
        .read(Some(&schema), Some(&without.0), &split)
        .unwrap_err();
    assert!(
        error.to_string().contains("there is no column \"sex\""),
        "{error}"
    );
}

#[test]
fn too_many_subgroups_are_refused() {
    let rows: Vec<String> = (0..101).map(|row| format!("{row},{row}")).collect();
    let folder = Folder::with(&[("a.csv", &format!("x,y\n{}\n", rows.join("\n")))]);
    let error = read(&folder, &format!("{A}subgroup = 'x'"), "").unwrap_err();
    assert!(
        error.contains("holds 101 different values") && error.contains("at most 100"),
        "{error}"
    );
}
