//! A tree that grows level by level, from sums of gradients and hessians.

use serde::{Deserialize, Serialize};

use super::bins::RowBin;
use super::{BinnedColumn, Trees};
use crate::DecodedSum;

/// A split of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TreeSplit {
    /// The column, by its number.
    pub column: usize,
    /// Numbers up to this bin go to the left, of categories those of this level.
    pub bin: usize,
    /// By how much it lowers the loss: twice that of equation 7 of Chen & Guestrin.
    pub gain: f64,
    /// The node of the rows to the left, by its number in the tree.
    pub left: usize,
    /// The node of the others, and of missing values.
    pub right: usize,
}

/// A node of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TreeNode {
    /// Its split; none of a leaf.
    pub split: Option<TreeSplit>,
    /// Its level, from 0.
    pub depth: usize,
    /// Rows.
    pub rows: f64,
    /// Their sum of hessians.
    pub hessian: f64,
    /// The score that it adds, as a leaf or if it were one.
    pub value: f64,
}

/// A tree: node 0 is its root.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BoostedTree {
    /// Its nodes; children come after their parent.
    pub nodes: Vec<TreeNode>,
}

impl BoostedTree {
    /// The leaf of a row, by its bins, or the node that has no split yet.
    pub(super) fn leaf_of(&self, bins: &[RowBin]) -> usize {
        let mut at = 0;
        while let Some(split) = self.nodes.get(at).and_then(|node| node.split) {
            at = match bins[split.column].is_left(split.bin) {
                true => split.left,
                false => split.right,
            };
        }
        at
    }

    /// The score that it adds to a row.
    pub(super) fn value(&self, bins: &[RowBin]) -> f64 {
        self.nodes[self.leaf_of(bins)].value
    }
}

/// Sums of rows: exact, because all are multiples of one step and have at most 53 bits.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct GradientSums {
    gradient: f64,
    hessian: f64,
    rows: f64,
}

impl GradientSums {
    fn add(&mut self, other: Self) {
        self.gradient += other.gradient;
        self.hessian += other.hessian;
        self.rows += other.rows;
    }

    fn without(self, other: Self) -> Self {
        Self {
            gradient: self.gradient - other.gradient,
            hessian: self.hessian - other.hessian,
            rows: self.rows - other.rows,
        }
    }

    /// G²/(H+λ); 0 where both are 0.
    fn quality(self, lambda: f64) -> f64 {
        let below = self.hessian + lambda;
        if below > 0.0 {
            self.gradient * self.gradient / below
        } else {
            0.0
        }
    }

    fn node(self, kind: &Trees, depth: usize) -> TreeNode {
        let below = self.hessian + kind.lambda;
        let estimate = if below > 0.0 {
            self.gradient / below
        } else {
            0.0
        };
        TreeNode {
            split: None,
            depth,
            rows: self.rows,
            hessian: self.hessian,
            value: -kind.rate * estimate,
        }
    }
}

/// The sums of one node by column and bin, columns one after the other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct NodeSums(Vec<GradientSums>);

impl NodeSums {
    /// The nodes that a round opened.
    pub(super) fn of(sum: &DecodedSum, cells: usize) -> Vec<Self> {
        let (gradients, rows) = (sum.block("gradients"), sum.block("rows"));
        // The second derivative of a squared error is 1.
        let hessians = match sum.block("hessians") {
            [] => rows,
            hessians => hessians,
        };
        let bins = gradients.iter().zip(hessians).zip(rows);
        let bins: Vec<GradientSums> = bins
            .map(|((gradient, hessian), rows)| GradientSums {
                gradient: *gradient,
                hessian: *hessian,
                rows: *rows,
            })
            .collect();
        bins.chunks(cells).map(|node| Self(node.to_vec())).collect()
    }

