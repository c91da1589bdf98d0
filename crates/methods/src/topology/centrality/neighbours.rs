//! Neighbourhoods as bit sets where they are large, and breadth-first search over them.
//!
//! A graph of similarities is dense and shallow: with a quarter of all edges nearly all nodes are at
//! most two steps apart. Unions of neighbourhoods, and sums over the neighbours in a level, then
//! cost a few machine words, where adjacency lists would visit every edge.
//! Nodes with fewer neighbours than a set has words keep a list.

use petgraph::graph::NodeIndex;

use super::super::Graph;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// The neighbours of every node.
pub(super) struct NeighbourSets {
    /// Words of a set.
    words: usize,
    near: Vec<Near>,
}

/// The neighbours of one node.
pub(super) enum Near {
    /// Ascending.
    Few(Vec<usize>),
    /// One bit per node.
    Many(Vec<u64>),
}

impl NeighbourSets {
    /// The neighbourhoods of a graph.
    pub(super) fn new(graph: &Graph) -> Self {
        let words = graph.node_count().div_ceil(WORD);
        let near = graph.node_indices().map(|node| {
            let mut list: Vec<usize> = graph.neighbors(node).map(NodeIndex::index).collect();
            if list.len() < words {
                list.sort_unstable();
                return Near::Few(list);
            }
            let mut bits = vec![0; words];
            list.iter().for_each(|&node| insert(&mut bits, node));
            Near::Many(bits)
        });
        Self {
            words,
            near: near.collect(),
        }
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.near.len()
    }

    /// The neighbours of a node.
    pub(super) fn of(&self, node: usize) -> &Near {
        &self.near[node]
    }

    /// A vector with `value` for every node and for the unused bits of the last word.
    pub(super) fn values(&self, value: f64) -> Vec<f64> {
        vec![value; self.words * WORD]
    }

    /// The set of all nodes.
    pub(super) fn all_nodes(&self) -> Vec<u64> {
        let mut set = vec![0; self.words];
        (0..self.nodes()).for_each(|node| insert(&mut set, node));
        set
    }
}

impl Near {
    /// Sum of the values of the neighbours that are in `set`, ascending (within each word, then over
    /// the words).
    ///
    /// `values` are as long as [`NeighbourSets::values`] makes them.
    pub(super) fn sum(&self, set: &[u64], values: &[f64]) -> f64 {
        match self {
            Self::Few(list) => list
                .iter()
                .filter(|&&node| contains(set, node))
                .map(|&node| values[node])
                .sum(),
            Self::Many(bits) => {
                let (values, _) = values.as_chunks::<WORD>();
                let words = bits.iter().zip(set).zip(values);
                words
                    .map(|((bits, set), values)| {
                        let mut rest = bits & set;
                        let mut sum = 0.0;
                        while rest != 0 {
                            sum += values[rest.trailing_zeros() as usize % WORD];
                            rest &= rest - 1;
                        }
                        sum
                    })
                    .sum()
            }
        }
    }

    /// Adds the neighbours to a set.
    fn join(&self, set: &mut [u64]) {
        match self {
            Self::Few(list) => list.iter().for_each(|&node| insert(set, node)),
            Self::Many(bits) => set
                .iter_mut()
                .zip(bits)
                .for_each(|(set, bits)| *set |= bits),
        }
    }
}

fn insert(set: &mut [u64], node: usize) {
    set[node / WORD] |= 1 << (node % WORD);
}

fn contains(set: &[u64], node: usize) -> bool {
    set[node / WORD] >> (node % WORD) & 1 == 1
}

/// The nodes of a set, ascending.
pub(super) fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    (0..).step_by(WORD).zip(set).flat_map(|(start, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (first < WORD).then_some(start + first)
        })
    })
}

/// A breadth-first search: the nodes at every distance from a source.
pub(super) struct SearchLevels<'a> {
    neighbours: &'a NeighbourSets,
    /// One set per distance, one after the other.
    sets: Vec<u64>,
    all: Vec<u64>,
    unseen: Vec<u64>,
}

impl<'a> SearchLevels<'a> {
    /// Workspace for searches.
    pub(super) fn new(neighbours: &'a NeighbourSets) -> Self {
        Self {
            neighbours,
            sets: Vec::new(),
            all: neighbours.all_nodes(),
            unseen: vec![0; neighbours.words],
        }
    }

    /// Searches from `source`; discards the previous search.
    pub(super) fn search(&mut self, source: usize) {
        let words = self.neighbours.words;
        self.sets.clear();
        self.sets.resize(words, 0);
        insert(&mut self.sets, source);
        self.unseen.copy_from_slice(&self.all);
        self.unseen[source / WORD] ^= 1 << (source % WORD);
        let mut last = 0;
        while self.unseen.iter().any(|&word| word != 0) {
            let end = self.sets.len();
            self.sets.resize(end + words, 0);
            let (before, next) = self.sets.split_at_mut(end);
            for node in members(&before[last..]) {
                self.neighbours.of(node).join(next);
            }
            let mut found = 0;
            for (next, unseen) in next.iter_mut().zip(&mut self.unseen) {
                *next &= *unseen;
                *unseen ^= *next;
                found |= *next;
            }
            if found == 0 {
                self.sets.truncate(end);
                break;
            }
            last = end;
        }
    }

    /// The sets of nodes at distance 0, 1, … of the last search; none is empty.
    pub(super) fn sets(&self) -> std::slice::ChunksExact<'_, u64> {
        self.sets.chunks_exact(self.neighbours.words)
    }
}
