//! Gradient-boosted trees, grown from sums of gradients and hessians in agreed bins (Friedman 2001; Chen & Guestrin
//! 2016, equations 5 to 7; histograms as of Ke et al. 2017).
//!
//! Trees grow level by level. For a node a site sends, by column and bin, the sums of the gradients and hessians of its
//! rows, and their number; the sum over sites determines the best split. Of two sisters the one with fewer rows is
//! asked for, and the other is their parent without it. The number of rounds is that of levels.
//!
//! The gradient and hessian of a row are whole multiples of an agreed step before they are added. So every sum is exact
//! whatever the order of rows, and the trees are bit by bit those of one table with all rows.

mod bins;
mod grow;
mod options;
mod result;
mod site;
mod target;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use bins::BinnedColumn;
pub use grow::{BoostedTree, TreeNode, TreeSplit};
pub use result::{ColumnImportance, TreesLoss, TreesOutcome};

use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, Condition, QuestionInput};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};
use grow::{GrowingTree, NodeSums};
use target::TreesTarget;

/// A leaf tells the mean residual of its rows, so it never has fewer.
const FEWEST_ROWS: u64 = 20;
/// Most numbers of one round.
const MOST_NUMBERS: u64 = 1 << 21;
/// Bits behind the point of a row's gradient, for up to [`EXACT_ROWS`] rows.
const BITS: i32 = 40;
/// With so many rows of at most 1 a sum has 52 bits.
const EXACT_ROWS: f64 = 4096.0;
/// Losses reach 2⁶ times as far as gradients, in steps as much coarser.
const LOSS_BITS: i32 = 6;

/// Gradient-boosted trees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Trees {
    /// The outcome: a condition such as `num > 0`, whose probability is learned by the log loss; a column with agreed
    /// levels, whose probabilities are, with a tree of each level at a time; or a column with an agreed range, which is
    /// learned by the squared error.
    pub outcome: String,
    /// Columns with agreed ranges or levels or with `edges`, and conditions.
    pub columns: Vec<String>,
    /// Most trees, of each level of the outcome; fewer if no split is left that lowers the loss.
    pub trees: usize,
    /// Levels of splits of a tree.
    #[serde(default = "three")]
    pub depth: usize,
    /// Learning rate, above 0 and up to 1: the part of its estimate that a leaf adds.
    #[serde(default = "tenth")]
    pub rate: f64,
    /// The penalty λ of a leaf's squared estimate, ≥ 0.
    #[serde(default = "whole")]
    pub lambda: f64,
    /// The fewest rows of a leaf, 20 or more.
    #[serde(default = "fewest")]
    pub min_rows: u64,
    /// The least sum of hessians in a leaf.
    #[serde(default = "least")]
    pub min_hessian: f64,
    /// Bins of equal width of a column with an agreed range.
    #[serde(default = "bins")]
    pub bins: usize,
    /// The numbers between the bins of a column, ascending, such as its quantiles.
    #[serde(default)]
    pub edges: BTreeMap<String, Vec<f64>>,
    /// The part of the rows that is held out, by a hash of a row's columns, to measure the loss of rows that no tree has
    /// seen.
    #[serde(default)]
    pub held_out: f64,
}

fn three() -> usize {
    3
}
fn tenth() -> f64 {
    0.1
}
fn whole() -> f64 {
    1.0
}
fn fewest() -> u64 {
    FEWEST_ROWS
}
fn least() -> f64 {
    1e-3
}
fn bins() -> usize {
    32
}

/// The rows that trees are grown from, and the score that they begin with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TreesStart {
    rows: f64,
    held_out: f64,
    /// Rows in which the outcome holds, rows of each level, or the sum of outcomes scaled to ±1.
    outcomes: Vec<f64>,
}

/// The trees between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreesProgress {
    start: Option<TreesStart>,
    /// The trees, of several levels of the outcome one of each after the other.
    trees: Vec<BoostedTree>,
    /// The losses of the first tree, the first two and so on; first of none.
    losses: Vec<TreesLoss>,
    /// The trees that grow now, one of each score; none once all have grown.
    growing: Vec<GrowingTree>,
}