    fn without(&self, other: &Self) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        Self(pairs.map(|(all, one)| all.without(*one)).collect())
    }

    /// All rows of the node: those of its first column.
    fn total(&self, columns: &[BinnedColumn]) -> GradientSums {
        let mut total = GradientSums::default();
        let first = columns.first().map_or(0, BinnedColumn::cells);
        self.0[..first].iter().for_each(|bin| total.add(*bin));
        total
    }

    /// The split with the largest gain above 0, of equal ones that of the least column and bin, with the sums of its
    /// left side.
    fn best(&self, kind: &Trees, columns: &[BinnedColumn]) -> Option<FoundSplit> {
        let total = self.total(columns);
        let whole = total.quality(kind.lambda);
        let enough = |side: &GradientSums| {
            side.rows >= kind.min_rows as f64 && side.hessian >= kind.min_hessian
        };
        let mut best: Option<FoundSplit> = None;
        let mut at = 0;
        for (column, binned) in columns.iter().enumerate() {
            let bins = &self.0[at..at + binned.cells()];
            at += bins.len();
            let mut left = GradientSums::default();
            for (bin, sums) in bins.iter().take(binned.known_bins()).enumerate() {
                if binned.has_levels() {
                    left = *sums;
                } else {
                    left.add(*sums);
                }
                let right = total.without(left);
                if !(enough(&left) && enough(&right)) {
                    continue;
                }
                let gain = left.quality(kind.lambda) + right.quality(kind.lambda) - whole;
                if gain > best.map_or(0.0, |best| best.gain) {
                    best = Some(FoundSplit {
                        column,
                        bin,
                        gain,
                        sides: [left, right],
                    });
                }
            }
        }
        best
    }
}

/// A split and the rows of its sides.
#[derive(Debug, Clone, Copy)]
struct FoundSplit {
    column: usize,
    bin: usize,
    gain: f64,
    sides: [GradientSums; 2],
}

/// A node whose sums are asked for, and its sister, if it has one, whose sums follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenNodes {
    pub(super) asked: usize,
    pub(super) other: Option<usize>,
    /// The sums of their parent; empty at the root.
    parent: NodeSums,
}

/// A tree between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct GrowingTree {
    pub(super) tree: BoostedTree,
    /// The nodes that may be split at the next level.
    pub(super) open: Vec<OpenNodes>,
}

impl GrowingTree {
    /// A tree without splits, before its rows are known.
    pub(super) fn root(kind: &Trees) -> Self {
        Self {
            tree: BoostedTree {
                nodes: vec![GradientSums::default().node(kind, 0)],
            },
            open: vec![OpenNodes {
                asked: 0,
                other: None,
                parent: NodeSums::default(),
            }],
        }
    }

    /// Returns whether it has no split.
    pub(super) fn is_at_root(&self) -> bool {
        self.tree.nodes.len() == 1
    }

    /// Splits the open nodes, by the sums of those that were asked for.
    pub(super) fn advance(&mut self, kind: &Trees, columns: &[BinnedColumn], asked: &[NodeSums]) {
        let open = std::mem::take(&mut self.open);
        for (open, sums) in open.iter().zip(asked) {
            let other = open.other.map(|other| (other, open.parent.without(sums)));
            if open.other.is_none() {
                self.tree.nodes[0] = sums.total(columns).node(kind, 0);
            }
            // In the order of the tree, which does not depend on who is asked.
            let mut both = vec![(open.asked, sums.clone())];
            both.extend(other);
            both.sort_by_key(|(node, _)| *node);
            for (node, sums) in both {
                self.split(kind, columns, node, sums);
            }
        }
    }

    fn split(&mut self, kind: &Trees, columns: &[BinnedColumn], node: usize, sums: NodeSums) {
        let Some(found) = sums.best(kind, columns) else {
            return;
        };
        let nodes = &mut self.tree.nodes;
        let depth = nodes[node].depth + 1;
        let (left, right) = (nodes.len(), nodes.len() + 1);
        nodes[node].split = Some(TreeSplit {
            column: found.column,
            bin: found.bin,
            gain: found.gain,
            left,
            right,
        });
        nodes.extend(found.sides.map(|side| side.node(kind, depth)));
        let rows = found.sides.map(|side| side.rows);
        let can_split = rows[0].max(rows[1]) >= 2.0 * kind.min_rows as f64;
        if depth < kind.depth && can_split {
            let (asked, other) = match rows[0] <= rows[1] {
                true => (left, right),
                false => (right, left),
            };
            self.open.push(OpenNodes {
                asked,
                other: Some(other),
                parent: sums,
            });
        }
    }
}
