#![allow(clippy::unwrap_used)]
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::data::Target;
use crate::schema::{EncodedColumn, Fill, TargetColumn};

mod extra;
mod groups;
mod marks;
mod ranges;
mod row_by_row;
mod survival;

/// A folder of its own for one test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "learn-csv-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        Self(folder)
    }

    fn read(&self, config: &str) -> Result<DataSet, DataError> {
        toml::from_str::<RowsConfig>(config).unwrap().read(
            None,
            Some(&self.0),
            &SplitConfig::default(),
        )
    }

    /// The error, without the folder's name.
    fn error(&self, config: &str) -> String {
        let error = self.read(config).unwrap_err().to_string();
        error.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

const A: &str = "files = [{ path = 'a.csv' }]\n[columns]\ntarget = 'y'\n";

#[test]
fn one_file_per_silo() {
    let folder = Folder::with(&[
        ("a.csv", "x,y\n1,10\n2,20\n"),
        ("b.csv", "y, x, more\n30, 3, 0\n"),
    ]);
    let config =
        "files = [{ path = 'a.csv' }, { path = 'b.csv', silo = 'Bern' }]\n[columns]\ntarget = 'y'";
    let data = folder.read(config).unwrap();
    assert_eq!(
        data.target,
        Target::Number {
            unit: "units of y".into()
        }
    );
    let names: Vec<&str> = data.silos.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "Bern"]);
    assert_eq!(data.silos[0].1.columns, ["x"]);
    assert_eq!(data.silos[0].1.values, [1.0, 2.0]);
    assert_eq!(
        (data.silos[1].1.values[0], data.silos[1].1.target[0]),
        (3.0, 30.0)
    );
}

#[test]
fn one_file_with_a_silo_column() {
    let folder = Folder::with(&[("a.csv", "site;x;y\nN;1;0\nS;2;3\nN;4;1\n")]);
    let config = "files = [{ path = 'a.csv' }]\nsilo-column = 'site'\nformat = { delimiter = ';' }\n[columns]\ntarget = 'y'\npositive = '> 0'";
    let data = folder.read(config).unwrap();
    assert_eq!(
        data.target,
        Target::Classes(vec!["not y > 0".into(), "y > 0".into()])
    );
    assert_eq!(data.silos[0].0, "N");
    assert_eq!(data.silos[0].1.values, [1.0, 4.0]);
    assert_eq!(data.silos[0].1.target, [0.0, 1.0]);
    assert_eq!(data.silos[1].1.target, [1.0]);
}

#[test]
fn rows_are_dealt_to_synthetic_silos_in_turn() {
    let folder = Folder::with(&[
        ("a.csv", "x,y\n1,0\n2,0\n3,0\n"),
        ("b.csv", "x,y\n4,0\n5,0\n"),
    ]);
    let files = "files = [{ path = 'a.csv' }, { path = 'b.csv' }]\n";
    let columns = "[columns]\ntarget = 'y'";
    let data = folder
        .read(&format!("{files}split-into = 2\n{columns}"))
        .unwrap();
    let silos = data.silos.iter();
    let silos: Vec<_> = silos
        .map(|(name, table)| (name.as_str(), &table.values[..]))
        .collect();
    assert_eq!(
        silos,
        [("part 1", &[1.0, 3.0, 5.0][..]), ("part 2", &[2.0, 4.0])]
    );
    let one = folder.error(&format!("{files}split-into = 1\n{columns}"));
    assert_eq!(one, "`split-into` is 1, and a federation needs at least 2");
    let both = folder.error(&format!(
        "{files}split-into = 2\nsilo-column = 'x'\n{columns}"
    ));
    assert!(both.contains("exclude each other"), "{both}");
}

#[test]
fn files_without_names_go_by_position() {
    let folder = Folder::with(&[("a.csv", "1,2,3\n4,5,6\n")]);
    let config = "files = [{ path = 'a.csv' }]\nformat = { columns = [] }\n[columns]\ntarget = '3'\ndrop = ['1']";
    let data = folder.read(config).unwrap();
    assert_eq!(data.silos[0].1.columns, ["2"]);
    assert_eq!(data.silos[0].1.values, [2.0, 5.0]);
    assert_eq!(data.silos[0].1.target, [3.0, 6.0]);
}

