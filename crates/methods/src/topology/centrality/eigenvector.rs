//! Eigenvector centrality: who is the neighbour of central nodes.

use super::neighbours::Neighbours;

/// Steps after which the iteration is cut off. Two components, or two halves of one, that are
/// nearly equally well connected take the longest.
const STEPS: usize = 10_000;

/// The iteration ends when no entry moves by more: some units in the last place.
const STILL: f64 = 1e-15;

/// The limit of power iteration on `A + I` from equal values, at Euclidean norm 1 and never
/// negative. The identity keeps bipartite graphs from oscillating and moves no eigenvector.
///
/// On a connected graph that is the leading eigenvector of `A`. On others the components of the
/// largest eigenvalue share the norm in proportion to how much of the start they hold, and
/// everybody else tends to 0; without any edge all entries are equal.
pub(super) fn eigenvector(neighbours: &Neighbours) -> Vec<f64> {
    let nodes = neighbours.nodes();
    let mut centrality = neighbours.values(1.0 / (nodes as f64).sqrt());
    let everybody = neighbours.everybody();
    for _ in 0..STEPS {
        let mut next: Vec<f64> = (0..nodes)
            .map(|node| centrality[node] + neighbours.of(node).sum(&everybody, &centrality))
            .collect();
        let norm = next.iter().map(|value| value * value).sum::<f64>().sqrt();
        let mut moved: f64 = 0.0;
        for (next, before) in next.iter_mut().zip(&centrality) {
            *next /= norm;
            moved = moved.max((*next - before).abs());
        }
        centrality[..nodes].copy_from_slice(&next);
        if moved <= STILL {
            break;
        }
    }
    centrality.truncate(nodes);
    centrality
}
