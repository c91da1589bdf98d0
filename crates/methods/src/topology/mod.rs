//! Topology-aware federated learning (TFL; Ma, Li & Peng, ICML 2024): a graph of similar clients, and
//! the client prior and weights that follow from it.
//!
//! Clients with similar models are neighbours in a graph; clients that many shortest paths lead
//! through represent many others and get larger weights. From models to the weights of the next
//! round:
//!
//! 1. Similarities of all pairs of models, normalised to `[0, 1]` ([`crate::similarity`]).
//! 2. The ε-graph, whose edges are pairs with a similarity of at least ε ([`epsilon_graph`]).
//! 3. The centrality of every client in it ([`Centrality`]).
//! 4. The prior over clients, `p = softmax(centrality)` ([`softmax`]).
//! 5. Weights λ that increase for clients with large losses and stay near the prior ([`Ascent`]), with
//!    a measure of the prior's effect ([`Weights`]).
//! 6. Client sampling by λ ([`Sampling`]).
//!
//! Steps 2 to 4 are [`Topology::learn`]. In large federations they run over clusters, and
//! [`client_prior`] distributes the prior of a cluster over its clients.
//!
//! A graph without edges, a complete graph, or one of fewer than three clients (with betweenness)
//! gives a uniform prior. A client without neighbours gets the smallest prior. [`isolation()`] measures
//! for experiments whether these are the adversaries.
//!
//! All functions depend on their arguments only and give the same bits on every machine, with any
//! number of threads.
//!
//! ```
//! use methods::Matrix;
//! use methods::topology::{Ascent, TopologyOptions, Topology, Weights};
//!
//! // Five clients in a chain: each is similar to the next.
//! let similarity = Matrix::from_fn(5, 5, |k, l| match k.abs_diff(l) {
//!     0 => 0.0,
//!     1 => 1.0,
//!     _ => 0.1,
//! });
//! let topology = Topology::learn(&similarity, &TopologyOptions::default())?;
//! assert_eq!(topology.centrality, [0.0, 0.5, 2.0 / 3.0, 0.5, 0.0]);
//!
//! let losses = [0.9, 0.5, 0.4, 0.7, 1.2];
//! let weights = Weights::uniform(5).step(&Ascent::default(), &topology.prior, &losses)?;
//! assert!(weights.lambda[4] > weights.lambda[3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ascent;
mod centrality;
mod clustered;
mod graph;
mod isolation;
mod prior;
mod sampling;
mod simplex;
mod weights;

pub use ascent::{Ascent, AscentError, Divergence};
pub use centrality::{Centrality, Lengths, Scale};
pub use clustered::{ClusterError, client_prior};
pub use graph::{Graph, GraphError, adjacency, components, epsilon_graph, isolated};
pub use isolation::{Isolation, isolation};
pub use prior::{PriorError, softmax, uniform};
pub use sampling::{Sample, SampledLossError, Sampling, SamplingError, half, sampled_losses};
pub use simplex::{ProjectionError, project};
#[cfg(test)]
pub(crate) use weights::total_variation;
pub use weights::{Diagnostics, Weights};

use serde::{Deserialize, Serialize};

use crate::Matrix;

/// Options of learning a topology.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyOptions {
    /// ε: the normalised similarity, from 0 to 1, from which two clients are neighbours. Default
    /// 0.4, the paper's.
    pub epsilon: f64,
    /// The centrality measure. Default: betweenness, the paper's.
    pub centrality: Centrality,
    /// Raw or normalised centralities. Default: normalised.
    pub scale: Scale,
    /// Length of an edge. Default: every edge is one hop.
    pub lengths: Lengths,
}

impl Default for TopologyOptions {
    fn default() -> Self {
        Self {
            epsilon: 0.4,
            centrality: Centrality::default(),
            scale: Scale::default(),
            lengths: Lengths::default(),
        }
    }
}

/// A topology of clients, learned from the similarities of their models.
#[derive(Debug, Clone)]
pub struct Topology {
    /// The ε-graph.
    pub graph: Graph,
    /// The centrality of every client.
    pub centrality: Vec<f64>,
    /// `p`: the prior over clients, a point of the simplex.
    pub prior: Vec<f64>,
    /// The connected component of every client, numbered in the order of their first clients.
    pub components: Vec<u32>,
    /// Clients without a neighbour, ascending.
    pub isolated: Vec<usize>,
}

impl Topology {
    /// Learns a topology from the normalised similarities of `K` clients (`K × K`, symmetric, in `[0, 1]`;
    /// the diagonal is not read).
    ///
    /// # Errors
    /// [`GraphError`]: invalid similarities or threshold.
    pub fn learn(similarity: &Matrix, options: &TopologyOptions) -> Result<Self, GraphError> {
        let graph = epsilon_graph(similarity, options.epsilon)?;
        let centrality = options
            .centrality
            .of(&graph, options.scale, options.lengths);
        let prior = softmax(&centrality).expect("centralities of clients are finite");
        Ok(Self {
            centrality,
            prior,
            components: components(&graph),
            isolated: isolated(&graph),
            graph,
        })
    }
}

#[cfg(test)]
mod tests;
