//! A lower bound constructed from a grouping, which can prove that grouping optimal.

use super::relaxation::Dual;
use super::{CoalitionProgram, relaxation};
use crate::Matrix;

/// A lower bound of the cost of every grouping, constructed from `assignment`. The better the
/// assignment separates its coalitions, the closer the bound is to its cost; for clearly separated
/// coalitions they are equal, which proves optimality with a single eigendecomposition.
///
/// It evaluates the dual of Peng & Wei's (2007) relaxation (see [`relaxation`]) at a dual point
/// built from the assignment. Dual prices within coalitions are 0; between two coalitions they are
/// chosen such that the reduced costs are `ρ + s_i + s_j`, where `s` equalises the row sums within
/// each coalition, and `ρ` is the largest value without a negative price.
pub(super) fn bound(program: &CoalitionProgram, assignment: &[u32]) -> f64 {
    relaxation::bound_of(reduced(program, assignment), program.coalitions)
}

/// The dual point of [`bound`] as prices.
pub(super) fn dual(program: &CoalitionProgram, assignment: &[u32]) -> Dual {
    let reduced = reduced(program, assignment);
    Dual {
        prices: Matrix::from_fn(program.n, program.n, |i, j| {
            program.at(i, j) - reduced[(i, j)]
        }),
        cuts: Vec::new(),
    }
}

/// The reduced costs of the dual point: costs minus prices.
fn reduced(program: &CoalitionProgram, assignment: &[u32]) -> Matrix {
    let members: Vec<Vec<usize>> = (0..program.coalitions as u32)
        .map(|own| {
            let entries = assignment.iter().enumerate();
            entries
                .filter(|entry| *entry.1 == own)
                .map(|entry| entry.0)
                .collect()
        })
        .collect();
    let n = program.n;
    let mut lean = vec![0f64; n];
    for entries in &members {
        let sums: Vec<f64> = entries
            .iter()
            .map(|&i| entries.iter().map(|&j| program.at(i, j)).sum())
            .collect();
        let mean = sums.iter().sum::<f64>() / entries.len() as f64;
        for (&i, sum) in entries.iter().zip(&sums) {
            lean[i] = (sum - mean) / entries.len() as f64;
        }
    }
    let mut reduced: Matrix = program.costs.clone();
    for (a, first) in members.iter().enumerate() {
        for second in &members[..a] {
            let pairs = || {
                first
                    .iter()
                    .flat_map(|&i| second.iter().map(move |&j| (i, j)))
            };
            let level = pairs()
                .map(|(i, j)| program.at(i, j) - lean[i] - lean[j])
                .fold(f64::INFINITY, f64::min);
            for (i, j) in pairs() {
                // At most the cost itself, in spite of rounding.
                let value = (level + lean[i] + lean[j]).min(program.at(i, j));
                reduced[(i, j)] = value;
                reduced[(j, i)] = value;
            }
        }
    }
    reduced
}
