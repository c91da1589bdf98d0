//! Results of a model for single rows, for uncertainties and for curves.

use std::collections::BTreeMap;

/// Results of a model for every row of a part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowResults {
    /// Values of every row, by the name of each metric that is the mean of these: `loss` always;
    /// `mae`, `mse` for numbers; `accuracy` (0 or 1), `log-loss` for classes; `dice` for masks;
    /// `integrated-brier` for times to an event.
    pub scores: BTreeMap<String, Vec<f64>>,
    /// The targets as they are measured on, row-major: numbers, the index of a class, pixels; event (1 or 0), time
    /// and entry.
    pub targets: Vec<f32>,
    /// For classes, rows × classes, row-major: the probability of each class. Empty for others.
    pub probabilities: Vec<f64>,
    /// For times to an event: the risk score of every row. Empty for others.
    pub risks: Vec<f64>,
    /// For times to an event, where the silo's training rows give a baseline: how probable no event is.
    pub surviving: Option<Surviving>,
    /// The subgroup of every row, such as the patient's gender, by its position among the names that the
    /// task has; empty where rows have none.
    pub subgroups: Vec<u16>,
    /// The group of every row, such as its patient, as a number that means nothing outside of the silo;
    /// empty where rows have none. Rows of one group are not independent of each other.
    pub groups: Vec<u32>,
}

/// Probabilities that rows have no event until a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Surviving {
    /// The time, the same for all models of a silo.
    pub until: f32,
    /// The probability of every row.
    pub probabilities: Vec<f64>,
}

impl RowResults {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.scores.values().next().map_or(0, Vec::len)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of every group, in the order of their first rows; every row by itself where rows have no
    /// groups.
    pub fn together(&self) -> Vec<Vec<usize>> {
        together(&self.groups, self.len())
    }

    /// Number of classes; 0 where the target is none.
    pub fn classes(&self) -> usize {
        self.probabilities.len() / self.len().max(1)
    }

    /// The probability of class 1 of every row, and whether the row is of that class; `None` unless
    /// there are two classes.
    pub fn positive(&self) -> Option<Vec<(f64, bool)>> {
        let pairs = self.probabilities.chunks_exact(2).zip(&self.targets);
        (self.classes() == 2).then(|| pairs.map(|(p, &y)| (p[1], y > 0.5)).collect())
    }
}

/// The positions of equal numbers among `rows`, in the order of the first of each; every row by itself where
/// there is not a number for each.
pub fn together(groups: &[u32], rows: usize) -> Vec<Vec<usize>> {
    if groups.len() != rows {
        return (0..rows).map(|row| vec![row]).collect();
    }
    let mut places = BTreeMap::new();
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (row, group) in groups.iter().enumerate() {
        let at = *places.entry(group).or_insert_with(|| {
            all.push(Vec::new());
            all.len() - 1
        });
        all[at].push(row);
    }
    all
}
