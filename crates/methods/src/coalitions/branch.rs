//! Branch and bound: solves the coalition program to proven optimality.
//!
//! A node of the search tree fixes some pairs as together and some as apart; its
//! [`relaxation`](super::relaxation) gives a lower bound of all groupings in it and a point from
//! which a good grouping is rounded. Nodes are processed in the order of their bounds, a fixed number
//! at a time, so that the result does not depend on the number of threads.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::relaxation::{FixedPairs, Iterate, RelaxationLimit, relax};
use super::{CoalitionProgram, search};
use crate::Matrix;

/// Number of nodes processed in parallel.
const BATCH: usize = 4;

/// Iterations of the relaxation at the root, and at every other node. A node that needs more is
/// branched on.
const ROOT_ITERATIONS: usize = 2000;
const NODE_ITERATIONS: usize = 200;

/// Result of a search.
pub(super) struct SearchProgress {
    /// The best assignment.
    pub(super) best: Vec<u32>,
    /// A lower bound of the cost of every grouping.
    pub(super) bound: f64,
}

/// Searches until the bound meets the cost of the best assignment, more than `nodes` nodes were
/// created, or `stop` returns true.
///
/// `best` is a good assignment and `bound` a lower bound, from elsewhere.
pub(super) fn search(
    program: &CoalitionProgram,
    best: Vec<u32>,
    bound: f64,
    nodes: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> SearchProgress {
    let mut search = BranchSearch {
        program,
        cost: program.cost(&best),
        best,
        stop,
    };
    let root = BranchNode {
        bound,
        number: 0,
        fixed: FixedPairs::nothing(program.n),
        from: Iterate::start(program),
    };
    let mut open = BinaryHeap::from([root]);
    let mut numbers = 1;
    // The least bound of the nodes that need no further branching.
    let mut closed = f64::INFINITY;
    while let Some(bound) = open.peek().map(|node| node.bound) {
        if program.closes(search.cost, bound) || numbers > nodes || stop() {
            break;
        }
        let batch: Vec<BranchNode> = (0..BATCH).map_while(|_| open.pop()).collect();
        let known = search.cost;
        let results: Vec<BranchResult> = batch
            .into_par_iter()
            .map(|node| search.open(node, known))
            .collect();
        for opened in results {
            search.keep_better(opened.found);
            if opened.children.is_empty() {
                closed = closed.min(opened.bound);
            }
            for child in opened.children {
                open.push(BranchNode {
                    number: numbers,
                    ..child
                });
                numbers += 1;
            }
        }
    }
    let left = open.peek().map_or(f64::INFINITY, |node| node.bound);
    let bound = left.min(closed).min(search.cost).max(bound);
    SearchProgress {
        best: search.best,
        bound,
    }
}

struct BranchSearch<'a> {
    program: &'a CoalitionProgram,
    best: Vec<u32>,
    cost: f64,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// A node: a part of the space of groupings.
struct BranchNode {
    bound: f64,
    /// Order of creation.
    number: u64,
    fixed: FixedPairs,
    from: Iterate,
}

/// Result of processing a node.
struct BranchResult {
    bound: f64,
    found: Vec<u32>,
    /// Both halves of the node; empty if it contains nothing better, or a single grouping.
    children: Vec<BranchNode>,
}

impl BranchSearch<'_> {
    fn keep_better(&mut self, found: Vec<u32>) {
        let cost = self.program.cost(&found);
        if cost < self.cost {
            (self.best, self.cost) = (found, cost);
        }
    }

    fn open(&self, node: BranchNode, known: f64) -> BranchResult {
        let BranchNode {
            bound,
            fixed,
            from,
            number,
        } = node;
        if let Some(only) = self.leaf(&fixed) {
            let bound = only
                .as_ref()
                .map_or(f64::INFINITY, |only| self.program.cost(only));
            return BranchResult {
                bound,
                found: only.unwrap_or_else(|| self.best.clone()),
                children: Vec::new(),
            };
        }
        let until = RelaxationLimit {
            bound: self.program.closing_bound(known),
            iterations: if number == 0 {
                ROOT_ITERATIONS
            } else {
                NODE_ITERATIONS
            },
            stop: self.stop,
        };
        let (relaxed, iterate) = relax(self.program, &fixed, from, &until);
        let bound = bound.max(relaxed);
        let found = round(self.program, &iterate.point);
        let cost = self.program.cost(&found).min(known);
        let children = if self.program.closes(cost, bound) {
            Vec::new()
        } else {
            halves(&fixed, &iterate, bound)
        };
        BranchResult {
            bound,
            found,
            children,
        }
    }

    /// The only grouping left in a node where everything is fixed.
    #[expect(
        clippy::option_option,
        reason = "None: not a leaf; Some(None): a leaf without a grouping; Some(Some(_)): with one"
    )]
    fn leaf(&self, fixed: &FixedPairs) -> Option<Option<Vec<u32>>> {
        let blocks = fixed.blocks.len();
        let decided = fixed.apart.len() == blocks * (blocks - 1) / 2;
        if blocks > self.program.coalitions && !decided {
            return None;
        }
        Some((blocks == self.program.coalitions).then(|| {
            let mut assignment = vec![0; self.program.n];
            for (number, block) in (0..).zip(&fixed.blocks) {
                for &entry in block {
                    assignment[entry] = number;
                }
            }
            assignment
        }))
    }
}

