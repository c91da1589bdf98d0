//! Closeness: how near everybody else is.

use rayon::prelude::*;

use super::lengths::Roads;
use super::neighbours::{Levels, Neighbours};

/// What one node can reach.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reach {
    /// Other nodes of its component.
    pub(super) others: f64,
    /// Sum of the distances (or resistances) to them.
    pub(super) distance: f64,
}

/// What every node reaches, in hops.
pub(super) fn by_hops(neighbours: &Neighbours) -> Vec<Reach> {
    (0..neighbours.nodes())
        .into_par_iter()
        .map_init(
            || Levels::new(neighbours),
            |levels, source| {
                levels.search(source);
                let mut reach = Reach::default();
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

/// What every node reaches, by lengths.
pub(super) fn by_lengths(roads: &Roads, nodes: usize) -> Vec<Reach> {
    (0..nodes)
        .into_par_iter()
        .map(|source| {
            let mut reach = Reach::default();
            for (_, distance) in roads.distances(source).skip(1) {
                reach.others += 1.0;
                reach.distance += distance;
            }
            reach
        })
        .collect()
}
