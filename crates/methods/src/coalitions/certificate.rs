//! A proof of optimality that a division carries in itself.

use super::{Program, relaxation};
use crate::Matrix;

/// A lower bound of the cost of every division, made from one of them: the better it separates the
/// coalitions, the nearer the bound is to its cost. For clearly separated ones it *is* the cost,
/// and proves it optimal at the price of one eigendecomposition, to whoever asks.
///
/// The dual solution that would certify the division (Peng & Wei 2007's relaxation; see
/// [`relaxation`]) is known up to its prices between coalitions: within them prices are 0, and
/// between them whatever makes the reduced costs `ρ + s_i + s_j`, where `s` makes the rows of a
/// coalition alike. The greatest `ρ` without a negative price is taken for each pair.
pub(super) fn bound(program: &Program, assignment: &[u32]) -> f64 {
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
                // Never above the cost itself, whatever rounding did.
                let value = (level + lean[i] + lean[j]).min(program.at(i, j));
                reduced[(i, j)] = value;
                reduced[(j, i)] = value;
            }
        }
    }
    relaxation::bound_of(reduced, program.coalitions)
}