/// Rounds a point of the relaxation to a grouping and improves it by local search.
pub(super) fn round(program: &CoalitionProgram, point: &Matrix) -> Vec<u32> {
    let mut far = point.clone();
    for value in far.values_mut() {
        *value = -*value;
    }
    let mut assignment = search::merged(&far, program.coalitions);
    search::descend(program, &mut assignment);
    assignment
}

/// Branches on the pair of blocks that the point is least decided about: together, and apart.
fn halves(fixed: &FixedPairs, iterate: &Iterate, bound: f64) -> Vec<BranchNode> {
    let (a, b) = undecided(fixed, &iterate.point);
    let child = |fixed| BranchNode {
        bound,
        number: 0,
        fixed,
        from: iterate.clone(),
    };
    let mut apart = fixed.clone();
    apart.apart.push((a, b));
    vec![child(together(fixed, a, b)), child(apart)]
}

/// `fixed` with blocks `a < b` joined into `a`.
fn together(fixed: &FixedPairs, a: usize, b: usize) -> FixedPairs {
    let mut blocks = fixed.blocks.clone();
    let joined = blocks.remove(b);
    blocks[a].extend(joined);
    let place = |block: usize| match block.cmp(&b) {
        Ordering::Less => block,
        Ordering::Equal => a,
        Ordering::Greater => block - 1,
    };
    let mut apart: Vec<_> = fixed
        .apart
        .iter()
        .map(|&(x, y)| (place(x), place(y)))
        .map(|(x, y)| (x.min(y), x.max(y)))
        .collect();
    apart.sort_unstable();
    apart.dedup();
    FixedPairs { blocks, apart }
}

/// The pair of blocks, not yet apart, for which both the shared entry and the difference of the rows
/// are large: in a grouping one of the two is 0. Ties go to the first.
fn undecided(fixed: &FixedPairs, point: &Matrix) -> (usize, usize) {
    let mut best = (f64::NEG_INFINITY, (0, 1));
    for (b, second) in fixed.blocks.iter().enumerate() {
        for (a, first) in fixed.blocks[..b].iter().enumerate() {
            if fixed.apart.contains(&(a, b)) {
                continue;
            }
            let (i, j) = (first[0], second[0]);
            let rows = point.row(i).iter().zip(point.row(j));
            let differ: f64 = rows.map(|(x, y)| (x - y) * (x - y)).sum();
            let score = point[(i, j)].min(differ);
            if score > best.0 {
                best = (score, (a, b));
            }
        }
    }
    best.1
}

impl PartialEq for BranchNode {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for BranchNode {}

impl PartialOrd for BranchNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BranchNode {
    /// The heap pops its maximum: the node with the least bound, in ties the newest.
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .bound
            .total_cmp(&self.bound)
            .then(self.number.cmp(&other.number))
    }
}
