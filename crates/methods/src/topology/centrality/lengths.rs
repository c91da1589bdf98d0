//! Shortest paths where edges have lengths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use petgraph::visit::EdgeRef;
use serde::{Deserialize, Serialize};

use super::super::Graph;
use super::betweenness::{MANY, add_up};

/// How long an edge is to a centrality that is made of shortest paths. A similarity itself is
/// never a length: the most alike would be the farthest apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// Every edge counts 1: the graph is binary.
    #[default]
    Hops,
    /// `1 − R` for similarity `R`.
    Complement,
    /// `1/R` for similarity `R`.
    Reciprocal,
}

/// Lengths are whole numbers of this many parts of 1. So sums of them are exact, paths of equal
/// length tie from whichever end they are measured, and no edge is of length 0 (the most alike
/// have a similarity of exactly 1).
const UNIT: f64 = (1u64 << 32) as f64;

/// The longest an edge can be: distances over any number of clients stay within 64 bits.
const LONGEST: f64 = 1024.0;

impl Lengths {
    /// The length of an edge in parts of 1, at least 1 part.
    fn of(self, similarity: f64) -> u64 {
        let length = match self {
            Self::Hops => 1.0,
            Self::Complement => 1.0 - similarity,
            Self::Reciprocal => 1.0 / similarity,
        };
        ((length.min(LONGEST) * UNIT).round() as u64).max(1)
    }
}

/// Neighbours and the lengths of the edges to them, by node, ascending.
pub(super) struct Roads {
    from: Vec<Vec<(usize, u64)>>,
}

impl Roads {
    /// Those of a graph.
    pub(super) fn new(graph: &Graph, lengths: Lengths) -> Self {
        let mut from = vec![Vec::new(); graph.node_count()];
        for edge in graph.edge_references() {
            let (a, b) = (edge.source().index(), edge.target().index());
            let length = lengths.of(*edge.weight());
            from[a].push((b, length));
            from[b].push((a, length));
        }
        from.iter_mut().for_each(|roads| roads.sort_unstable());
        Self { from }
    }

    /// `Σ σ_st(k)/σ_st` over unordered pairs `{s, t}` without `k`, for every node `k` (Brandes
    /// 2001).
    pub(super) fn betweenness(&self) -> Vec<f64> {
        add_up(self.from.len(), |sources, total| {
            for source in sources {
                self.add_dependencies(source, total);
            }
        })
    }

    /// Every node that can be reached from `source`, itself first, with its distance; nearest
    /// first.
    pub(super) fn distances(&self, source: usize) -> impl Iterator<Item = (usize, f64)> {
        let reached = self.reach(source);
        let distance = |(node, distance): (usize, u64)| (node, distance as f64 / UNIT);
        reached.into_iter().map(distance)
    }

    /// Dijkstra's algorithm: nodes with their distances, by distance, then by number.
    fn reach(&self, source: usize) -> Vec<(usize, u64)> {
        let mut nearest = vec![u64::MAX; self.from.len()];
        nearest[source] = 0;
        let mut queue = BinaryHeap::from([Reverse((0, source))]);
        let mut reached = Vec::new();
        while let Some(Reverse((distance, node))) = queue.pop() {
            if distance > nearest[node] {
                continue;
            }
            reached.push((node, distance));
            for &(neighbour, length) in &self.from[node] {
                let through = distance + length;
                if through < nearest[neighbour] {
                    nearest[neighbour] = through;
                    queue.push(Reverse((through, neighbour)));
                }
            }
        }
        reached
    }

    /// Adds the dependency `δ_s(k) = Σ_t σ_st(k)/σ_st` of `source` to the total of every other
    /// node `k`.
    fn add_dependencies(&self, source: usize, total: &mut [f64]) {
        let reached = self.reach(source);
        let mut distance = vec![u64::MAX; self.from.len()];
        for &(node, at) in &reached {
            distance[node] = at;
        }
        let distance = &distance;
        // The neighbours through which shortest paths come to a node.
        let before = |node: usize| {
            let roads = self.from[node].iter();
            let shortest = roads.filter(move |(from, length)| {
                distance[*from].checked_add(*length) == Some(distance[node])
            });
            shortest.map(|(from, _)| *from)
        };
        let mut paths = vec![0.0; self.from.len()];
        paths[source] = 1.0;
        for (at, &(node, _)) in reached.iter().enumerate().skip(1) {
            paths[node] = before(node).map(|from| paths[from]).sum();
            if paths[node] > MANY {
                // Only ratios matter from here on.
                for (known, _) in &reached[..=at] {
                    paths[*known] = (paths[*known] / MANY).max(1.0 / MANY);
                }
            }
        }
        let mut dependency = vec![0.0; self.from.len()];
        for &(node, _) in reached.iter().skip(1).rev() {
            // Added up again: what was scaled in between must not count for more than a whole.
            let arriving: f64 = before(node).map(|from| paths[from]).sum();
            let share = (1.0 + dependency[node]) / arriving;
            for from in before(node) {
                dependency[from] += paths[from] * share;
            }
            total[node] += dependency[node];
        }
    }
}
