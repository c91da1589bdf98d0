//! Eigenvector centrality.

use super::neighbours::NeighbourSets;

/// Maximum number of steps. Convergence is slowest with two nearly equally well connected
/// components, or halves of one.
const STEPS: usize = 10_000;

/// Largest change of an entry at which the iteration has converged: a few units in the last place.
const CONVERGED: f64 = 1e-15;

/// The limit of power iteration on `A + I` from equal values, at Euclidean norm 1 and never
/// negative. The identity keeps bipartite graphs from oscillating and moves no eigenvector.
///
/// On a connected graph that is the leading eigenvector of `A`. On others the components of the
/// largest eigenvalue share the norm in proportion to their part of the start, and all other
/// entries tend to 0; without edges all entries are equal.
pub(super) fn eigenvector(neighbours: &NeighbourSets) -> Vec<f64> {
    let nodes = neighbours.nodes();
    let mut centrality = neighbours.values(1.0 / (nodes as f64).sqrt());
    let all = neighbours.all_nodes();
    for _ in 0..STEPS {
        let mut next: Vec<f64> = (0..nodes)
            .map(|node| centrality[node] + neighbours.of(node).sum(&all, &centrality))
            .collect();
        let norm = next.iter().map(|value| value * value).sum::<f64>().sqrt();
        let mut moved: f64 = 0.0;
        for (next, before) in next.iter_mut().zip(&centrality) {
            *next /= norm;
            moved = moved.max((*next - before).abs());
        }
        centrality[..nodes].copy_from_slice(&next);
        if moved <= CONVERGED {
            break;
        }
    }
    centrality.truncate(nodes);
    centrality
}
