//! Topologies as files that show them.

use std::fs;
use std::path::Path;

use rota::report::diagram::{Diagram, Node};
use rota::report::numbers;

use super::topology::Learned;
use super::{SolveError, listed};
use crate::cli::Topology;

/// Writes the drawings that were asked for.
pub(super) fn write(asked: &Topology, learned: &Learned) -> Result<(), SolveError> {
    let diagram = diagram(learned);
    if let Some(path) = &asked.dot {
        file(path, &diagram.dot())?;
    }
    if let Some(path) = &asked.svg {
        file(path, &diagram.svg())?;
    }
    Ok(())
}

fn file(path: &Path, text: &str) -> Result<(), SolveError> {
    fs::write(path, text).map_err(|reason| SolveError::Unwritable {
        path: path.to_owned(),
        reason,
    })
}

fn diagram(learned: &Learned) -> Diagram {
    let (kind, silos) = (learned.kind(), learned.silos());
    let node = |(index, &weight): (usize, &f64)| {
        let neighbours = learned.adjacency[index]
            .iter()
            .filter(|one| **one == 1)
            .count();
        let of = silos.as_ref().map_or(String::new(), |silos| {
            format!(" (silos {})", listed(&silos[index]))
        });
        Node {
            label: index.to_string(),
            about: format!(
                "{kind} {index}{of}: prior {weight:.4}, {} {:.4}, {}",
                learned.measured,
                learned.centrality[index],
                numbers::plural(neighbours, "neighbour"),
            ),
            weight,
        }
    };
    Diagram {
        title: learned.title(),
        note: format!(
            "An edge: similarity of at least {}. A {kind}'s area grows with its prior. Dashed: alike to nobody.",
            learned.epsilon
        ),
        nodes: learned.weights.iter().enumerate().map(node).collect(),
        edges: learned.edges(),
    }
}
