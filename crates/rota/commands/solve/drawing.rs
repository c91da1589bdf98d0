//! Writes drawings of a topology.

use std::fs;
use std::path::Path;

use formatting::numbers;
use report::diagram::{Diagram, DiagramNode};

use super::topology::TopologyResult;
use super::{SolveError, listed};
use crate::cli::SolveTopology;

/// Writes the requested drawings and returns their paths.
pub(super) fn write<'a>(
    asked: &'a SolveTopology,
    learned: &TopologyResult,
) -> Result<Vec<&'a Path>, SolveError> {
    let diagram = diagram(learned);
    let wanted = [
        (&asked.dot, Diagram::dot as fn(&Diagram) -> String),
        (&asked.svg, Diagram::svg),
    ];
    let mut written = Vec::new();
    for (path, draw) in wanted {
        if let Some(path) = path.as_deref() {
            fs::write(path, draw(&diagram)).map_err(|reason| SolveError::Unwritable {
                path: path.to_owned(),
                reason,
            })?;
            written.push(path);
        }
    }
    Ok(written)
}

fn diagram(learned: &TopologyResult) -> Diagram {
    let (kind, silos) = (learned.kind(), learned.silos());
    let node = |(index, &weight): (usize, &f64)| {
        let neighbours = learned.adjacency[index]
            .iter()
            .filter(|one| **one == 1)
            .count();
        let of = silos.as_ref().map_or(String::new(), |silos| {
            format!(" (silos {})", listed(&silos[index]))
        });
        DiagramNode {
            label: index.to_string(),
            about: format!(
                "{kind} {index}{of}: prior {weight:.4}, {} {:.4}, {}",
                learned.measure,
                learned.centrality[index],
                numbers::plural(neighbours, "neighbour"),
            ),
            weight,
        }
    };
    Diagram {
        title: learned.title(),
        note: format!(
            "An edge: similarity of at least {}. A {kind}'s area grows with its prior. Dashed: without neighbours.",
            learned.epsilon
        ),
        nodes: learned.weights.iter().enumerate().map(node).collect(),
        edges: learned.edges(),
    }
}