impl Trees {
    /// Sums of a bin: gradient and rows, and of probabilities the hessian; that of a squared error is 1.
    fn channels(&self, agreed: &AgreedColumns) -> u64 {
        2 + u64::from(self.target(agreed).is_probability())
    }

    /// Trees that grow at a time.
    pub(crate) fn scores(&self, agreed: &AgreedColumns) -> u64 {
        self.target(agreed).scores() as u64
    }

    /// Losses of a round: of the rows in training, and of held-out ones.
    fn loss_count(&self) -> usize {
        1 + usize::from(self.held_out > 0.0)
    }

    fn binned(&self, known: &CommonKnowledge) -> Vec<BinnedColumn> {
        let inputs = known.inputs.iter().take(self.columns.len());
        let columns = inputs.zip(&self.columns);
        columns
            .map(|(input, name)| BinnedColumn::of(input, name, self))
            .collect()
    }

    /// Bins of a node in all columns.
    fn cells(&self, agreed: &AgreedColumns) -> u64 {
        let of = |name: &String| match (agreed.levels.get(name), self.edges.get(name)) {
            (Some(levels), _) => levels.len() + 1,
            (None, Some(edges)) => edges.len() + 2,
            (None, None) if name.parse::<Condition>().is_ok() => 3,
            (None, None) => self.bins + 1,
        };
        self.columns.iter().map(|name| of(name) as u64).sum()
    }

    /// The most nodes that are asked for at a level, from 0, where there are so many rows.
    fn asked(&self, level: usize, rows: f64) -> u64 {
        let nodes = 1u64 << level.saturating_sub(1);
        // One of two sisters has rows for another split.
        let split = rows / (2.0 * self.min_rows as f64);
        nodes.min((split as u64).max(1))
    }

    /// The most numbers of a round.
    pub(crate) fn most_in_a_round(&self, agreed: &AgreedColumns) -> u64 {
        let nodes = self.asked(self.depth.saturating_sub(1), f64::INFINITY) * self.scores(agreed);
        let first = self.scores(agreed) + 2;
        let level = nodes * self.cells(agreed) * self.channels(agreed) + self.loss_count() as u64;
        level.max(first)
    }

    /// The most numbers that all rounds open after the counts, where there are so many rows.
    pub(crate) fn most_in_all(&self, agreed: &AgreedColumns, rows: f64) -> u64 {
        let nodes: u64 = (0..self.depth).map(|level| self.asked(level, rows)).sum();
        let scores = self.scores(agreed);
        let trees = scores * nodes * self.cells(agreed) * self.channels(agreed);
        let losses = self.loss_count() as u64;
        2 + scores + self.trees as u64 * (trees + losses) + losses
    }

    /// The most rounds, of counts, of outcomes, of every level and of the last loss.
    pub(crate) fn most_rounds(&self) -> u64 {
        3 + (self.trees * self.depth) as u64
    }

    /// Returns whether a site has 1 to `smallest` − 1 rows in a node of the next round.
    pub(crate) fn has_small_node(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &TreesProgress,
        smallest: u64,
    ) -> bool {
        let columns = self.binned(known);
        let rows = site::binned_rows(self, &columns, rows);
        progress.growing.iter().any(|growing| {
            let mut counts = BTreeMap::<usize, u64>::new();
            for row in rows.iter().filter(|row| !row.is_held_out) {
                *counts.entry(growing.tree.leaf_of(&row.bins)).or_default() += 1;
            }
            let open = growing.open.iter();
            let nodes = open.flat_map(|open| [Some(open.asked), open.other]);
            nodes
                .flatten()
                .any(|node| (1..smallest).contains(&counts.get(&node).copied().unwrap_or_default()))
        })
    }

    /// Returns whether a row with these values is used: its outcome is known, and no value is outside.
    pub(crate) fn uses(row: &[CellValue]) -> bool {
        site::is_used(row)
    }

