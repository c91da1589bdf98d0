//! Memory of a strategy from round to round besides models: typed values by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Values by name. Names begin with that of the method, as in `"tfl.lambda"`.
///
/// The state comes with outcome documents of other members, so a strategy reads it by the methods
/// that check lengths and ranges. Each gives `None` for a value that is missing, of another type,
/// or out of its bounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Memory(BTreeMap<String, Kept>);

/// One value that a strategy keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Kept {
    /// A count, or an index.
    Count(u64),
    /// Counts, one for every entry or member.
    Counts(Vec<u64>),
    /// A number.
    Number(f64),
    /// Numbers, one for every entry or member.
    Numbers(Vec<f64>),
    /// The coalition, or the model, of every entry.
    Assignment(Vec<u32>),
    /// Assignments of the same entries, of which a later round chooses one.
    Candidates(Vec<Vec<u32>>),
    /// The cluster of every member; `None` for an absent one.
    Clusters(Vec<Option<u32>>),
    /// A graph of members or clusters.
    Graph(Edges),
}

/// An undirected graph without loops.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edges {
    /// Number of nodes.
    pub nodes: u32,
    /// Pairs of neighbours, the lower node first, ascending.
    pub edges: Vec<[u32; 2]>,
}

impl Memory {
    /// Returns whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of that name, unchecked.
    pub fn get(&self, name: &str) -> Option<&Kept> {
        self.0.get(name)
    }

    /// Keeps a value.
    pub fn insert(&mut self, name: impl Into<String>, value: Kept) {
        self.0.insert(name.into(), value);
    }

    /// Drops a value.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Kept)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A count.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Kept::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Kept::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// `length` counts.
    pub fn counts(&self, name: &str, length: usize) -> Option<&[u64]> {
        match self.get(name)? {
            Kept::Counts(counts) if counts.len() == length => Some(counts),
            _ => None,
        }
    }

    /// A distribution over `length` members: numbers of at least 0 that add up to 1 but for
    /// rounding.
    pub fn distribution(&self, name: &str, length: usize) -> Option<&[f64]> {
        let Kept::Numbers(shares) = self.get(name)? else {
            return None;
        };
        let sum: f64 = shares.iter().sum();
        let holds = shares.len() == length
            && shares.iter().all(|&share| share >= 0.0)
            && (sum - 1.0).abs() <= 1e-6;
        holds.then_some(shares)
    }

    /// An assignment of `length` entries to numbers below `below`.
    pub fn assignment(&self, name: &str, length: usize, below: usize) -> Option<&[u32]> {
        match self.get(name)? {
            Kept::Assignment(all) if fits(all, length, below) => Some(all),
            _ => None,
        }
    }

    /// At least one assignment of `length` entries to at most as many coalitions.
    pub fn candidates(&self, name: &str, length: usize) -> Option<&[Vec<u32>]> {
        let Kept::Candidates(all) = self.get(name)? else {
            return None;
        };
        let holds = !all.is_empty() && all.iter().all(|one| fits(one, length, length));
        holds.then_some(all)
    }
}

impl<N: Into<String>, const VALUES: usize> From<[(N, Kept); VALUES]> for Memory {
    fn from(values: [(N, Kept); VALUES]) -> Self {
        Self(values.map(|(name, value)| (name.into(), value)).into())
    }
}

fn fits(assignment: &[u32], length: usize, below: usize) -> bool {
    assignment.len() == length && assignment.iter().all(|&own| (own as usize) < below)
}

impl Kept {
    /// The value in a report.
    pub fn json(&self) -> Value {
        match self {
            Self::Count(count) => json!(count),
            Self::Counts(counts) => json!(counts),
            Self::Number(number) => json!(number),
            Self::Numbers(numbers) => json!(numbers),
            Self::Assignment(assignment) => json!(assignment),
            Self::Candidates(assignments) => json!(assignments),
            Self::Clusters(clusters) => json!(clusters),
            Self::Graph(graph) => json!({ "nodes": graph.nodes, "edges": graph.edges }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(value: Kept) -> Memory {
        let mut memory = Memory::default();
        memory.insert("it", value);
        memory
    }

    #[test]
    fn values_out_of_their_bounds_are_not_read() {
        let shares = |shares: &[f64]| memory(Kept::Numbers(shares.to_vec()));
        assert!(shares(&[0.25, 0.75]).distribution("it", 2).is_some());
        for wrong in [
            vec![0.5],
            vec![0.25, 0.25],
            vec![1.5, -0.5],
            vec![f64::NAN, 1.0],
            vec![f64::INFINITY, 0.0],
        ] {
            assert_eq!(shares(&wrong).distribution("it", 2), None, "{wrong:?}");
        }
        let assigned = memory(Kept::Assignment(vec![0, 2]));
        assert!(assigned.assignment("it", 2, 3).is_some());
        assert_eq!(assigned.assignment("it", 2, 2), None);
        assert_eq!(assigned.assignment("it", 3, 3), None);
        let candidates = |all: &[&[u32]]| {
            memory(Kept::Candidates(
                all.iter().map(|one| one.to_vec()).collect(),
            ))
        };
        assert!(
            candidates(&[&[0, 0], &[0, 1]])
                .candidates("it", 2)
                .is_some()
        );
        assert_eq!(candidates(&[]).candidates("it", 2), None);
        assert_eq!(candidates(&[&[0, 0], &[0]]).candidates("it", 2), None);
        assert_eq!(candidates(&[&[0, 2]]).candidates("it", 2), None);
        assert_eq!(memory(Kept::Counts(vec![1, 2])).counts("it", 3), None);
    }

    #[test]
    fn values_of_another_type_or_name_are_not_read() {
        let count = memory(Kept::Count(3));
        assert_eq!(count.count("it"), Some(3));
        assert_eq!(count.count("other"), None);
        assert_eq!(count.distribution("it", 1), None);
        assert_eq!(memory(Kept::Number(3.0)).count("it"), None);
    }
}
