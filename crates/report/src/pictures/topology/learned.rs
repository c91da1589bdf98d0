//! The graphs that a strategy learned, round by round.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{kept, of_members};
use crate::numbers;
use crate::story::Story;

/// The most graphs that are drawn between the first and the last.
const DRAWN: usize = 12;
/// The most edges in all of these, so that a page of many silos stays a page.
const DRAWN_EDGES: usize = 12_000;

/// A graph as it was learned in a round.
#[derive(Debug, PartialEq)]
pub(super) struct LearnedGraph {
    /// The first round after which it was like this.
    pub(super) round: u64,
    pub(super) nodes: usize,
    pub(super) edges: BTreeSet<(usize, usize)>,
    /// The cluster of every member, where nodes are clusters.
    pub(super) clusters: Option<Vec<Option<usize>>>,
    /// One number per node, adding up to 1.
    pub(super) prior: Vec<f64>,
}

impl LearnedGraph {
    /// Returns the number of edges that it has that the other has not.
    pub(super) fn more_than(&self, other: &Self) -> usize {
        self.edges.difference(&other.edges).count()
    }

    /// The number of its edges, in words.
    pub(super) fn joined(&self) -> String {
        numbers::plural(self.edges.len(), "edge")
    }
}

/// The graphs that differ from the one before, in order, and have as many nodes as the last.
pub(super) fn learned(story: &Story) -> Vec<LearnedGraph> {
    let members = story.silos.len();
    let mut graphs: Vec<LearnedGraph> = Vec::new();
    for round in &story.rounds {
        let Some(graph) = read(&round.memory, members, round.round) else {
            continue;
        };
        match graphs.last_mut() {
            Some(before) if before.edges == graph.edges && before.clusters == graph.clusters => {
                before.prior = graph.prior;
            }
            _ => graphs.push(graph),
        }
    }
    // Nodes are drawn in the places of the last graph.
    let nodes = graphs.last().map_or(0, |last| last.nodes);
    graphs.retain(|graph| graph.nodes == nodes);
    graphs
}

/// The graph that a strategy keeps after a round.
fn read(memory: &BTreeMap<String, Value>, members: usize, round: u64) -> Option<LearnedGraph> {
    let graph = kept(memory, ".graph")?;
    let nodes = graph.get("nodes")?.as_u64()? as usize;
    let end = |value: &Value| value.as_u64().map(|end| end as usize);
    let edge = |pair: &Value| {
        let [a, b] = pair.as_array()?.as_slice() else {
            return None;
        };
        let (a, b) = (end(a)?, end(b)?);
        (a.max(b) < nodes).then_some((a.min(b), a.max(b)))
    };
    let edges: Option<BTreeSet<_>> = graph.get("edges")?.as_array()?.iter().map(edge).collect();
    let clusters = kept(memory, ".clusters").and_then(Value::as_array);
    let clusters = clusters.filter(|all| all.len() == members && nodes != members);
    let clusters = clusters.map(|all| all.iter().map(end).collect::<Vec<_>>());
    let prior = kept(memory, ".prior").and_then(|prior| of_members(prior, members));
    let prior = prior.unwrap_or_else(|| vec![1.0 / members.max(1) as f64; members]);
    let prior = match &clusters {
        None if nodes == members => prior,
        None => return None,
        Some(clusters) => {
            let mut sums = vec![0.0; nodes];
            for (cluster, share) in clusters.iter().zip(&prior) {
                *sums.get_mut((*cluster)?)? += share;
            }
            sums
        }
    };
    Some(LearnedGraph {
        round,
        nodes,
        edges: edges?,
        clusters,
        prior,
    })
}

/// Returns how the graph changed, in one sentence.
pub(super) fn said(first: &LearnedGraph, last: &LearnedGraph, graphs: usize) -> String {
    let pairs = |graph: &LearnedGraph| graph.nodes * graph.nodes.saturating_sub(1) / 2;
    let of = |graph: &LearnedGraph| {
        let (edges, pairs) = (graph.edges.len(), pairs(graph));
        let all = numbers::plural(pairs, "pair");
        if pairs > 1 && edges == pairs {
            format!("all {all}")
        } else {
            format!("{edges} of {all}")
        }
    };
    if graphs == 1 {
        return format!(
            "Learned after round {} and unchanged since: {} {} joined.",
            last.round,
            of(last),
            numbers::verb(last.edges.len(), "is", "are")
        );
    }
    let (came, went) = (last.more_than(first), first.more_than(last));
    format!(
        "First learned after round {}, with {} joined; last changed after round {}, with {} joined. Between the \
         two, {} were added and {went} removed.",
        first.round,
        of(first),
        last.round,
        of(last),
        numbers::plural(came, "edge"),
    )
}

/// The places, in the list, of the graphs between the first and the last that are drawn: all of them where
/// they are few, or else some, evenly.
pub(super) fn between(graphs: &[LearnedGraph]) -> Vec<usize> {
    let inner = graphs.len().saturating_sub(2);
    let edges: usize = graphs.iter().map(|graph| graph.edges.len()).sum();
    let each = edges / graphs.len().max(1);
    let most = (DRAWN_EDGES / each.max(1)).clamp(1, DRAWN).min(inner);
    // The middles of equal parts.
    (0..most)
        .map(|part| 1 + (2 * part + 1) * inner / (2 * most))
        .collect()
}