    /// Returns whether trees are grown from a row with these values: it is used, and not held out.
    pub(crate) fn trains_on(&self, row: &[CellValue]) -> bool {
        site::is_used(row) && !site::is_held_out(row, self.held_out)
    }
}

/// Bits behind the point of gradients, where there are so many rows: their sum is exact in double precision.
fn step_bits(known: &CommonKnowledge) -> i32 {
    let mut bits = BITS;
    let mut reach = EXACT_ROWS;
    while reach < known.counts.rows && bits > 0 {
        reach *= 2.0;
        bits -= 1;
    }
    bits
}

impl SumKind for Trees {
    type Progress = TreesProgress;
    type Outcome = TreesOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        self.check(agreed)?;
        let columns = &self.columns;
        if let Some(twice) = (1..columns.len()).find(|at| columns[..*at].contains(&columns[*at])) {
            return Err(QuestionError::Other(format!(
                "\"{}\" is asked for twice",
                columns[twice]
            )));
        }
        let mut inputs = columns
            .iter()
            .map(|name| self.column(name, agreed))
            .collect::<Result<Vec<_>, _>>()?;
        inputs.push(match self.target(agreed) {
            TreesTarget::Classes(_) => agreed.level(&self.outcome)?,
            TreesTarget::Condition | TreesTarget::Number => agreed.term(&self.outcome)?,
        });
        Ok(inputs)
    }

    fn gates(&self, known: &CommonKnowledge) -> Gates {
        Gates {
            has_events: self.target(&known.agreed) == TreesTarget::Condition,
            ..Gates::default()
        }
    }

    fn is_event(&self, _known: &CommonKnowledge, row: &[f64]) -> bool {
        row[self.columns.len()] == 1.0
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<TreesProgress, QuestionStopped> {
        Ok(TreesProgress {
            start: None,
            trees: Vec::new(),
            losses: Vec::new(),
            growing: Vec::new(),
        })
    }

    fn layout(&self, known: &CommonKnowledge, progress: &TreesProgress) -> SumLayout {
        let (bits, empty) = (step_bits(known), SumLayout::default());
        let target = self.target(&known.agreed);
        if progress.start.is_none() {
            let counts = empty.counts("rows", 2, "rows with an outcome, held-out ones apart");
            return match target {
                TreesTarget::Condition => {
                    counts.counts("outcomes", 1, "rows in which the outcome holds")
                }
                TreesTarget::Classes(count) => {
                    counts.counts("outcomes", count, "rows of each level of the outcome")
                }
                TreesTarget::Number => {
                    counts.steps("outcomes", 1, "sum of outcomes scaled to ±1", bits)
                }
            };
        }
        let mut layout = empty;
        if !progress.growing.is_empty() {
            let cells: usize = self.binned(known).iter().map(BinnedColumn::cells).sum();
            let nodes = progress.growing.iter().map(|growing| growing.open.len());
            let cells = nodes.sum::<usize>() * cells;
            let hessians = if target.is_probability() { cells } else { 0 };
            layout = layout
                .steps(
                    "gradients",
                    cells,
                    "sum of gradients, by node, column and bin",
                    bits,
                )
                .steps("hessians", hessians, "sum of second derivatives", bits)
                .counts("rows", cells, "rows in each bin");
            if !progress.growing.iter().all(GrowingTree::is_at_root) {
                return layout;
            }
        }
        let unit = match target.is_probability() {
            true => "sum of log losses of the trees so far",
            false => "sum of squared errors of the trees so far",
        };
        layout.steps("losses", self.loss_count(), unit, bits - LOSS_BITS)
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &TreesProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let columns = self.binned(known);
        let rows = site::binned_rows(self, &columns, rows);
        let (bits, target) = (step_bits(known), self.target(&known.agreed));
        Ok(match &progress.start {
            None => site::outcomes(target, &rows, bits),
            Some(start) => {
                let bases = target.bases(start);
                site::sums(self, (target, &columns), &rows, (&bases, progress), bits)
            }
        })
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &TreesProgress,
        sum: &DecodedSum,
    ) -> Step<TreesProgress, TreesOutcome> {
        let mut next = progress.clone();
        let target = self.target(&known.agreed);
        let roots = || vec![GrowingTree::root(self); target.scores()];
        let Some(start) = &progress.start else {
            return match self.started(known, sum) {
                Ok(start) => {
                    next.start = Some(start);
                    next.growing = roots();
                    Step::Next(next)
                }
                Err(why) => Step::Stopped(why),
            };
        };
        if let [trained, held_out @ ..] = sum.block("losses") {
            let trained = trained / start.rows;
            let held_out = held_out.first().filter(|_| start.held_out > 0.0);
            next.losses.push(TreesLoss {
                trained,
                held_out: held_out.map(|loss| loss / start.held_out),
            });
        }
        let mut growing = std::mem::take(&mut next.growing);
        if growing.is_empty() {
            return Step::Done(TreesOutcome::of(self, known, &next, start));
        }
        let columns = self.binned(known);
        let cells: usize = columns.iter().map(BinnedColumn::cells).sum();
        let opened = NodeSums::of(sum, cells);
        let mut opened = opened.as_slice();
        for tree in &mut growing {
            let (own, others) = opened.split_at(tree.open.len().min(opened.len()));
            tree.advance(self, &columns, own);
            opened = others;
        }
        if growing.iter().any(|tree| !tree.open.is_empty()) {
            next.growing = growing;
            return Step::Next(next);
        }
        if growing.iter().all(GrowingTree::is_at_root) {
            // No split lowers the loss, and none of a later tree would: the gradients stay as they are.
            return Step::Done(TreesOutcome::of(self, known, &next, start));
        }
        next.trees.extend(growing.into_iter().map(|one| one.tree));
        if next.trees.len() < self.trees * target.scores() {
            next.growing = roots();
        }
        Step::Next(next)
    }
}

