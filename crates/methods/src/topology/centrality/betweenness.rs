//! Betweenness with hops as distances: Brandes' algorithm, level by level over bit sets.

use rayon::prelude::*;

use super::neighbours::{NeighbourSets, SearchLevels, members};

/// Number of sources whose contributions are added together. It does not depend on the number of
/// threads, so that the order of every sum is fixed.
const SOURCES: usize = 16;

/// Path counts above this are scaled down, so that they never overflow.
pub(super) const MANY: f64 = 1e150;

/// `Σ σ_st(k)/σ_st` over unordered pairs `{s, t}` without `k`, for every node `k`, where `σ_st`
/// counts the shortest paths from `s` to `t` and `σ_st(k)` those through `k`; by Brandes' (2001)
/// recursion over the dependencies of one source on every node.
pub(super) fn betweenness(neighbours: &NeighbourSets) -> Vec<f64> {
    let nodes = neighbours.nodes();
    add_up(nodes, |sources, total| {
        let mut search = PathSearch::new(neighbours);
        for source in sources {
            search.add_dependencies(source, total);
        }
    })
}

/// Sums the dependencies of all sources, which `add` computes for a few at a time, and halves them:
/// every pair is counted from both ends.
pub(super) fn add_up(
    nodes: usize,
    add: impl Fn(std::ops::Range<usize>, &mut [f64]) + Sync,
) -> Vec<f64> {
    let parts: Vec<Vec<f64>> = (0..nodes.div_ceil(SOURCES))
        .into_par_iter()
        .map(|part| {
            let mut total = vec![0.0; nodes];
            let sources = part * SOURCES..nodes.min((part + 1) * SOURCES);
            add(sources, &mut total);
            total
        })
        .collect();
    let mut total = vec![0.0; nodes];
    for part in parts {
        for (total, part) in total.iter_mut().zip(part) {
            *total += part;
        }
    }
    total.iter().map(|total| total / 2.0).collect()
}

/// State of the search from one source.
struct PathSearch<'a> {
    neighbours: &'a NeighbourSets,
    levels: SearchLevels<'a>,
    /// Number of shortest paths from the source; ratios of them on levels that were scaled down.
    paths: Vec<f64>,
    /// First 1/σ, then (1 + δ)/σ: what a node gives every path that reaches it.
    shares: Vec<f64>,
}

impl<'a> PathSearch<'a> {
    fn new(neighbours: &'a NeighbourSets) -> Self {
        Self {
            neighbours,
            levels: SearchLevels::new(neighbours),
            paths: neighbours.values(0.0),
            shares: neighbours.values(0.0),
        }
    }

    /// Adds the dependency `δ_s(k) = Σ_t σ_st(k)/σ_st` of `source` to the total of every other
    /// node `k`.
    fn add_dependencies(&mut self, source: usize, total: &mut [f64]) {
        self.levels.search(source);
        self.paths[source] = 1.0;
        for (before, level) in self.levels.sets().zip(self.levels.sets().skip(1)) {
            let mut most: f64 = 0.0;
            for node in members(level) {
                let paths = self.neighbours.of(node).sum(before, &self.paths);
                self.paths[node] = paths;
                self.shares[node] = 1.0 / paths;
                most = most.max(paths);
            }
            if most > MANY {
                scale(&mut self.paths, level, most);
            }
        }
        // Nodes of the last level have dependency 0; the source is not between itself and others.
        let inner = self.levels.sets().skip(1);
        let outer = self.levels.sets().skip(2);
        for (level, after) in inner.zip(outer).rev() {
            for node in members(level) {
                let dependency =
                    self.paths[node] * self.neighbours.of(node).sum(after, &self.shares);
                self.shares[node] *= 1.0 + dependency;
                total[node] += dependency;
            }
        }
    }
}

/// Scales the counts of a level to at most 1: only their ratios matter to the next level. Ratios
/// beyond 10¹⁵⁰ are cut off there, which does not change any sum.
fn scale(paths: &mut [f64], level: &[u64], most: f64) {
    for node in members(level) {
        paths[node] = (paths[node] / most).max(1.0 / MANY);
    }
}
