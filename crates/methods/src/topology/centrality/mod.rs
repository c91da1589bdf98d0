//! Six centrality measures of the nodes of a graph.
//!
//! Definitions are those of networkx, so that results can be compared. All of them are defined on
//! every graph, connected or not, and are finite and never negative. Sums are taken in an order
//! that does not depend on the number of threads, without fused operations or library kernels: the
//! same graph gives the same bits on every machine.

mod betweenness;
mod closeness;
mod current_flow;
mod eigenvector;
mod laplacian;
mod lengths;
mod neighbours;

pub use lengths::Lengths;

use serde::{Deserialize, Serialize};

use super::Graph;
use closeness::ReachableNodes;
use lengths::Distances;
use neighbours::NeighbourSets;

/// A centrality measure.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Centrality {
    /// Share of the shortest paths between other clients that lead through it (Freeman 1977): `Σ σ_st(k)/σ_st`
    /// over unordered pairs `{s, t}` without `k`. Normalised by `2/((K−1)(K−2))`, and 0 for fewer
    /// than three clients.
    #[default]
    Betweenness,
    /// Number of neighbours. Normalised by `1/(K−1)`.
    Degree,
    /// Closeness, `(r−1)/Σd` over distances `d`, with `r` nodes in its component. Normalised (Wasserman &
    /// Faust 1994) by the share of other nodes in reach, `(r−1)/(K−1)`.
    Closeness,
    /// Its entry in the leading eigenvector of the adjacency matrix, of Euclidean norm 1, raw as
    /// well as normalised (Bonacich 1972). Where the graph is not connected: the limit of power
    /// iteration from equal values, which is positive on the components with the largest
    /// eigenvalue only.
    Eigenvector,
    /// As betweenness, with paths replaced by electrical current (Newman 2005), where every edge is a
    /// unit resistor. Normalised by `2/((K−1)(K−2))` of the whole graph; between components no current
    /// flows.
    CurrentFlowBetweenness,
    /// As closeness, with distances replaced by resistances (Brandes & Fleischer 2005): `1/ΣR`
    /// within its component. Normalised by the square of the part of others that it reaches,
    /// `((r−1)/(K−1))²`, which leaves connected graphs as they are and keeps small components
    /// from counting as central.
    CurrentFlowCloseness,
}

/// Scale of centralities.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Comparable between graphs of different sizes.
    #[default]
    Normalised,
    /// Raw counts, which grow with the graph (betweenness as `K²`): a softmax of them gives nearly all
    /// weight to the most central client.
    Raw,
}

impl Centrality {
    /// The centrality of every node.
    ///
    /// `lengths` only affects betweenness and closeness; the other measures treat the graph as
    /// unweighted.
    pub fn of(self, graph: &Graph, scale: Scale, lengths: Lengths) -> Vec<f64> {
        let nodes = graph.node_count();
        let others = nodes.saturating_sub(1) as f64;
        let pairs = others * (others - 1.0) / 2.0;
        match self {
            Self::Betweenness => per(betweenness(graph, lengths), pairs, scale),
            Self::CurrentFlowBetweenness => per(current_flow::betweenness(graph), pairs, scale),
            Self::Degree => per(degree(graph), others, scale),
            Self::Closeness => closeness(graph, lengths)
                .into_iter()
                .map(|reach| match scale {
                    Scale::Raw => quotient(reach.others, reach.distance),
                    Scale::Normalised => {
                        quotient(reach.others, reach.distance) * quotient(reach.others, others)
                    }
                })
                .collect(),
            Self::CurrentFlowCloseness => current_flow::resistances(graph)
                .into_iter()
                .map(|reach| {
                    let part = quotient(reach.others, others);
                    match scale {
                        Scale::Raw => quotient(1.0, reach.distance),
                        Scale::Normalised => quotient(1.0, reach.distance) * part * part,
                    }
                })
                .collect(),
            Self::Eigenvector => eigenvector::eigenvector(&NeighbourSets::new(graph)),
        }
    }
}

/// Divides by the largest possible value, unless raw values are wanted.
fn per(mut values: Vec<f64>, most: f64, scale: Scale) -> Vec<f64> {
    if scale == Scale::Normalised {
        for value in &mut values {
            *value = quotient(*value, most);
        }
    }
    values
}

/// `a/b`, and 0 for `b = 0`: no other node, or none in reach.
fn quotient(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

fn betweenness(graph: &Graph, lengths: Lengths) -> Vec<f64> {
    match lengths {
        Lengths::Hops => betweenness::betweenness(&NeighbourSets::new(graph)),
        _ => Distances::new(graph, lengths).betweenness(),
    }
}

fn closeness(graph: &Graph, lengths: Lengths) -> Vec<ReachableNodes> {
    match lengths {
        Lengths::Hops => closeness::by_hops(&NeighbourSets::new(graph)),
        _ => closeness::by_lengths(&Distances::new(graph, lengths), graph.node_count()),
    }
}

fn degree(graph: &Graph) -> Vec<f64> {
    graph
        .node_indices()
        .map(|node| graph.neighbors(node).count() as f64)
        .collect()
}

#[cfg(test)]
mod tests;
