//! Rows that are read one by one, for sums with noise.

use super::*;
use crate::data::{Prepared, Standardise, Table};
use crate::schema::{ColumnType, Quantity};
use crate::{TableTask, TaskConfig};

/// The task with noise, with this file.
fn task(rows: &str) -> (Folder, TableTask) {
    let folder = Folder::with(&[("a.csv", rows)]);
    let text = "model = { linear = { loss = 'squared' } }
        standardise = 'ranges'
        split = { test = 0.3, column = 'part' }
        [data.rows]
        files = [{ path = 'a.csv' }]
        [schema]
        min-rows = 10
        target = { name = 'y', range = [0, 20] }
        [[schema.feature]]
        name = 'age'
        range = [20, 100]
        missing = 'drop'
        [[schema.feature]]
        name = 'kind'
        type = 'category'
        levels = ['1', '2']
        other = true";
    let task: TableTask = toml::from_str(text).unwrap();
    let mut task = TaskConfig::Table(Box::new(task.with_noise().unwrap()));
    task.resolve(&folder.0);
    match task {
        TaskConfig::Table(task) => (folder, *task),
        _ => panic!("a table"),
    }
}

fn read(rows: &str) -> Table {
    let (_folder, task) = task(rows);
    let data = task.tables(None, None, 1).unwrap();
    assert_eq!(data.silos.len(), 1);
    let table = data.silos[0].1.clone();
    let unreadable = table
        .unreadable
        .iter()
        .all(|line| data.notes.contains(line));
    assert!(unreadable, "{:?}", data.notes);
    table
}

#[test]
fn a_row_that_cannot_be_read_counts_as_nothing_and_is_named() {
    let table = read(
        "age,kind,y,part\n20,1,5,train\n200,1,5,train\n30,01,5,train\n,2,5,train\n40,2.0,5,test\n50,9,5,dev\n60,9,5\n\
         70,9,5,train\n",
    );
    let rows: Vec<_> = (0..table.len())
        .map(|row| table.row(row).to_vec())
        .collect();
    let expected = [[20.0, 0.0, 0.0], [40.0, 1.0, 0.0], [70.0, 0.0, 1.0]];
    assert_eq!(rows, expected);
    let named: Vec<_> = table
        .unreadable
        .iter()
        .map(|line| {
            assert!(
                line.starts_with("a row cannot be read and counts as nothing: "),
                "{line}"
            );
            let (_, line) = line.split_once("line ").unwrap();
            line.split([',', ':']).next().unwrap()
        })
        .collect();
    assert_eq!(named, ["8", "3", "4", "7"]);
}

/// Zeros behind the point are left out of codes, and not of numbers, whose comma may stand between thousands.
#[test]
fn only_codes_lose_their_zeros() {
    let (_folder, mut task) = task("age;kind;y;part\n1,000;1,0;5;train\n20;2;5;train\n");
    let Some(crate::Source::Rows(rows)) = &mut task.data else {
        panic!("rows of files");
    };
    rows.format.delimiter = ';';
    rows.format.thousands = Some(',');
    let wide = Quantity {
        range: Some([0.0, 2000.0]),
        ..Quantity::default()
    };
    task.schema.as_mut().unwrap().features[0].kind = ColumnType::Number(wide);
    let data = task.tables(None, None, 1).unwrap();
    assert_eq!(data.silos[0].1.row(0), [1000.0, 0.0, 0.0]);
}

#[test]
fn no_rows_are_no_error() {
    for rows in [
        "age,kind,y,part\n",
        "age,kind,y,part\nx,1,5,train\n",
        "age,kind,y,part\n,1,5,train",
    ] {
        assert!(read(rows).is_empty());
        let (_folder, task) = task(rows);
        let data = task.tables(None, None, 1).unwrap();
        let (name, table) = &data.silos[0];
        let (target, split) = (data.target.clone(), &task.split);
        let data =
            Prepared::row_by_row(name, table, target, split, Standardise::Ranges, 1).unwrap();
        assert_eq!(
            (data.features, data.train.len(), data.train.width()),
            (3, 0, 3)
        );
    }
    let many = "x,1,5,train\n".repeat(9);
    let said = read(&format!("age,kind,y,part\n{many}")).unreadable;
    assert_eq!(
        (said.len(), &said[5][..]),
        (6, "4 more rows cannot be read and count as nothing")
    );
}

#[test]
fn what_is_wrong_with_the_file_is_still_an_error() {
    let error = |rows: &str| {
        let (_folder, task) = task(rows);
        task.tables(None, None, 1).unwrap_err().to_string()
    };
    assert!(error("age,y,part\n").contains("there is no column \"kind\""));
    assert!(error("age,kind,y,part,more\n").contains("\"more\" is not in the schema"));
    assert!(error("").contains("it is empty"));
    let (folder, task) = task("age,kind,y,part\n");
    std::fs::remove_file(folder.0.join("a.csv")).unwrap();
    assert!(
        task.tables(None, None, 1)
            .unwrap_err()
            .to_string()
            .starts_with("cannot read")
    );
}

/// The row in question has 10¹² years; no other row changes.
#[test]
fn a_row_is_filled_in_and_scaled_by_no_other() {
    let train = |rows: &str| {
        let (_folder, task) = task(&format!(
            "age,kind,y,part\n20,1,5,train\n{rows}60,2,9,train\n"
        ));
        let task = TableTask {
            standardise: Some(Standardise::None),
            ..task
        };
        let data = task.tables(None, None, 1).unwrap();
        let (name, table) = &data.silos[0];
        let mut table = table.clone();
        // Whatever a schema says, a missing value is never filled in.
        table
            .values
            .iter_mut()
            .filter(|value| **value == 77.0)
            .for_each(|value| *value = f64::NAN);
        let prepared =
            Prepared::row_by_row(name, &table, data.target, &task.split, Standardise::None, 1)
                .unwrap();
        let rows = prepared.train;
        (0..rows.len())
            .map(|row| rows.features(row).to_vec())
            .collect::<Vec<_>>()
    };
    let two = train("");
    assert_eq!(two.len(), 2);
    assert_eq!(train("77,1,5,train\n"), two);
    assert_eq!(train("1e12,1,5,train\n"), two);
}

/// Remarks on silos that share a file, and on small ones.
#[test]
fn unreadable_rows_are_named_and_small_silos_are_left_out() {
    let (_folder, task) = task(
        "age,kind,y,part,at\n20,1,5,train,a\n30,1,5,train,b\n40,1,5,train,a\nold,1,5,train,b\n",
    );
    for (column, pretend) in [(Some("at"), None), (None, Some(2))] {
        let mut task = task.clone();
        let Some(crate::Source::Rows(rows)) = &mut task.data else {
            panic!("rows of files");
        };
        (rows.silo_column, rows.pretend_silos) = (column.map(Into::into), pretend);
        (rows.ignore, rows.silo_rows) = (vec!["at".into()], 2);
        let data = task.tables(None, None, 1).unwrap();
        let said = |what: &str| data.notes.iter().any(|note| note.contains(what));
        assert!(said("a row cannot be read and counts as nothing: "));
        assert!(
            said("1 of 2 silos has fewer than 2 rows"),
            "{:?}",
            data.notes
        );
        assert_eq!(data.silos.len(), 1);
    }
}
