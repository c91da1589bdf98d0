//! Numbers that are scaled by the ranges of the schema.

use super::*;
use crate::data::{Prepared, Standardise};
use crate::{TableTask, TaskConfig};

const ROWS: &str = "age,kind,income,y\n\
    20,a,1000,5\n\
    100,b,9000,15\n\
    60,a,5000,10\n\
    40,b,3000,20\n";

/// The task with its files in a folder.
fn within(folder: &Folder, task: TableTask) -> TableTask {
    let mut task = TaskConfig::Table(Box::new(task));
    task.resolve(&folder.0);
    match task {
        TaskConfig::Table(task) => *task,
        _ => panic!("a table"),
    }
}

/// A task on these rows.
fn task(income: &str, target: &str) -> TableTask {
    let text = format!(
        "model = {{ linear = {{ loss = 'squared' }} }}
        standardise = 'ranges'
        [data.rows]
        files = [{{ path = 'a.csv' }}]
        [schema]
        target = {{ name = 'y'{target} }}
        [[schema.feature]]
        name = 'age'
        range = [20, 100]
        [[schema.feature]]
        name = 'kind'
        type = 'category'
        levels = ['a', 'b']
        [[schema.feature]]
        name = 'income'
        missing = 'indicator'
        {income}"
    );
    toml::from_str(&text).unwrap()
}

const INCOME: &str = "range = [1000, 9000]";
const TARGET: &str = ", range = [0, 20]";

#[test]
fn the_middle_of_an_agreed_range_is_0_and_its_ends_half_a_unit() {
    let folder = Folder::with(&[("a.csv", ROWS)]);
    let task = within(&folder, task(INCOME, TARGET));
    task.check().unwrap();
    let data = task.tables(None, None, 1).unwrap();
    let (name, table) = &data.silos[0];
    let split = SplitConfig::default();
    let target = data.target.clone();
    let prepared = Prepared::new(name, table, target, &split, Standardise::Ranges, 1).unwrap();
    let mut found: Vec<(Vec<f32>, f32)> = [&prepared.train, &prepared.validation, &prepared.test]
        .into_iter()
        .flat_map(|part| {
            (0..part.len()).map(|row| (part.features(row).to_vec(), part.targets()[row]))
        })
        .collect();
    found.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
    // Age, income, whether it is b, whether the income is missing.
    let expected = [
        (vec![-0.5, -0.5, -0.5, -0.5], -0.25),
        (vec![-0.25, -0.25, 0.5, -0.5], 0.5),
        (vec![0.0, 0.0, -0.5, -0.5], 0.0),
        (vec![0.5, 0.5, 0.5, -0.5], 0.25),
    ];
    assert_eq!(found, expected);
    // The values that are exported with a model.
    assert_eq!(prepared.preparation.means[..2], [60.0, 5000.0]);
    assert_eq!(prepared.preparation.deviations[..2], [80.0, 8000.0]);
    assert_eq!(prepared.preparation.target_deviation, 20.0);
}

#[test]
fn what_has_no_range_is_refused_by_name_before_any_row_is_read() {
    let cases = [
        (task("", TARGET), "there is none of the column \"income\""),
        (task(INCOME, ""), "there is none of the target"),
    ];
    for (task, why) in cases {
        let error = task.check().unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains("`range = [low, high]`"),
            "{error}"
        );
    }
    let mut without = task(INCOME, TARGET);
    without.schema = None;
    let error = without.check().unwrap_err().to_string();
    assert!(error.contains("no `[task.table.schema]`"), "{error}");
}

/// The rows of a simulation as every institution would have them in a file.
#[test]
fn rows_that_are_handed_out_keep_their_ranges() {
    let folder = Folder::with(&[("a.csv", ROWS)]);
    let task = within(&folder, task(INCOME, TARGET));
    let data = task.tables(None, None, 1).unwrap();
    let own = task.of_own_rows(&data);
    own.check().unwrap();
    let ranges = own.schema.unwrap().encoded();
    let ranges: Vec<_> = ranges.into_iter().map(|column| column.range).collect();
    let expected = data.silos[0].1.ranges.clone();
    assert_eq!(ranges, expected);
}