impl Trees {
    /// The rows to grow trees from, by the sum of the second round.
    fn started(
        &self,
        known: &CommonKnowledge,
        sum: &DecodedSum,
    ) -> Result<TreesStart, QuestionStopped> {
        let few = |what: &str, found: f64, needed: u64, remedy: &str| {
            if found >= needed as f64 {
                return Ok(());
            }
            let smallest = known.rules.smallest_cell;
            Err(QuestionStopped::TooFew {
                what: what.to_owned(),
                found: match found > 0.0 && found < smallest as f64 {
                    true => format!("fewer than {smallest}"),
                    false => found.to_string(),
                },
                needed,
                remedy: remedy.to_owned(),
            })
        };
        let rows = sum.block("rows");
        let start = TreesStart {
            rows: rows[0],
            held_out: rows[1],
            outcomes: sum.block("outcomes").to_vec(),
        };
        let wider = "use a wider filter, or ask more sites";
        few(
            "rows to grow trees from",
            start.rows,
            2 * self.min_rows,
            wider,
        )?;
        if self.held_out > 0.0 {
            let remedy = "ask with a larger `held-out`, or without it";
            few(
                "held-out rows",
                start.held_out,
                known.rules.smallest_cell,
                remedy,
            )?;
        }
        let fewest = known.rules.smallest_cell.max(1);
        match self.target(&known.agreed) {
            TreesTarget::Condition => {
                let with = start.outcomes[0];
                few("rows in which the outcome holds", with, fewest, wider)?;
                let without = "rows in which the outcome does not hold";
                few(without, start.rows - with, fewest, wider)?;
            }
            TreesTarget::Classes(_) => {
                let joined = "leave out the level or join it with another one, use a wider filter, or ask more sites";
                let levels = known.agreed.levels.get(&self.outcome).into_iter().flatten();
                for (level, rows) in levels.zip(&start.outcomes) {
                    let what = format!("rows of level \"{level}\" of the outcome");
                    few(&what, *rows, fewest, joined)?;
                }
            }
            TreesTarget::Number => {}
        }
        Ok(start)
    }
}
