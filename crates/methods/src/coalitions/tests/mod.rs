#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::robust::{self, Norm, TransportCost};

mod mean_models;

pub(super) fn scores(rows: &[Vec<f64>]) -> Scores {
    Scores::from_rows(rows).unwrap()
}

fn solve(rows: &[Vec<f64>], coalitions: usize) -> Solution {
    CoalitionProgram::new(&scores(rows), coalitions)
        .unwrap()
        .solve(1)
}

/// Six silos in three pairs.
fn six() -> Vec<Vec<f64>> {
    vec![
        vec![0.2, 0.3, 0.9, 0.95, 0.8, 0.7],
        vec![0.35, 0.25, 0.85, 0.9, 0.75, 0.65],
        vec![0.9, 0.95, 0.15, 0.3, 0.6, 0.8],
        vec![0.85, 0.9, 0.25, 0.1, 0.55, 0.75],
        vec![0.7, 0.8, 0.65, 0.6, 0.3, 0.45],
        vec![0.75, 0.7, 0.8, 0.85, 0.4, 0.35],
    ]
}

#[test]
fn six_silos_give_the_known_coalitions() {
    let known: [(f64, [u32; 6]); 6] = [
        (3.675, [0, 0, 0, 0, 0, 0]),
        (2.5125, [0, 0, 1, 1, 0, 0]),
        (1.7, [0, 0, 1, 1, 2, 2]),
        (1.55, [0, 0, 1, 2, 3, 3]),
        (1.45, [0, 1, 2, 3, 4, 4]),
        (1.35, [0, 1, 2, 3, 4, 5]),
    ];
    for (coalitions, (objective, assignment)) in (1..).zip(known) {
        let solution = solve(&six(), coalitions);
        // With five, joining 0 and 1 costs as much as joining 4 and 5.
        assert!(
            solution.assignment == assignment || coalitions == 5,
            "{solution:?}"
        );
        assert!(
            (solution.objective - objective).abs() < 1e-12,
            "{solution:?}"
        );
        let program = CoalitionProgram::new(&scores(&six()), coalitions).unwrap();
        assert!((program.objective(&assignment) - objective).abs() < 1e-12);
        assert!(solution.optimal && solution.lower_bound == solution.objective);
    }
}

#[test]
fn impossible_numbers_of_coalitions_are_refused() {
    for coalitions in [0, 7] {
        let error = CoalitionProgram::new(&scores(&six()), coalitions).unwrap_err();
        assert_eq!(
            error,
            ProgramError::Coalitions {
                coalitions,
                entries: 6
            }
        );
    }
}

#[test]
fn a_constant_added_to_a_row_changes_nothing() {
    let mut rows = six();
    let honest = solve(&rows, 3);
    // Multiples of 1/64 stay exact beside 2⁴⁰.
    let rounded = |row: &mut Vec<f64>| row.iter_mut().for_each(|s| *s = (*s * 64.0).round() / 64.0);
    rows.iter_mut().for_each(rounded);
    rows[4]
        .iter_mut()
        .for_each(|score| *score += (1u64 << 40) as f64);
    assert_eq!(solve(&rows, 3).assignment, honest.assignment);
}

#[test]
fn canonical_numbers_follow_first_entries() {
    assert_eq!(canonical(&[7, 2, 7, 0, 2]), [0, 1, 0, 2, 1]);
    assert!(is_canonical(&[0, 1, 0, 2, 1]) && is_canonical(&[]));
    assert!(!is_canonical(&[1, 0]) && !is_canonical(&[0, 2, 1]));
}

/// Groups of silos that fit each other, with noise of a fixed pattern.
fn planted(n: usize, groups: usize) -> Vec<Vec<f64>> {
    let noise = |i: usize, j: usize| ((i * 7919 + j * 104_729) % 1009) as f64 / 1009.0;
    let row = |i: usize| {
        (0..n)
            .map(|j| if i % groups == j % groups { 0.2 } else { 1.0 } + 0.3 * noise(i, j))
            .collect()
    };
    (0..n).map(row).collect()
}

