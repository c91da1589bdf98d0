//! Numbers that a site computes from its rows: gradients by node and bin, and losses.

use super::bins::RowBin;
use super::{BinnedColumn, LOSS_BITS, Trees, TreesProgress};
use crate::table::CellValue;

/// A row of which the outcome is known, and no value lies outside of what is agreed.
pub(super) struct BinnedRow {
    pub(super) bins: Vec<RowBin>,
    /// 0 or 1, or a number scaled to ±1.
    outcome: f64,
    pub(super) is_held_out: bool,
}

/// Returns whether a row is used, in training or held out.
pub(super) fn is_used(row: &[CellValue]) -> bool {
    row.last().is_some_and(|outcome| outcome.known().is_some())
        && !row.contains(&CellValue::Outside)
}

/// Returns whether a row is held out. It depends on its values alone, so equal rows are on one side, at whatever site
/// they are.
pub(super) fn is_held_out(row: &[CellValue], part: f64) -> bool {
    crate::row_hash::part_of(row.iter().copied()) < part
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

/// Rows of both sides, and the sum of the outcomes of those in training.
pub(super) fn outcomes(kind: &Trees, rows: &[BinnedRow], bits: i32) -> Vec<f64> {
    let (held_out, trained): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_held_out);
    let grid = StepGrid::new(if kind.is_condition() { 0 } else { bits });
    let sum = trained.iter().map(|row| grid.steps(row.outcome)).sum();
    vec![
        trained.len() as f64,
        held_out.len() as f64,
        grid.number(sum),
    ]
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

/// Gradient and hessian of a row by its score.
fn derivatives(is_condition: bool, score: f64, outcome: f64) -> [f64; 2] {
    if is_condition {
        let probability = 1.0 / (1.0 + libm::exp(-score));
        [probability - outcome, probability * (1.0 - probability)]
    } else {
        [score - outcome, 1.0]
    }
}

/// The log loss, or the squared error.
fn loss(is_condition: bool, score: f64, outcome: f64) -> f64 {
    if is_condition {
        let against = if outcome > 0.0 { -score } else { score };
        // ln(1 + e^x) without overflow.
        against.max(0.0) + libm::log1p(libm::exp(-against.abs()))
    } else {
        (score - outcome) * (score - outcome)
    }
}

/// The numbers of a round after the second: sums of the asked nodes, and at a root the losses of the trees so far.
pub(super) fn sums(
    kind: &Trees,
    columns: &[BinnedColumn],
    rows: &[BinnedRow],
    (base, progress): (f64, &TreesProgress),
    bits: i32,
) -> Vec<f64> {
    let is_condition = kind.is_condition();
    let cells: usize = columns.iter().map(BinnedColumn::cells).sum();
    let open = progress.growing.as_ref();
    let nodes = open.map_or(0, |growing| growing.open.len());
    let (grid, coarse) = (StepGrid::new(bits), StepGrid::new(bits - LOSS_BITS));
    let mut sums = vec![[0i64; 3]; nodes * cells];
    let mut losses = [0i64; 2];
    for row in rows {
        let trees = progress.trees.iter();
        let score = trees.fold(base, |score, tree| score + tree.value(&row.bins));
        losses[usize::from(row.is_held_out)] +=
            coarse.steps(loss(is_condition, score, row.outcome));
        let Some(growing) = open.filter(|_| !row.is_held_out) else {
            continue;
        };
        let leaf = growing.tree.leaf_of(&row.bins);
        let Some(node) = growing.open.iter().position(|open| open.asked == leaf) else {
            continue;
        };
        let [gradient, hessian] =
            derivatives(is_condition, score, row.outcome).map(|number| grid.steps(number));
        let mut at = node * cells;
        for (column, bin) in columns.iter().zip(&row.bins) {
            let cell = &mut sums[at + usize::from(bin.bin)];
            cell[0] += gradient;
            cell[1] += hessian;
            cell[2] += 1;
            at += column.cells();
        }
    }
    let mut numbers: Vec<f64> = sums.iter().map(|cell| grid.number(cell[0])).collect();
    if is_condition {
        numbers.extend(sums.iter().map(|cell| grid.number(cell[1])));
    }
    numbers.extend(sums.iter().map(|cell| cell[2] as f64));
    if open.is_none_or(super::GrowingTree::is_at_root) {
        let losses = losses.iter().take(kind.loss_count());
        numbers.extend(losses.map(|loss| coarse.number(*loss)));
    }
    numbers
}