#[test]
fn categories_become_columns_without_the_first_level() {
    let folder = Folder::with(&[
        ("a.csv", "k,x,y\n2.0,7,1\n10.0,8,1\n1.0,9,1\n"),
        ("b.csv", "k,x,y\n1,6,1\n"),
    ]);
    let files = "files = [{ path = 'a.csv' }, { path = 'b.csv' }]\n[columns]\ntarget = 'y'\none-hot = ['k']\n";
    let data = folder.read(files).unwrap();
    assert_eq!(data.silos[0].1.columns, ["x", "k=2", "k=10"]);
    assert_eq!(
        data.silos[0].1.values,
        [7.0, 1.0, 0.0, 8.0, 0.0, 1.0, 9.0, 0.0, 0.0]
    );
    assert_eq!(data.silos[1].1.values, [6.0, 0.0, 0.0]);
    let given = folder
        .read(&format!("{files}levels = {{ k = ['10', '2', '1', '0'] }}"))
        .unwrap();
    assert_eq!(given.silos[1].1.columns, ["x", "k=2", "k=1", "k=0"]);
    assert_eq!(
        folder.error(&format!("{files}levels = {{ k = ['1', '2'] }}")),
        "a.csv, line 3: column \"k\" holds \"10.0\", but the agreed levels are 1, 2; other words for \
         them go into `codes`"
    );
}

#[test]
fn missing_values_drop_the_row_or_stay_missing() {
    let folder = Folder::with(&[("a.csv", "x,k,y\n1,u,1\n?,v,2\n3,,3\n4,v,NA\n5,v,5\n")]);
    let dropped = folder.read(&format!("{A}one-hot = ['k']")).unwrap();
    assert_eq!(dropped.silos[0].1.target, [1.0, 5.0]);
    let kept = folder
        .read(&format!("{A}one-hot = ['k']\nincomplete = 'impute'"))
        .unwrap();
    let table = &kept.silos[0].1;
    assert_eq!(table.target, [1.0, 2.0, 3.0, 5.0]);
    assert!(table.row(1)[0].is_nan() && table.row(2)[1].is_nan());
    assert_eq!((table.row(1)[1], table.row(2)[0]), (1.0, 3.0));
}

#[test]
fn classes_go_by_name() {
    let folder = Folder::with(&[("a.csv", "x,y\n1,cat\n2,dog\n")]);
    let config = format!("{A}classes = ['dog', 'cat']");
    assert_eq!(folder.read(&config).unwrap().silos[0].1.target, [1.0, 0.0]);
    let folder = Folder::with(&[("a.csv", "x,y\n1,cow\n")]);
    let error = folder.error(&config);
    assert_eq!(
        error,
        "a.csv, line 2: column \"y\" holds \"cow\", but the agreed values are dog, cat; other words \
         for them go into `codes`"
    );
}

#[test]
fn errors_name_file_line_and_column() {
    let cases = [
        (
            "a,b\n1,2\n",
            "",
            "a.csv: there is no column \"y\"; the columns are a, b",
        ),
        (
            "x,y\n1,2\n",
            "drop = ['z']",
            "a.csv: there is no column \"z\"; the columns are x, y",
        ),
        (
            "x,y\n1,2\n\ntall,3\n",
            "",
            "a.csv, line 4: column \"x\" holds \"tall\", but a number is needed",
        ),
        (
            "x,y\n1,inf\n",
            "",
            "a.csv, line 2: column \"y\" holds \"inf\", but a number is needed",
        ),
        (
            "x,y\n1,2\n1,2,3\n",
            "",
            "a.csv, line 3: expected 2 cells, one per column, found 3",
        ),
        (
            "x,y\n?,2\n1,\n",
            "",
            "a.csv: no usable row: of 2, 1 without a value to predict, 1 with a missing feature; check the column to predict",
        ),
        ("y\n1\n", "", "no feature columns are left"),
        (
            "s,x,y\n?,1,2\n",
            "[silo-column]",
            "a.csv: no usable row: of 1, 1 without the name of a silo; check the column that names the silo",
        ),
        (
            "x,y\n1,2\n",
            "levels = { x = ['1'] }",
            "`levels` names \"x\", which is not in `one-hot`",
        ),
        (
            "x,y\n1,2\n",
            "positive = '> 0'\nclasses = ['a', 'b']",
            "`positive` and `classes` exclude each other",
        ),
    ];
    for (text, more, expected) in cases {
        let folder = Folder::with(&[("a.csv", text)]);
        let config = match more {
            "[silo-column]" => A.replace("[columns]", "silo-column = 's'\n[columns]"),
            more => format!("{A}{more}"),
        };
        let error = folder.error(&config);
        assert!(error.starts_with(expected), "{error}");
    }
    let nothing = Folder::with(&[]);
    let error = nothing.error(A);
    assert!(error.starts_with("cannot read a.csv: "), "{error}");
}