#[test]
fn planted_groups_are_found_beyond_the_exact_range() {
    for (n, groups) in [(16, 3), (40, 5), (100, 4)] {
        let program = CoalitionProgram::new(&scores(&planted(n, groups)), groups).unwrap();
        let solution = program.solve(3);
        let planted: Vec<u32> = (0..n).map(|i| (i % groups) as u32).collect();
        assert_eq!(solution.assignment, planted);
        assert!(solution.lower_bound <= solution.objective);
        assert!(
            solution.lower_bound > 0.6 * solution.objective,
            "{solution:?}"
        );
        assert_eq!(solution, program.solve(3));
        assert_eq!(program.audit(&planted).assignment, planted);
        let mut worse = planted.clone();
        worse.swap(0, 1);
        assert_eq!(program.audit(&canonical(&worse)).assignment, planted);
    }
}

#[test]
fn trivial_programs_are_proven_at_any_size() {
    let rows = planted(30, 3);
    let all: f64 = rows.iter().flatten().sum();
    let own: f64 = (0..30).map(|i| rows[i][i]).sum();
    for (coalitions, value) in [(1, all / 30.0), (30, own)] {
        let solution = solve(&rows, coalitions);
        assert!((solution.objective - value).abs() < 1e-9);
        assert!(solution.optimal, "{solution:?}");
    }
}

/// Every grouping of `n` entries, in canonical numbers.
pub(super) fn groupings(n: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        all = all
            .into_iter()
            .flat_map(|head: Vec<u32>| {
                let next = head.iter().max().map_or(0, |last| last + 1);
                (0..=next).map(move |own| [head.as_slice(), &[own]].concat())
            })
            .collect();
    }
    all
}

/// The program's value, straight from its definition.
fn by_definition(rows: &[Vec<f64>], assignment: &[u32]) -> f64 {
    (0..rows.len() as u32)
        .map(|coalition| {
            let members: Vec<usize> = (0..rows.len())
                .filter(|&i| assignment[i] == coalition)
                .collect();
            let pairs = members
                .iter()
                .flat_map(|&i| members.iter().map(move |&j| (i, j)));
            let sum: f64 = pairs.map(|(i, j)| rows[i][j]).sum();
            if members.is_empty() {
                0.0
            } else {
                sum / members.len() as f64
            }
        })
        .sum()
}

