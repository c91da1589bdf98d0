//! The program that the coalition program stands for: CS-RCFL (Konti et al. 2024), eq. (9), with
//! the losses of the coalitions' *mean models* in place of mean losses.
//!
//! By Theorem 1 there the coalition program is an upper bound of it. For few silos both can be
//! solved, and the difference told.

use super::{Program, TOLERANCE, canonical, exact, never};

/// Entries up to which every coalition can be evaluated: 1,023 mean models at most.
pub const UP_TO: usize = 10;

/// Too many entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "every coalition of {entries} entries would have to be evaluated: this is done for up to {UP_TO}"
)]
pub struct TooMany {
    /// Entries at hand.
    pub entries: usize,
}

/// The best division by the losses of mean models, and how near the coalition program came.
#[derive(Debug, Clone, PartialEq)]
pub struct Enumerated {
    /// The best division; coalitions are numbered in the order of their first entry.
    pub assignment: Vec<u32>,
    /// What its mean models lose: the optimum of eq. (9).
    pub objective: f64,
    /// What the mean models of the coalition program's best division lose.
    pub surrogate: f64,
    /// `surrogate − objective`, at least 0: what deciding by the coalition program cost.
    pub gap: f64,
}

/// Solves eq. (9) for the program's entries and number of coalitions.
///
/// `loss` gives the summed loss of a coalition's members (ascending positions) under the
/// coalition's mean model; each coalition is asked for once.
///
/// # Errors
/// [`TooMany`] beyond [`UP_TO`] entries.
pub fn solve(
    program: &Program,
    mut loss: impl FnMut(&[usize]) -> f64,
) -> Result<Enumerated, TooMany> {
    let entries = program.n;
    if entries > UP_TO {
        return Err(TooMany { entries });
    }
    let mut losses = vec![f64::INFINITY; 1 << entries];
    for (set, value) in losses.iter_mut().enumerate().skip(1) {
        let members: Vec<usize> = (0..entries).filter(|entry| set >> entry & 1 == 1).collect();
        *value = loss(&members);
    }
    let total = |assignment: &[u32]| -> f64 {
        (0..program.coalitions as u32)
            .map(|own| {
                let members = assignment
                    .iter()
                    .enumerate()
                    .filter(|entry| *entry.1 == own);
                losses[members.map(|(entry, _)| 1 << entry).sum::<usize>()]
            })
            .sum()
    };
    let surrogate = total(&program.solve(0).assignment);
    let found = exact::divide(entries, program.coalitions, losses.clone(), &never);
    let assignment = canonical(&found.expect("nothing stops it"));
    let objective = total(&assignment);
    let gap = surrogate - objective;
    Ok(Enumerated {
        assignment,
        objective,
        surrogate,
        // Equal divisions may be summed in different orders.
        gap: if gap.abs() <= TOLERANCE * objective.abs() {
            0.0
        } else {
            gap
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::super::tests::{divisions, scores};
    use super::*;

    /// Silo `i` loses `(x_i − model)²`: mean models are better than mean losses by the variance.
    fn squares(points: &[f64]) -> Vec<Vec<f64>> {
        let loss = |x: f64, model: f64| (x - model) * (x - model);
        points
            .iter()
            .map(|&x| points.iter().map(|&model| loss(x, model)).collect())
            .collect()
    }

    fn of_mean(points: &[f64], members: &[usize]) -> f64 {
        let mean = members.iter().map(|&i| points[i]).sum::<f64>() / members.len() as f64;
        members
            .iter()
            .map(|&i| (points[i] - mean) * (points[i] - mean))
            .sum()
    }

    #[test]
    fn too_many_are_refused() {
        let program = Program::new(&scores(&vec![vec![0.0; 11]; 11]), 2).unwrap();
        assert_eq!(solve(&program, |_| 0.0), Err(TooMany { entries: 11 }));
    }

    proptest! {
        #[test]
        fn nothing_is_better_and_theorem_1_holds(
            points in prop::collection::vec(-3.0..3.0f64, 1..=6),
            bend in 0.0..2.0f64,
        ) {
            let n = points.len();
            // A loss that the mean model lowers unevenly, so that the two programs may disagree.
            let loss = |members: &[usize]| {
                of_mean(&points, members) / (1.0 + bend * members.len() as f64)
            };
            for coalitions in 1..=n {
                let program = Program::new(&scores(&squares(&points)), coalitions).unwrap();
                let found = solve(&program, loss).unwrap();
                let value = |division: &[u32]| -> f64 {
                    (0..coalitions as u32)
                        .map(|own| (0..n).filter(|&i| division[i] == own).collect::<Vec<_>>())
                        .map(|members| loss(&members))
                        .sum()
                };
                let least = divisions(n)
                    .iter()
                    .filter(|division| division.iter().max() == Some(&(coalitions as u32 - 1)))
                    .map(|division| value(division))
                    .fold(f64::INFINITY, f64::min);
                prop_assert!((found.objective - least).abs() < 1e-9);
                prop_assert!((value(&found.assignment) - least).abs() < 1e-9);
                prop_assert!(found.gap >= 0.0 && found.surrogate >= found.objective - 1e-9);
                let by_program = program.solve(0);
                prop_assert!((found.surrogate - value(&by_program.assignment)).abs() < 1e-9);
                prop_assert!(by_program.objective >= found.surrogate - 1e-9);
            }
        }
    }
}
