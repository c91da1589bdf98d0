//! Shortest paths in graphs whose edges have lengths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use petgraph::visit::EdgeRef;
use serde::{Deserialize, Serialize};

use super::super::Graph;
use super::betweenness::{MANY, add_up};

/// Length of an edge for centralities based on shortest paths. It decreases with the similarity.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// 1 for every edge: the graph is unweighted.
    #[default]
    Hops,
    /// `1 − R` for similarity `R`.
    Complement,
    /// `1/R` for similarity `R`.
    Reciprocal,
}

/// Lengths are integer multiples of `1/UNIT`. So sums are exact, equally long paths tie in both
/// directions, and no edge has length 0 (a similarity may be exactly 1).
const UNIT: f64 = (1u64 << 32) as f64;

/// Largest length of an edge: distances over any number of clients stay within 64 bits.
const LONGEST: f64 = 1024.0;

impl Lengths {
    /// The length of an edge in units of `1/UNIT`, at least 1.
    fn of(self, similarity: f64) -> u64 {
        let length = match self {
            Self::Hops => 1.0,
            Self::Complement => 1.0 - similarity,
            Self::Reciprocal => 1.0 / similarity,
        };
        ((length.min(LONGEST) * UNIT).round() as u64).max(1)
    }
}

/// Adjacency lists with lengths, ascending.
pub(super) struct Distances {
    from: Vec<Vec<(usize, u64)>>,
}

impl Distances {
    /// The adjacency lists of a graph.
    pub(super) fn new(graph: &Graph, lengths: Lengths) -> Self {
        let mut from = vec![Vec::new(); graph.node_count()];
        for edge in graph.edge_references() {
            let (a, b) = (edge.source().index(), edge.target().index());
            let length = lengths.of(*edge.weight());
            from[a].push((b, length));
            from[b].push((a, length));
        }
        from.iter_mut().for_each(|edges| edges.sort_unstable());
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

    /// All nodes in reach of `source`, itself first, with their distances; nearest first.
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
        // The predecessors of a node on shortest paths.
        let before = |node: usize| {
            let edges = self.from[node].iter();
            let shortest = edges.filter(move |(from, length)| {
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
            // Summed again: counts may have been scaled in between.
            let arriving: f64 = before(node).map(|from| paths[from]).sum();
            let share = (1.0 + dependency[node]) / arriving;
            for from in before(node) {
                dependency[from] += paths[from] * share;
            }
            total[node] += dependency[node];
        }
    }
}
