//! Numbers that a site computes from its rows: gradients by node and bin, and losses.

use super::bins::RowBin;
use super::grow::{BoostedTree, GrowingTree};
use super::target::TreesTarget;
use super::{BinnedColumn, LOSS_BITS, Trees, TreesProgress};
use crate::table::CellValue;

/// A row of which the outcome is known, and no value lies outside of what is agreed.
pub(super) struct BinnedRow {
    pub(super) bins: Vec<RowBin>,
    /// 0 or 1, the number of a level, or a number scaled to ±1.
    outcome: f64,
    pub(super) is_held_out: bool,
}

/// Returns whether a row is used, in training or held out.
pub(super) fn is_used(row: &[CellValue]) -> bool {
    row.last().is_some_and(|outcome| outcome.known().is_some())
        && !row.contains(&CellValue::Outside)
}

/// Returns whether a row is held out. It depends on its columns alone, so equal rows are on one side, at whatever site they
/// are. The outcome, which is behind them, does not count: where columns have few values, all rows alike with one outcome would
/// be held out, and trees would have seen those with the other one alone.
pub(super) fn is_held_out(row: &[CellValue], part: f64) -> bool {
    // The hash costs more than all else of a round where a row has many columns.
    part > 0.0
        && row
            .split_last()
            .is_some_and(|(_, columns)| crate::row_hash::part_of(columns.iter().copied()) < part)
}

/// The bins of the rows that are used.
pub(super) fn binned_rows(
    kind: &Trees,
    columns: &[BinnedColumn],
    rows: &[Vec<CellValue>],
) -> Vec<BinnedRow> {
    let used = rows.iter().filter(|row| is_used(row));
    used.map(|row| BinnedRow {
        bins: columns
            .iter()
            .zip(row)
            .map(|(column, value)| column.row_bin(value.known()))
            .collect(),
        outcome: row[columns.len()].known().unwrap_or_default(),
        is_held_out: is_held_out(row, kind.held_out),
    })
    .collect()
}

/// Rows of both sides, and of those in training the rows in which the outcome holds, those of each level, or the sum of the
/// outcomes.
pub(super) fn outcomes(target: TreesTarget, rows: &[BinnedRow], bits: i32) -> Vec<f64> {
    let (held_out, trained): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_held_out);
    let mut numbers = vec![trained.len() as f64, held_out.len() as f64];
    match target {
        TreesTarget::Classes(count) => {
            let mut levels = vec![0.0; count];
            trained
                .iter()
                .for_each(|row| levels[row.outcome as usize] += 1.0);
            numbers.extend(levels);
        }
        TreesTarget::Condition | TreesTarget::Number => {
            let grid = StepGrid::new(if target.is_probability() { 0 } else { bits });
            let sum = trained.iter().map(|row| grid.steps(row.outcome)).sum();
            numbers.push(grid.number(sum));
        }
    }
    numbers
}

/// Whole multiples of 2^−bits.
#[derive(Clone, Copy)]
struct StepGrid {
    parts: f64,
}

impl StepGrid {
    fn new(bits: i32) -> Self {
        Self {
            parts: (1u64 << bits.max(0)) as f64,
        }
    }

    fn steps(self, number: f64) -> i64 {
        (number * self.parts).round_ties_even() as i64
    }

    /// Exact up to 2⁵³ steps.
    fn number(self, steps: i64) -> f64 {
        steps as f64 / self.parts
    }
}

/// Adds the trees so far to the scores that they begin with.
pub(super) fn add_trees(scores: &mut [f64], trees: &[BoostedTree], bins: &[RowBin]) {
    let count = scores.len();
    for (at, tree) in trees.iter().enumerate() {
        scores[at % count] += tree.value(bins);
    }
}

/// The numbers of a round after the second: sums of the asked nodes of all trees that grow, and at their roots the losses of
/// the trees so far.
pub(super) fn sums(
    kind: &Trees,
    (target, columns): (TreesTarget, &[BinnedColumn]),
    rows: &[BinnedRow],
    (bases, progress): (&[f64], &TreesProgress),
    bits: i32,
) -> Vec<f64> {
    let cells: usize = columns.iter().map(BinnedColumn::cells).sum();
    let nodes: usize = progress.growing.iter().map(|one| one.open.len()).sum();
    let (grid, coarse) = (StepGrid::new(bits), StepGrid::new(bits - LOSS_BITS));
    let mut sums = vec![[0i64; 3]; nodes * cells];
    let mut losses = [0i64; 2];
    let mut scores = Vec::new();
    for row in rows {
        scores.clear();
        scores.extend_from_slice(bases);
        add_trees(&mut scores, &progress.trees, &row.bins);
        losses[usize::from(row.is_held_out)] += coarse.steps(target.loss(&scores, row.outcome));
        if row.is_held_out || progress.growing.is_empty() {
            continue;
        }
        let derivatives = target.derivatives(&scores, row.outcome);
        // The place of the first node of a tree.
        let mut first = 0;
        for (growing, derivatives) in progress.growing.iter().zip(derivatives) {
            let leaf = growing.tree.leaf_of(&row.bins);
            let node = growing.open.iter().position(|open| open.asked == leaf);
            if let Some(node) = node {
                let [gradient, hessian] = derivatives.map(|number| grid.steps(number));
                let mut at = (first + node) * cells;
                for (column, bin) in columns.iter().zip(&row.bins) {
                    let cell = &mut sums[at + usize::from(bin.bin)];
                    cell[0] += gradient;
                    cell[1] += hessian;
                    cell[2] += 1;
                    at += column.cells();
                }
            }
            first += growing.open.len();
        }
    }
    let mut numbers: Vec<f64> = sums.iter().map(|cell| grid.number(cell[0])).collect();
    if target.is_probability() {
        numbers.extend(sums.iter().map(|cell| grid.number(cell[1])));
    }
    numbers.extend(sums.iter().map(|cell| cell[2] as f64));
    if progress.growing.iter().all(GrowingTree::is_at_root) {
        let losses = losses.iter().take(kind.loss_count());
        numbers.extend(losses.map(|loss| coarse.number(*loss)));
    }
    numbers
}
