//! Public rows in ranges that are known without looking at single ones, for federations with noise.

use std::path::Path;
use std::sync::Arc;

use lab::compare::MakeRows;
use methods::learner::Split;
use simulations::random::Random;
use task::data::{DataError, DataSet, Table, Target, heart};

/// Silos and rows of breast cancer.
const SILOS: (usize, usize) = (10, 57);
/// Share of training rows.
const TRAIN: f64 = 0.66;
/// Part of the rows that is below, and above, the range of a column.
const BEYOND: f64 = 0.01;

/// Breast Cancer Wisconsin in ten silos of 57 rows, dealt anew by every seed; 38 of them are trained on.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn breast_cancer(folder: &Path) -> Result<Arc<MakeRows>, DataError> {
    let path = folder.join("breast_cancer/wdbc.csv");
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| DataError::Config(format!("{}: {error}", path.display())))?;
    let mut lines = text.lines();
    let names = lines.next().unwrap_or_default().split(',');
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.pop();
    let mut all = Table::new(names);
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let features = cells[..cells.len() - 1].iter();
        let features: Vec<f64> = features
            .map(|cell| cell.parse().unwrap_or(f64::NAN))
            .collect();
        let malignant = cells.last() == Some(&"malignant");
        all.push(&features, f64::from(u8::from(malignant)));
    }
    let all = in_ranges(vec![("all".into(), all)]).remove(0).1;
    Ok(Arc::new(move |seed| {
        let mut order: Vec<usize> = (0..all.len()).collect();
        Random::new(seed, "rows of breast cancer").shuffle(&mut order);
        let silos = order.chunks_exact(SILOS.1).take(SILOS.0).enumerate();
        let silos = silos.map(|(at, rows)| (format!("silo {}", at + 1), part(&all, rows)));
        Ok(data(["benign", "malignant"], silos.collect()))
    }))
}

/// The four hospitals of UCI Heart Disease, whose training rows every seed draws anew.
///
/// # Errors
/// The files cannot be read.
pub(crate) fn four_hospitals(folder: &Path) -> Result<Arc<MakeRows>, DataError> {
    let silos = in_ranges(heart(Some(folder))?.silos);
    Ok(Arc::new(move |seed| {
        let silos = silos.iter().map(|(name, table)| {
            let mut order: Vec<usize> = (0..table.len()).collect();
            Random::new(seed, &format!("rows of {name}")).shuffle(&mut order);
            (name.clone(), part(table, &order))
        });
        Ok(data(["healthy", "ill"], silos.collect()))
    }))
}

/// These silos, of two classes.
pub(crate) fn data(classes: [&str; 2], silos: Vec<(String, Table)>) -> DataSet {
    DataSet {
        target: Target::Classes(classes.map(str::to_owned).to_vec()),
        silos,
        schema: None,
        notes: Vec::new(),
        subgroups: Vec::new(),
    }
}

/// These rows, of which the first are trained on.
pub(crate) fn part(all: &Table, rows: &[usize]) -> Table {
    let mut table = Table::new(all.columns.clone());
    let train = (TRAIN * rows.len() as f64).round() as usize;
    for (nth, &row) in rows.iter().enumerate() {
        table.push(all.row(row), all.target[row]);
        let held_out = nth >= train;
        table
            .parts
            .push(if held_out { Split::Test } else { Split::Train });
    }
    table
}

/// The silos with every column cut to the range of nearly all rows, moved and divided to −0.5 to 0.5. A
/// federation agrees on ranges by what is known of the columns, without looking.
pub(crate) fn in_ranges(silos: Vec<(String, Table)>) -> Vec<(String, Table)> {
    let width = silos.first().map_or(0, |(_, table)| table.columns.len());
    let range = |column: usize| {
        let values = silos
            .iter()
            .flat_map(|(_, table)| (0..table.len()).map(move |row| table.row(row)[column]));
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
        (at(BEYOND), at(1.0 - BEYOND))
    };
    let ranges: Vec<(f64, f64)> = (0..width).map(range).collect();
    let moved = |(name, table): &(String, Table)| {
        let mut moved = Table::new(table.columns.clone());
        for row in 0..table.len() {
            let values = table.row(row).iter().zip(&ranges);
            let values: Vec<f64> = values
                .map(|(value, (low, high))| (value.clamp(*low, *high) - low) / (high - low) - 0.5)
                .collect();
            moved.push(&values, table.target[row]);
        }
        (name.clone(), moved)
    };
    silos.iter().map(moved).collect()
}
