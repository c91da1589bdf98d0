//! Neighbourhoods as sets of bits, and breadth-first search over them.
//!
//! A graph of similarities is dense and shallow: with a quarter of all edges nearly everybody is
//! at most two steps away. Then the union of neighbourhoods, and sums over those neighbours that
//! lie in a given level, cost a few words of bits where adjacency lists would look at every edge.

use petgraph::visit::EdgeRef;

use super::super::Graph;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// Who is whose neighbour: one bit per ordered pair.
pub(super) struct Neighbours {
    nodes: usize,
    /// Words of a set.
    words: usize,
    bits: Vec<u64>,
}

impl Neighbours {
    /// Those of a graph.
    pub(super) fn new(graph: &Graph) -> Self {
        let nodes = graph.node_count();
        let words = nodes.div_ceil(WORD);
        let mut bits = vec![0; nodes * words];
        for edge in graph.edge_references() {
            let (a, b) = (edge.source().index(), edge.target().index());
            bits[a * words + b / WORD] |= 1 << (b % WORD);
            bits[b * words + a / WORD] |= 1 << (a % WORD);
        }
        Self { nodes, words, bits }
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The neighbours of a node.
    pub(super) fn of(&self, node: usize) -> &[u64] {
        &self.bits[node * self.words..(node + 1) * self.words]
    }

    /// A value for every node, and for the unused bits of the last word.
    pub(super) fn values(&self, value: f64) -> Vec<f64> {
        vec![value; self.words * WORD]
    }
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

/// Sum of the values of those nodes that are in both sets: within a word from the lowest node up,
/// then over the words.
///
/// `values` are as long as [`Neighbours::values`] makes them.
pub(super) fn sum(a: &[u64], b: &[u64], values: &[f64]) -> f64 {
    let (values, _) = values.as_chunks::<WORD>();
    let words = a.iter().zip(b).zip(values);
    words
        .map(|((a, b), values)| {
            let mut rest = a & b;
            let mut sum = 0.0;
            while rest != 0 {
                sum += values[rest.trailing_zeros() as usize % WORD];
                rest &= rest - 1;
            }
            sum
        })
        .sum()
}

/// A breadth-first search: the nodes at every distance from a source.
pub(super) struct Levels<'a> {
    neighbours: &'a Neighbours,
    /// One set per distance, one after the other.
    sets: Vec<u64>,
    unseen: Vec<u64>,
}

impl<'a> Levels<'a> {
    /// Room for searches.
    pub(super) fn new(neighbours: &'a Neighbours) -> Self {
        Self {
            neighbours,
            sets: Vec::new(),
            unseen: vec![0; neighbours.words],
        }
    }

    /// Searches from `source`; what was found before is forgotten.
    pub(super) fn search(&mut self, source: usize) {
        let words = self.neighbours.words;
        self.sets.clear();
        self.sets.resize(words, 0);
        self.sets[source / WORD] |= 1 << (source % WORD);
        self.unseen.fill(!0);
        if !self.neighbours.nodes.is_multiple_of(WORD) {
            self.unseen[words - 1] = (1 << (self.neighbours.nodes % WORD)) - 1;
        }
        self.unseen[source / WORD] ^= 1 << (source % WORD);
        let mut last = 0;
        while self.unseen.iter().any(|&word| word != 0) {
            let end = self.sets.len();
            self.sets.resize(end + words, 0);
            let (before, next) = self.sets.split_at_mut(end);
            for node in members(&before[last..]) {
                for (next, neighbours) in next.iter_mut().zip(self.neighbours.of(node)) {
                    *next |= neighbours;
                }
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
