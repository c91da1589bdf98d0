//! One-hot encoding: turns cells into numbers, once the rows of all files are known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::DataError;
use super::super::label::{category, number};
use super::CsvConfig;

/// A file's rows, before the levels of all files are known.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) rows: Vec<Row>,
}

/// A usable row, its numbers read and its categories still text.
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) silo: String,
    pub(super) cells: Vec<Cell>,
    pub(super) targets: Vec<f64>,
}

/// A feature.
pub(super) enum Cell {
    Missing,
    Number(f64),
    Level(String),
}

impl CsvConfig {
    /// The levels of every one-hot column.
    pub(super) fn all_levels(
        &self,
        features: &[String],
        files: &[File],
    ) -> BTreeMap<String, Vec<String>> {
        let used = features
            .iter()
            .enumerate()
            .filter(|(_, name)| self.one_hot.contains(name));
        used.map(|(index, name)| {
            if let Some(levels) = self.levels.get(name) {
                return (
                    name.clone(),
                    levels.iter().map(|level| category(level)).collect(),
                );
            }
            let cells = files
                .iter()
                .flat_map(|file| &file.rows)
                .map(|row| &row.cells[index]);
            let seen: BTreeSet<&String> = cells
                .filter_map(|cell| {
                    if let Cell::Level(level) = cell {
                        Some(level)
                    } else {
                        None
                    }
                })
                .collect();
            let mut levels: Vec<String> = seen.into_iter().cloned().collect();
            // Numbers by size, then texts by letter; the sort is stable.
            levels.sort_by(|a, b| match (number(a), number(b)) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            });
            (name.clone(), levels)
        })
        .collect()
    }

    /// Names of the columns that [`encode`](Self::encode) makes.
    pub(super) fn column_names(
        &self,
        features: &[String],
        levels: &BTreeMap<String, Vec<String>>,
    ) -> Vec<String> {
        let plain = features
            .iter()
            .filter(|name| !levels.contains_key(*name))
            .cloned();
        let hot = features
            .iter()
            .filter_map(|name| levels.get(name).map(|all| (name, all)));
        let hot = hot.flat_map(|(name, all)| {
            all.iter()
                .skip(1)
                .map(move |level| format!("{name}={level}"))
        });
        plain.chain(hot).collect()
    }

    /// A row as numbers: plain columns, then the levels of each one-hot column.
    pub(super) fn encode(
        &self,
        row: &Row,
        features: &[String],
        levels: &BTreeMap<String, Vec<String>>,
        path: &Path,
    ) -> Result<Vec<f64>, DataError> {
        let mut values = Vec::new();
        let mut hot = Vec::new();
        for (name, cell) in features.iter().zip(&row.cells) {
            match (cell, levels.get(name)) {
                (Cell::Number(value), _) => values.push(*value),
                (Cell::Missing, None) => values.push(f64::NAN),
                (Cell::Missing, Some(all)) => hot.extend(all.iter().skip(1).map(|_| f64::NAN)),
                (Cell::Level(text), all) => {
                    let all = all.map_or(&[][..], Vec::as_slice);
                    if !all.contains(text) {
                        return Err(DataError::Cell {
                            path: path.to_owned(),
                            line: row.line,
                            column: name.clone(),
                            text: text.clone(),
                            expected: format!("the levels are {}", all.join(", ")),
                        });
                    }
                    hot.extend(all.iter().skip(1).map(|level| f64::from(level == text)));
                }
            }
        }
        values.append(&mut hot);
        Ok(values)
    }
}
