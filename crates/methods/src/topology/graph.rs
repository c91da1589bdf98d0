//! The ε-graph of clients (TFL, Ma et al. 2024, eq. (4)).

use petgraph::graph::{NodeIndex, UnGraph};
use petgraph::unionfind::UnionFind;
use petgraph::visit::EdgeRef;

use crate::Matrix;
use crate::coalitions::canonical;

/// An undirected graph over clients, in their order; the weight of an edge is the similarity of its ends.
pub type Graph = UnGraph<(), f64>;

/// Allowed asymmetry of similarities, which may come from a file.
const SYMMETRY: f64 = 1e-9;

/// Errors of building an ε-graph.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// No clients.
    #[error("a topology needs at least one client")]
    Empty,
    /// A matrix that is not square.
    #[error(
        "similarities must be a square matrix, one row and one column per client, not {rows} × {columns}"
    )]
    NotSquare {
        /// Number of rows.
        rows: usize,
        /// Number of columns.
        columns: usize,
    },
    /// A similarity that is NaN or outside of `[0, 1]`.
    #[error(
        "the similarity in row {row}, column {column} is {value}: normalise similarities to [0, 1]"
    )]
    Similarity {
        /// Row of the similarity, from 0.
        row: usize,
        /// Column of the similarity, from 0.
        column: usize,
        /// The value that is there.
        value: f64,
    },
    /// An asymmetric matrix.
    #[error(
        "similarities must be symmetric, but those in row {row}, column {column} and in row {column}, column {row} differ"
    )]
    Asymmetric {
        /// One client, from 0.
        row: usize,
        /// The other.
        column: usize,
    },
    /// A threshold outside of `[0, 1]`.
    #[error("epsilon must be between 0 and 1, not {0}")]
    Epsilon(f64),
}

/// The ε-graph: clients `k ≠ l` are neighbours if their similarity is at least `epsilon`; smaller
/// similarities are dropped (TFL, eq. (4)).
///
/// * `similarity`: `K × K`, symmetric, normalised to `[0, 1]`; its diagonal is not read.
/// * `epsilon`: from 0 (all clients are neighbours) to 1 (only the most similar).
///
/// # Errors
/// [`GraphError`]: no clients, a matrix that is not square, not symmetric, or has a value that is
/// NaN or outside of `[0, 1]` off its diagonal; a threshold outside of `[0, 1]`.
pub fn epsilon_graph(similarity: &Matrix, epsilon: f64) -> Result<Graph, GraphError> {
    let clients = similarity.rows();
    if !similarity.is_square() {
        let columns = similarity.columns();
        return Err(GraphError::NotSquare {
            rows: clients,
            columns,
        });
    }
    if clients == 0 {
        return Err(GraphError::Empty);
    }
    if !(0.0..=1.0).contains(&epsilon) {
        return Err(GraphError::Epsilon(epsilon));
    }
    let mut graph = Graph::with_capacity(clients, 0);
    for _ in 0..clients {
        graph.add_node(());
    }
    for row in 0..clients {
        for column in row + 1..clients {
            let value = similarity[(row, column)];
            if !(0.0..=1.0).contains(&value) {
                return Err(GraphError::Similarity { row, column, value });
            }
            // Written so that a NaN below the diagonal is refused as well.
            let apart = (value - similarity[(column, row)]).abs();
            if apart.is_nan() || apart > SYMMETRY {
                return Err(GraphError::Asymmetric { row, column });
            }
            if value >= epsilon {
                graph.add_edge(NodeIndex::new(row), NodeIndex::new(column), value);
            }
        }
    }
    Ok(graph)
}

/// The binary adjacency matrix: 1 for neighbours, 0 for others and on the diagonal.
pub fn adjacency(graph: &Graph) -> Matrix {
    let mut adjacency = Matrix::zeros(graph.node_count(), graph.node_count());
    for edge in graph.edge_references() {
        let (a, b) = (edge.source().index(), edge.target().index());
        adjacency[(a, b)] = 1.0;
        adjacency[(b, a)] = 1.0;
    }
    adjacency
}

/// The connected component of every client; components are numbered in the order of their first
/// client.
pub fn components(graph: &Graph) -> Vec<u32> {
    let mut sets = UnionFind::<u32>::new(graph.node_count());
    for edge in graph.edge_references() {
        sets.union(edge.source().index() as u32, edge.target().index() as u32);
    }
    canonical(&sets.into_labeling())
}

/// Clients without a neighbour, ascending: their models are similar to no other.
pub fn isolated(graph: &Graph) -> Vec<usize> {
    graph
        .node_indices()
        .filter(|&client| graph.neighbors(client).next().is_none())
        .map(NodeIndex::index)
        .collect()
}
