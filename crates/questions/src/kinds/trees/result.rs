//! Trees as they come out: an ensemble that can be printed, exported and run.

use serde::{Deserialize, Serialize};

use super::bins::RowBin;
use super::site::add_trees;
use super::target::{TreesTarget, softmax};
use super::{BinnedColumn, BoostedTree, Trees, TreesProgress, TreesStart};
use crate::sums::CommonKnowledge;

/// The mean loss of the trees so far: the log loss, or the root mean squared error in the unit of the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TreesLoss {
    /// Of the rows that trees are grown from.
    pub trained: f64,
    /// Of the held-out rows; none where none are.
    pub held_out: Option<f64>,
}

/// Reduction of the loss by the splits at a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnImportance {
    /// The column.
    pub column: String,
    /// Splits at it, in all trees.
    pub splits: usize,
    /// The sum of their gains, as part of that of all columns.
    pub share: f64,
}

/// Gradient-boosted trees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreesOutcome {
    /// The outcome as it was asked for.
    pub outcome: String,
    /// True if scores are log odds of a condition, or of levels before softmax; else they are numbers in the unit of the
    /// outcome.
    pub is_probability: bool,
    /// The levels of the outcome, each of which has scores and trees of its own; none of a condition or a number.
    pub classes: Vec<String>,
    /// Rows that trees are grown from.
    pub rows: f64,
    /// Held-out rows.
    pub held_out_rows: f64,
    /// The columns with their bins.
    pub columns: Vec<BinnedColumn>,
    /// The scores that the trees are added to: one, or that of each level of the outcome.
    pub bases: Vec<f64>,
    /// The trees; of several levels one of each after the other.
    pub trees: Vec<BoostedTree>,
    /// The loss without any tree, with the first one, and so on; of several levels with the first one of each.
    pub losses: Vec<TreesLoss>,
    /// The number of trees that were asked for, of each level.
    pub asked: usize,
}

impl TreesOutcome {
    pub(super) fn of(
        kind: &Trees,
        known: &CommonKnowledge,
        progress: &TreesProgress,
        start: &TreesStart,
    ) -> Self {
        let target = kind.target(&known.agreed);
        let is_probability = target.is_probability();
        let bases = target.bases(start);
        let input = &known.inputs[kind.columns.len()];
        // Numbers were scaled to ±1.
        let (middle, half) = match is_probability {
            true => (0.0, 1.0),
            false => (input.middle(), input.half()),
        };
        let mut trees = progress.trees.clone();
        let nodes = trees.iter_mut().flat_map(|tree| &mut tree.nodes);
        nodes.for_each(|node| node.value *= half);
        let mean = |loss: f64| match is_probability {
            true => loss,
            false => half * loss.sqrt(),
        };
        let losses = progress.losses.iter().map(|loss| TreesLoss {
            trained: mean(loss.trained),
            held_out: loss.held_out.map(mean),
        });
        Self {
            outcome: kind.outcome.clone(),
            is_probability,
            rows: start.rows,
            held_out_rows: start.held_out,
            columns: kind.binned(known),
            bases: bases.iter().map(|base| middle + half * base).collect(),
            classes: match target {
                TreesTarget::Classes(_) => known.agreed.levels[&kind.outcome].clone(),
                TreesTarget::Condition | TreesTarget::Number => Vec::new(),
            },
            trees,
            losses: losses.collect(),
            asked: kind.trees,
        }
    }

    /// The number of trees of each score.
    pub fn count(&self) -> usize {
        self.trees.len() / self.bases.len().max(1)
    }

    /// The scores of a row: one of log odds, or a number in the unit of the outcome; or that of each level of the outcome. A
    /// value of a column of categories is the number of its level, one of a condition is 0 or 1, and `None` is missing.
    ///
    /// # Panics
    /// If there are fewer values than columns.
    pub fn scores(&self, values: &[Option<f64>]) -> Vec<f64> {
        assert!(values.len() >= self.columns.len(), "a value of each column");
        let bins: Vec<RowBin> = self
            .columns
            .iter()
            .zip(values)
            .map(|(column, value)| column.row_bin(*value))
            .collect();
        let mut scores = self.bases.clone();
        add_trees(&mut scores, &self.trees, &bins);
        scores
    }

    /// The only score of a row, of a condition or a number.
    ///
    /// # Panics
    /// As [`scores`](Self::scores).
    pub fn score(&self, values: &[Option<f64>]) -> f64 {
        self.scores(values)[0]
    }

    /// The probabilities of the levels of the outcome in a row; none of a condition or a number.
    ///
    /// # Panics
    /// As [`scores`](Self::scores).
    pub fn probabilities(&self, values: &[Option<f64>]) -> Vec<f64> {
        match self.classes.is_empty() {
            true => Vec::new(),
            false => softmax(&self.scores(values)),
        }
    }

    /// The columns by how much their splits lower the loss, the most important first; without those that have no split.
    pub fn importance(&self) -> Vec<ColumnImportance> {
        let mut sums = vec![(0usize, 0.0); self.columns.len()];
        let nodes = self.trees.iter().flat_map(|tree| &tree.nodes);
        for split in nodes.filter_map(|node| node.split) {
            sums[split.column].0 += 1;
            sums[split.column].1 += split.gain;
        }
        let all: f64 = sums.iter().map(|(_, gain)| gain).sum();
        let mut columns: Vec<ColumnImportance> = self
            .columns
            .iter()
            .zip(sums)
            .filter(|(_, (splits, _))| *splits > 0)
            .map(|(column, (splits, gain))| ColumnImportance {
                column: column.name.clone(),
                splits,
                share: gain / all,
            })
            .collect();
        columns.sort_by(|left, right| right.share.total_cmp(&left.share));
        columns
    }

    /// The number of trees with the least loss of held-out rows; none where no rows are held out.
    pub fn best(&self) -> Option<usize> {
        let losses = self.losses.iter().enumerate();
        let known = losses.filter_map(|(trees, loss)| Some((trees, loss.held_out?)));
        let best = known.min_by(|left, right| left.1.total_cmp(&right.1));
        best.map(|(trees, _)| trees)
    }
}