fn matrix(sizes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Vec<f64>>> {
    sizes.prop_flat_map(|n| prop::collection::vec(prop::collection::vec(-2.0..5.0f64, n), n))
}

proptest! {
    #[test]
    fn dynamic_programming_finds_the_optimum_of_all_groupings(rows in matrix(1..=7)) {
        for coalitions in 1..=rows.len() {
            let solution = solve(&rows, coalitions);
            let least = groupings(rows.len())
                .iter()
                .filter(|grouping| grouping.iter().max() == Some(&(coalitions as u32 - 1)))
                .map(|grouping| by_definition(&rows, grouping))
                .fold(f64::INFINITY, f64::min);
            prop_assert!((solution.objective - least).abs() < 1e-10);
            prop_assert!((by_definition(&rows, &solution.assignment) - least).abs() < 1e-10);
            prop_assert!(is_canonical(&solution.assignment));
        }
    }

    #[test]
    fn search_and_bound_enclose_the_optimum(rows in matrix(2..=9), seed: u64) {
        for coalitions in 1..=rows.len() {
            let program = CoalitionProgram::new(&scores(&rows), coalitions).unwrap();
            let optimum = program.cost(&exact::solve(&program, &never).unwrap());
            let found = search::solve(&program, seed, &never);
            prop_assert!(program.is_canonical(&canonical(&found)));
            prop_assert!(program.cost(&found) >= optimum - 1e-10);
            prop_assert!(bound::lower_bound(&program) <= optimum + 1e-10);
        }
    }

    #[test]
    fn one_coalition_and_n_coalitions_have_the_known_objectives(rows in matrix(1..=8)) {
        let n = rows.len();
        let own: f64 = (0..n).map(|i| rows[i][i]).sum();
        prop_assert!((solve(&rows, n).objective - own).abs() < 1e-10);
        let all: f64 = rows.iter().flatten().sum();
        prop_assert!((solve(&rows, 1).objective - all / n as f64).abs() < 1e-10);
        // If every silo's local model is the best on its data, more coalitions never cost more.
        let mut rows = rows;
        for (i, row) in rows.iter_mut().enumerate() {
            row[i] = row.iter().copied().fold(f64::INFINITY, f64::min);
        }
        let values: Vec<f64> = (1..=n).map(|k| solve(&rows, k).objective).collect();
        prop_assert!(values.windows(2).all(|pair| pair[1] <= pair[0] + 1e-10));
    }

    #[test]
    fn the_order_of_entries_does_not_matter(rows in matrix(2..=8), keys in prop::collection::vec(any::<u32>(), 8)) {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&i| keys[i]);
        let shuffled: Vec<Vec<f64>> =
            order.iter().map(|&i| order.iter().map(|&j| rows[i][j]).collect()).collect();
        for coalitions in 1..=rows.len() {
            let (a, b) = (solve(&rows, coalitions), solve(&shuffled, coalitions));
            prop_assert!((a.objective - b.objective).abs() < 1e-10);
            let back: Vec<u32> = order.iter().map(|&i| a.assignment[i]).collect();
            let program = CoalitionProgram::new(&scores(&shuffled), coalitions).unwrap();
            prop_assert!(program.same(program.objective(&back), b.objective));
        }
    }

    /// Proposition 1: with absolute loss and one radius for all, the radius shifts every grouping
    /// by the same amount.
    #[test]
    fn a_common_radius_does_not_change_linear_coalitions(
        models in prop::collection::vec(prop::collection::vec(-2.0..2.0f64, 2), 2..=5),
        residuals in prop::collection::vec(prop::collection::vec(-3.0..3.0f64, 4), 25),
        radius in 0.0..1.0f64,
    ) {
        let n = models.len();
        let table = |radius: f64| -> Vec<Vec<f64>> {
            let loss = |i: usize, j: usize| {
                robust::linear(&residuals[i * n + j], &models[j], radius, Norm::L2).unwrap().loss
            };
            (0..n).map(|i| (0..n).map(|j| loss(i, j)).collect()).collect()
        };
        let norms = models.iter().map(|theta| Norm::L2.dual(theta.iter().copied().chain([1.0])));
        let shift = radius * norms.sum::<f64>();
        let (plain, robust) = (table(0.0), table(radius));
        for grouping in groupings(n) {
            let difference = by_definition(&robust, &grouping) - by_definition(&plain, &grouping);
            prop_assert!((difference - shift).abs() < 1e-10);
        }
    }

    /// Theorem 1: the program's value is at least what the coalitions' mean models lose, for every
    /// grouping, since robust losses are convex in the model.
    #[test]
    fn the_objective_bounds_the_losses_of_mean_models(
        models in prop::collection::vec([-2.0..2.0f64, -2.0..2.0f64], 2..=5),
        data in prop::collection::vec(prop::collection::vec([-2.0..2.0f64, -2.0..2.0, -1.0..1.0], 3), 5),
        radii in prop::collection::vec(0.0..1.0f64, 5),
        label_cost in 0.1..3.0f64,
    ) {
        let n = models.len();
        let cost = TransportCost { norm: Norm::Linf, label_cost };
        let dot = |row: &[f64; 3], theta: &[f64; 2]| row[0] * theta[0] + row[1] * theta[1];
        let absolute = |i: usize, theta: &[f64; 2]| {
            let residuals: Vec<f64> = data[i].iter().map(|row| row[2] - dot(row, theta)).collect();
            robust::linear(&residuals, theta, radii[i], Norm::L2).unwrap().loss
        };
        let logistic = |i: usize, theta: &[f64; 2]| {
            let margins: Vec<f64> = data[i].iter().map(|row| row[2].signum() * dot(row, theta)).collect();
            robust::logistic(&margins, theta, radii[i], cost).unwrap().loss
        };
        for loss in [&absolute as &dyn Fn(usize, &[f64; 2]) -> f64, &logistic] {
            let rows: Vec<Vec<f64>> =
                (0..n).map(|i| models.iter().map(|theta| loss(i, theta)).collect()).collect();
            for grouping in groupings(n) {
                let lost: f64 = (0..n)
                    .map(|i| {
                        let members: Vec<_> = models
                            .iter()
                            .zip(&grouping)
                            .filter(|(_, own)| **own == grouping[i])
                            .map(|(theta, _)| theta)
                            .collect();
                        let mean = [0, 1].map(|at| {
                            members.iter().map(|theta| theta[at]).sum::<f64>() / members.len() as f64
                        });
                        loss(i, &mean)
                    })
                    .sum();
                prop_assert!(lost <= by_definition(&rows, &grouping) + 1e-10);
            }
        }
    }
}

