//! Closeness: the reciprocal of mean distances to other nodes.

use rayon::prelude::*;

use super::lengths::Distances;
use super::neighbours::{NeighbourSets, SearchLevels};

/// The nodes that one node can reach.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReachableNodes {
    /// Number of other nodes in its component.
    pub(super) others: f64,
    /// Sum of the distances (or resistances) to them.
    pub(super) distance: f64,
}

/// The reach of every node, with distances in hops.
pub(super) fn by_hops(neighbours: &NeighbourSets) -> Vec<ReachableNodes> {
    (0..neighbours.nodes())
        .into_par_iter()
        .map_init(
            || SearchLevels::new(neighbours),
            |levels, source| {
                levels.search(source);
                let mut reach = ReachableNodes::default();
                for (distance, level) in levels.sets().enumerate().skip(1) {
                    let nodes = f64::from(level.iter().map(|word| word.count_ones()).sum::<u32>());
                    reach.others += nodes;
                    reach.distance += nodes * distance as f64;
                }
                reach
            },
        )
        .collect()
}

/// The reach of every node, with the lengths of edges.
pub(super) fn by_lengths(edges: &Distances, nodes: usize) -> Vec<ReachableNodes> {
    (0..nodes)
        .into_par_iter()
        .map(|source| {
            let mut reach = ReachableNodes::default();
            for (_, distance) in edges.distances(source).skip(1) {
                reach.others += 1.0;
                reach.distance += distance;
            }
            reach
        })
        .collect()
}
