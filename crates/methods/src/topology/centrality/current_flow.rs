//! Current-flow centralities: every edge is a resistor of 1 Ω, so that all paths count, not only the
//! shortest (Newman 2005; Brandes & Fleischer 2005).

use petgraph::graph::NodeIndex;
use rayon::prelude::*;

use super::super::{Graph, components};
use super::closeness::ReachableNodes;
use super::laplacian::grounded_inverse;
use crate::Matrix;

/// `Σ_{s,t} I_k(s, t)` over unordered pairs `{s, t}` without `k`, for every node `k`, where
/// `I_k(s, t)` is the current that passes `k` when a unit of it goes from `s` to `t`. Pairs in
/// different components have no current, so an isolated node has 0.
pub(super) fn betweenness(graph: &Graph) -> Vec<f64> {
    let mut total = vec![0.0; graph.node_count()];
    for part in Component::all(graph) {
        let potentials = part.potentials();
        let passing: Vec<(f64, f64)> = part
            .edges
            .par_iter()
            .map_init(Vec::new, |room, &(a, b)| {
                passing(potentials.row(a), potentials.row(b), a, b, room)
            })
            .collect();
        for (&(a, b), (through_a, through_b)) in part.edges.iter().zip(passing) {
            // The current through a node is half of that in its edges: it enters and leaves.
            total[part.nodes[a]] += through_a / 2.0;
            total[part.nodes[b]] += through_b / 2.0;
        }
    }
    total
}

/// The absolute current in the edge between `a` and `b`, summed over all pairs without `a`, and
/// over all pairs without `b`.
///
/// `at_a[s]`: potential of `a` when a unit of current enters at `s` and leaves through the ground.
fn passing(at_a: &[f64], at_b: &[f64], a: usize, b: usize, room: &mut Vec<f64>) -> (f64, f64) {
    // By superposition: the current from s to t is the difference of those from s and t to ground.
    let current = |s: usize| at_a[s] - at_b[s];
    room.clear();
    room.extend((0..at_a.len()).filter(|&s| s != a && s != b).map(current));
    room.sort_unstable_by(f64::total_cmp);
    // Σ_{s<t} |x_s − x_t| as a sum over gaps, each times the number of pairs that it separates.
    let between: f64 = room
        .windows(2)
        .zip(1..)
        .map(|(gap, below)| (gap[1] - gap[0]) * below as f64 * (room.len() - below) as f64)
        .sum();
    let from = |end: f64| room.iter().map(|other| (end - other).abs()).sum::<f64>();
    (between + from(current(b)), between + from(current(a)))
}

/// The reach of every node, with resistances as distances.
pub(super) fn resistances(graph: &Graph) -> Vec<ReachableNodes> {
    let mut reach = vec![ReachableNodes::default(); graph.node_count()];
    for part in Component::all(graph) {
        let potentials = part.potentials();
        let size = part.nodes.len();
        let own: f64 = (0..size).map(|node| potentials[(node, node)]).sum();
        for (node, &client) in part.nodes.iter().enumerate() {
            // Σ_l (C_kk + C_ll − 2·C_kl).
            let row: f64 = potentials.row(node).iter().sum();
            reach[client] = ReachableNodes {
                others: (size - 1) as f64,
                distance: size as f64 * potentials[(node, node)] + own - 2.0 * row,
            };
        }
    }
    reach
}

/// A connected component of at least two nodes.
struct Component {
    /// Nodes of the component in the graph, ascending.
    nodes: Vec<usize>,
    /// Edges of the component as positions in `nodes`, the smaller first, ascending.
    edges: Vec<(usize, usize)>,
}

impl Component {
    fn all(graph: &Graph) -> Vec<Self> {
        let label = components(graph);
        let mut parts: Vec<Self> = Vec::new();
        let mut place = vec![0; label.len()];
        for (node, &label) in label.iter().enumerate() {
            if label as usize == parts.len() {
                let (nodes, edges) = (Vec::new(), Vec::new());
                parts.push(Self { nodes, edges });
            }
            let nodes = &mut parts[label as usize].nodes;
            place[node] = nodes.len();
            nodes.push(node);
        }
        for part in &mut parts {
            for &node in &part.nodes {
                let neighbours = graph.neighbors(NodeIndex::new(node));
                let after = neighbours
                    .map(NodeIndex::index)
                    .filter(|&other| other > node);
                let edges = after.map(|other| (place[node], place[other]));
                part.edges.extend(edges);
            }
            part.edges.sort_unstable();
        }
        parts.retain(|part| part.nodes.len() > 1);
        parts
    }

    /// Entry `(u, s)`: the potential of `u` when a unit of current enters at `s` and leaves
    /// through the last node, which is the ground.
    fn potentials(&self) -> Matrix {
        let size = self.nodes.len();
        let mut laplacian = Matrix::zeros(size, size);
        for &(a, b) in &self.edges {
            laplacian[(a, a)] += 1.0;
            laplacian[(b, b)] += 1.0;
            laplacian[(a, b)] -= 1.0;
            laplacian[(b, a)] -= 1.0;
        }
        grounded_inverse(&laplacian)
    }
}