/// Losses of silos on one true model each out of `kinds`, models estimated with errors: within a
/// kind they fit each other, and nothing tells where one kind ends.
fn estimates(n: usize, kinds: usize, error: f64, seed: u64) -> Vec<Vec<f64>> {
    let mut state = seed;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let truths: Vec<[f64; 3]> = (0..kinds)
        .map(|_| [uniform(), uniform(), uniform()])
        .collect();
    let models: Vec<[f64; 3]> = (0..n)
        .map(|i| truths[i % kinds].map(|truth| truth + error * uniform()))
        .collect();
    let distance = |a: &[f64; 3], b: &[f64; 3]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
    };
    models
        .iter()
        .map(|data| {
            models
                .iter()
                .map(|model| 0.1 + distance(data, model))
                .collect()
        })
        .collect()
}

#[test]
fn planted_groups_are_proven_optimal_at_any_size() {
    for (n, groups) in [(20, 3), (60, 8), (186, 6)] {
        let program = CoalitionProgram::new(&scores(&planted(n, groups)), groups).unwrap();
        let solution = program.prove(1, &never);
        let planted: Vec<u32> = (0..n).map(|i| (i % groups) as u32).collect();
        assert_eq!(solution.assignment, planted);
        assert!(solution.optimal && !solution.stopped, "{solution:?}");
        // The audit of a round proves it as well.
        assert!(program.audit(&planted).optimal);
    }
}

#[test]
fn groups_that_overlap_are_proven_optimal_by_branching() {
    for (n, kinds, error) in [(24, 3, 0.6), (40, 4, 0.4)] {
        let program =
            CoalitionProgram::new(&scores(&estimates(n, kinds, error, 5)), kinds).unwrap();
        assert!(!program.solve(1).optimal, "this needs no relaxation");
        let solution = program.prove(1, &never);
        assert!(solution.optimal && !solution.stopped, "{solution:?}");
        assert!(solution.objective <= program.solve(1).objective + 1e-12);
    }
}

#[test]
fn a_stopped_proof_gives_a_grouping_with_a_valid_bound() {
    let program = CoalitionProgram::new(&scores(&estimates(60, 5, 0.9, 3)), 5).unwrap();
    let solution = program.prove(1, &|| true);
    assert!(solution.stopped && !solution.optimal);
    assert!(program.is_canonical(&solution.assignment));
    assert!(solution.lower_bound > 0.0 && solution.lower_bound < solution.objective);
    let later = program.prove(1, &never);
    assert!(later.optimal && solution.lower_bound <= later.objective + 1e-9);
    assert!(later.objective <= solution.objective);
}

#[test]
fn threads_do_not_change_a_bit() {
    let rows = estimates(26, 4, 0.9, 11);
    let program = CoalitionProgram::new(&scores(&rows), 4).unwrap();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| program.prove(1, &never))
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one, three);
    assert_eq!(one.lower_bound.to_bits(), three.lower_bound.to_bits());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn branching_finds_the_optimum_of_dynamic_programming(rows in matrix(2..=9)) {
        for coalitions in 1..=rows.len() {
            let program = CoalitionProgram::new(&scores(&rows), coalitions).unwrap();
            let optimum = program.cost(&exact::solve(&program, &never).unwrap());
            // From a bad start and without a bound.
            let start: Vec<u32> = (0..rows.len()).map(|i| i.min(coalitions - 1) as u32).collect();
            let found = branch::search(&program, start, 0.0, u64::MAX, &never);
            prop_assert!((program.cost(&found.best) - optimum).abs() <= 1e-8 * optimum.max(1.0));
            prop_assert!(found.bound <= optimum + 1e-9);
            prop_assert!(program.closes(program.cost(&found.best), found.bound));
        }
    }

    #[test]
    fn no_bound_is_above_the_optimum(rows in matrix(2..=9), seed: u64, iterations in 1..120usize) {
        use super::relaxation::{FixedPairs, Iterate, RelaxationLimit, relax};
        for coalitions in 1..=rows.len() {
            let program = CoalitionProgram::new(&scores(&rows), coalitions).unwrap();
            let optimum = program.cost(&exact::solve(&program, &never).unwrap());
            let until = RelaxationLimit { bound: f64::INFINITY, iterations, stop: &never };
            let fixed = FixedPairs::nothing(rows.len());
            let (bound, _) = relax(&program, &fixed, Iterate::start(&program), &until);
            prop_assert!(bound <= optimum + 1e-10, "{bound} {optimum}");
            let grouping = search::solve(&program, seed, &never);
            prop_assert!(certificate::bound(&program, &grouping) <= optimum + 1e-10);
        }
    }
}