#[test]
fn unknown_keys_are_refused_with_their_place() {
    let error = toml::from_str::<RowsConfig>(&format!("{A}tarjet = 'z'"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("line 4") && error.contains("unknown field `tarjet`"),
        "{error}"
    );
}

#[test]
fn several_columns_may_be_predicted() {
    let folder = Folder::with(&[("a.csv", "x,u,v,site\n1,10,11,n\n2,20,?,n\n3,30,31,s\n")]);
    let config = "files = [{ path = 'a.csv' }]\nsilo-column = 'site'\n[columns]\n";
    let data = folder
        .read(&format!("{config}target = ['v', 'u']\nunit = 'm'"))
        .unwrap();
    let target = Target::Numbers {
        unit: "m".into(),
        count: 2,
    };
    assert_eq!(data.target, target);
    let (_, north) = &data.silos[0];
    // A row without one of its targets is dropped.
    assert_eq!((north.len(), north.columns.len()), (1, 1));
    assert_eq!(north.targets(0), [11.0, 10.0]);
    assert_eq!(data.silos[1].1.targets(0), [31.0, 30.0]);
    assert_eq!(
        folder.error(&format!("{config}target = ['v', 'u']\npositive = '> 0'")),
        "`positive` and `classes` go with one `target` column"
    );
    assert_eq!(
        folder.error(&format!("{config}target = []")),
        "`target` names no column"
    );
}

#[test]
fn masks_are_zeros_and_ones() {
    let folder = Folder::with(&[("a.csv", "x,u,v\n1,0,1\n2,1,1.0\n")]);
    let config = "files = [{ path = 'a.csv' }]\n[columns]\ntarget = { mask = ['u', 'v'] }";
    let data = folder.read(config).unwrap();
    assert_eq!(data.target, Target::Mask { pixels: 2 });
    assert_eq!(data.silos[0].1.target, [0.0, 1.0, 1.0, 1.0]);
    let folder = Folder::with(&[("a.csv", "x,u,v\n1,0,1\n2,0.5,1\n")]);
    assert_eq!(
        folder.error(config),
        "a.csv, line 3: column \"u\" holds \"0.5\", but the pixels of a mask are 0 or 1"
    );
}

#[test]
fn targets_are_written_to_columns_that_read_as_the_same_target() {
    let number = Target::Number { unit: "m".into() };
    let numbers = Target::Numbers {
        unit: "m".into(),
        count: 2,
    };
    let classes = Target::Classes(vec!["well".into(), "ill".into()]);
    for target in [number, numbers, classes, Target::Mask { pixels: 3 }] {
        let column = TargetColumn::of(&target);
        let names: Vec<&str> = column.name.iter().collect();
        let cell = match target {
            Target::Classes(_) => ",ill",
            _ => ",1",
        };
        let cells = cell.repeat(names.len());
        let text = format!("x,{}\n5{cells}\n6{cells}\n", names.join(","));
        let folder = Folder::with(&[("a.csv", &text)]);
        let schema = Schema::of_encoded(
            &[EncodedColumn {
                name: "x".into(),
                fill: Fill::Mean,
                range: None,
            }],
            &target,
        );
        let config: RowsConfig = toml::from_str("files = [{ path = 'a.csv' }]").unwrap();
        let read = config
            .read(Some(&schema), Some(&folder.0), &SplitConfig::default())
            .unwrap();
        assert_eq!(read.target, target);
        assert_eq!(read.silos[0].1.target, vec![1.0; 2 * names.len()]);
    }
    let wrong = toml::from_str::<RowsConfig>("files = []\n[columns]\ntarget = 3").unwrap_err();
    assert!(wrong.message().contains("a list of columns"), "{wrong}");
}
