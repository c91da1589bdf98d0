//! TFL (Ma, Li & Peng, ICML 2024): the topology of clients, and the prior over them that follows
//! from it.
//!
//! Clients whose models are alike are neighbours in a graph; those that many paths lead through
//! stand for many others, and weigh more. The way from models to the weights of the next round:
//!
//! 1. Similarities of all pairs of models, normalised to `[0, 1]` ([`crate::similarity`]).
//! 2. The ε-graph of pairs that are alike enough ([`epsilon_graph`]).
//! 3. How central every client is in it ([`Centrality`]).
//! 4. The prior over clients, `p = softmax(centrality)` ([`softmax`]).
//! 5. Weights λ that climb towards who loses most and are held near the prior ([`Ascent`]), with
//!    what tells whether the prior moved them ([`Weights`]).
//! 6. Who trains next, drawn by λ ([`Sampling`]).
//!
//! Steps 2 to 4 are [`Topology::learn`]. In large federations they may run over clusters, whose
//! prior [`client_prior`] shares out.
//!
//! A graph without edges, a complete one, or one of fewer than three clients (under betweenness)
//! gives a uniform prior. A client whose model is like nobody's is alone in the graph and gets the
//! smallest prior there is.
//!
//! Everything here is a function of its arguments with the same bits on every machine, whatever
//! the number of threads.
//!
//! ```
//! use methods::Matrix;
//! use methods::topology::{Ascent, Options, Topology, Weights};
//!
//! // Five clients in a row: everybody is like the next.
//! let similarity = Matrix::from_fn(5, 5, |k, l| match k.abs_diff(l) {
//!     0 => 0.0,
//!     1 => 1.0,
//!     _ => 0.1,
//! });
//! let topology = Topology::learn(&similarity, &Options::default())?;
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

/// How a topology is learned from similarities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// ε: the normalised similarity, from 0 to 1, from which two clients are neighbours. Default
    /// 0.4, the paper's.
    pub epsilon: f64,
    /// How central a client is. Default: betweenness, the paper's.
    pub centrality: Centrality,
    /// On which scale. Default: normalised.
    pub scale: Scale,
    /// How long an edge is. Default: every edge is one hop.
    pub lengths: Lengths,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            epsilon: 0.4,
            centrality: Centrality::default(),
            scale: Scale::default(),
            lengths: Lengths::default(),
        }
    }
}

/// What is learned about clients from how alike their models are.
#[derive(Debug, Clone)]
pub struct Topology {
    /// Who is whose neighbour.
    pub graph: Graph,
    /// How central every client is.
    pub centrality: Vec<f64>,
    /// `p`: the prior over clients, a point of the simplex.
    pub prior: Vec<f64>,
    /// The connected component of every client, numbered in the order of their first clients.
    pub components: Vec<u32>,
    /// Clients like nobody else, ascending.
    pub isolated: Vec<usize>,
}

impl Topology {
    /// Learns it from the normalised similarities of `K` clients (`K × K`, symmetric, in `[0, 1]`;
    /// the diagonal is not read).
    ///
    /// # Errors
    /// [`GraphError`]: similarities or a threshold that do not make a graph.
    pub fn learn(similarity: &Matrix, options: &Options) -> Result<Self, GraphError> {
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
