//! The bins of columns, which are agreed and do not follow from rows.

use serde::{Deserialize, Serialize};

use super::Trees;
use crate::table::QuestionInput;

/// A column with its bins; missing values have one of their own behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BinnedColumn {
    /// The column, or a condition, which is 0 or 1.
    pub name: String,
    /// The numbers between bins, ascending, none for categories: a number below the first is in bin 0, and an edge
    /// itself in the bin above it. Numbers are compared in single precision, as programs that run trees do.
    pub edges: Vec<f32>,
    /// The levels of a column of categories, a bin each; none for numbers.
    pub levels: Vec<String>,
}

impl BinnedColumn {
    pub(super) fn of(input: &QuestionInput, name: &str, kind: &Trees) -> Self {
        let name = name.to_owned();
        match input {
            QuestionInput::Level { levels, .. } => Self {
                name,
                edges: Vec::new(),
                levels: levels.clone(),
            },
            QuestionInput::Indicator(_) => Self {
                name,
                edges: vec![0.5],
                levels: Vec::new(),
            },
            QuestionInput::Number { range, .. } | QuestionInput::Scaled { range, .. } => {
                let edges = match kind.edges.get(&name) {
                    Some(edges) => edges.iter().map(|edge| *edge as f32).collect(),
                    None => equal(*range, kind.bins),
                };
                Self {
                    name,
                    edges,
                    levels: Vec::new(),
                }
            }
        }
    }

    /// Returns whether it has categories.
    pub fn has_levels(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Bins of known values.
    pub fn known_bins(&self) -> usize {
        match self.has_levels() {
            true => self.levels.len(),
            false => self.edges.len() + 1,
        }
    }

    /// Bins, with that of missing values, which is the last.
    pub(super) fn cells(&self) -> usize {
        self.known_bins() + 1
    }

    /// The bin of a number, or of the number of a level; `None` where it is missing.
    pub fn bin(&self, value: Option<f64>) -> usize {
        let Some(value) = value else {
            return self.known_bins();
        };
        match self.has_levels() {
            true => value as usize,
            false => self.edges.partition_point(|edge| *edge <= value as f32),
        }
    }

    /// The bin of a row with this value.
    pub(super) fn row_bin(&self, value: Option<f64>) -> RowBin {
        let bin = self.bin(value);
        RowBin {
            bin: u16::try_from(bin)
                .expect("the bins of a column are counted when trees are asked for"),
            has_levels: self.has_levels(),
        }
    }
}

/// The bin of a row in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowBin {
    pub(super) bin: u16,
    has_levels: bool,
}

impl RowBin {
    /// Returns whether its row goes to the left of a split at `at`: categories those of one level, numbers those up to
    /// the bin. Missing values go to the right.
    pub(super) fn is_left(self, at: usize) -> bool {
        match self.has_levels {
            true => usize::from(self.bin) == at,
            false => usize::from(self.bin) <= at,
        }
    }
}

/// The numbers between bins of equal width. Two that are equal in single precision are one.
fn equal([low, high]: [f64; 2], bins: usize) -> Vec<f32> {
    let edge = |bin: usize| (low + (high - low) * (bin as f64 / bins as f64)) as f32;
    let mut edges: Vec<f32> = (1..bins).map(edge).collect();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(column: &BinnedColumn, bin: u16, at: usize) -> bool {
        let has_levels = column.has_levels();
        RowBin { bin, has_levels }.is_left(at)
    }

    #[test]
    fn an_edge_itself_is_in_the_bin_above_it() {
        let column = BinnedColumn {
            name: "age".to_owned(),
            edges: equal([0.0, 100.0], 4),
            levels: Vec::new(),
        };
        let found = [-3.0, 24.99, 25.0, 49.0, 75.0, 200.0].map(|age| column.bin(Some(age)));
        assert_eq!(found, [0, 0, 1, 1, 3, 3]);
        assert_eq!((column.bin(None), column.cells()), (4, 5));
        assert!(left(&column, 1, 1) && !left(&column, 2, 1) && !left(&column, 4, 1));
    }

    #[test]
    fn one_level_is_split_from_all_others() {
        let column = BinnedColumn {
            name: "stage".to_owned(),
            edges: Vec::new(),
            levels: ["I", "II", "III"].map(str::to_owned).to_vec(),
        };
        assert_eq!((column.bin(Some(2.0)), column.bin(None)), (2, 3));
        let left = [0, 1, 2, 3].map(|bin| left(&column, bin, 1));
        assert_eq!(left, [false, true, false, false]);
    }
}
