//! The problem that the coalition program approximates: CS-RCFL (Konti et al. 2024), eq. (9), with
//! the losses of the coalitions' *mean models* in place of mean losses. Theorem 1 there: the
//! coalition program is an upper bound of it.

use proptest::prelude::*;

use super::{groupings, scores};
use crate::coalitions::{CoalitionProgram, canonical, exact, never};

/// The best grouping by the losses of mean models, and what the coalition program's best grouping
/// loses by them.
struct Enumerated {
    /// The best grouping.
    assignment: Vec<u32>,
    /// Loss of its mean models: the optimum of eq. (9).
    objective: f64,
    /// Loss of the mean models of the coalition program's best grouping.
    surrogate: f64,
}

/// Solves eq. (9) by evaluating every coalition. `loss` gives the summed loss of a coalition's
/// members (ascending positions) under the coalition's mean model.
fn solve(program: &CoalitionProgram, mut loss: impl FnMut(&[usize]) -> f64) -> Enumerated {
    let entries = program.n;
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
    Enumerated {
        assignment,
        objective,
        surrogate,
    }
}

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

proptest! {
    #[test]
    fn the_program_bounds_the_losses_of_mean_models(
        points in prop::collection::vec(-3.0..3.0f64, 1..=6),
        bend in 0.0..2.0f64,
    ) {
        let n = points.len();
        // A loss that the mean model lowers unevenly, so that the two programs may disagree.
        let loss = |members: &[usize]| {
            of_mean(&points, members) / (1.0 + bend * members.len() as f64)
        };
        for coalitions in 1..=n {
            let program = CoalitionProgram::new(&scores(&squares(&points)), coalitions).unwrap();
            let found = solve(&program, loss);
            let value = |grouping: &[u32]| -> f64 {
                (0..coalitions as u32)
                    .map(|own| (0..n).filter(|&i| grouping[i] == own).collect::<Vec<_>>())
                    .map(|members| loss(&members))
                    .sum()
            };
            let least = groupings(n)
                .iter()
                .filter(|grouping| grouping.iter().max() == Some(&(coalitions as u32 - 1)))
                .map(|grouping| value(grouping))
                .fold(f64::INFINITY, f64::min);
            prop_assert!((found.objective - least).abs() < 1e-9);
            prop_assert!((value(&found.assignment) - least).abs() < 1e-9);
            prop_assert!(found.surrogate >= found.objective - 1e-9);
            let by_program = program.solve(0);
            prop_assert!((found.surrogate - value(&by_program.assignment)).abs() < 1e-9);
            prop_assert!(by_program.objective >= found.surrogate - 1e-9);
        }
    }
}
