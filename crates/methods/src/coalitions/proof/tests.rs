#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::coalitions::tests::{groupings, scores};
use crate::coalitions::{CoalitionProgram, certificate, never, relaxation, search};

/// Least common multiple of the sizes of coalitions up to 7.
const SIZES: i128 = 420;

/// Losses are multiples of this part of 1, so that sums of them are exact.
const PARTS: f64 = 1024.0;

/// Costs are halves of sums of losses.
const UNITS: i128 = 2 * SIZES * 1024;

/// `UNITS` times the cost of a grouping, without rounding.
fn exact_cost(program: &CoalitionProgram, grouping: &[u32]) -> i128 {
    let cost = |i: usize, j: usize| (program.at(i, j) * 2.0 * PARTS) as i128;
    let n = grouping.len();
    let coalitions = 0..program.coalitions as u32;
    coalitions
        .map(|own| {
            let members: Vec<usize> = (0..n).filter(|&i| grouping[i] == own).collect();
            let pairs = members
                .iter()
                .flat_map(|&i| members.iter().map(move |&j| cost(i, j)));
            pairs.sum::<i128>() * SIZES / members.len() as i128
        })
        .sum()
}

/// `UNITS` times the least cost of any grouping, without rounding.
fn exact_optimum(program: &CoalitionProgram) -> i128 {
    groupings(program.n)
        .iter()
        .filter(|grouping| grouping.iter().max() == Some(&(program.coalitions as u32 - 1)))
        .map(|grouping| exact_cost(program, grouping))
        .min()
        .unwrap()
}

/// Returns whether a bound is at most `optimum / UNITS`, but for 2⁻⁵⁰.
fn is_below(bound: f64, optimum: i128) -> bool {
    // A product with a power of two is exact.
    let scale = (1u64 << 50) as f64;
    (bound * scale).floor() as i128 * UNITS <= optimum * (1i128 << 50)
}

/// Losses from 0 to 8, in exact parts.
fn losses(sizes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Vec<f64>>> {
    let loss = (0u32..8192).prop_map(|parts| f64::from(parts) / PARTS);
    sizes.prop_flat_map(move |n| prop::collection::vec(prop::collection::vec(loss.clone(), n), n))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a lead sends, no more is confirmed than is true, compared in integers.
    #[test]
    fn no_proof_confirms_a_bound_above_the_optimum(
        rows in losses(2..=7),
        prices in prop::collection::vec(0.0..4.0f32, 21),
        cuts in prop::collection::vec((0u16..7, 0u16..7, 0u16..7, 0.0..2.0f32), 0..6),
        level in -8.0..8.0f64,
    ) {
        let n = rows.len();
        let cuts: Vec<PricedCut> =
            cuts.into_iter().map(|(i, j, k, price)| PricedCut { i, j, k, price }).collect();
        for coalitions in 1..=n {
            let program = CoalitionProgram::new(&scores(&rows), coalitions).unwrap();
            let optimum = exact_optimum(&program);
            let fitting = cuts.iter().filter(|cut| cut.fits(n)).take(most_cuts(n));
            let mut proof = Proof {
                prices: prices[..n * (n - 1) / 2].to_vec(),
                cuts: fitting.copied().collect(),
                level,
            };
            if let Some(bound) = lower_bound(&program, &proof) {
                prop_assert!(is_below(bound, optimum), "{bound} {optimum}");
            }
            // The greatest level that is confirmed: the sharpest that can be said with these prices.
            proof.level = -64.0;
            let mut step = 64.0;
            while step > 1e-13 {
                let higher = Proof { level: proof.level + step, ..proof.clone() };
                match lower_bound(&program, &higher) {
                    Some(bound) => {
                        prop_assert!(is_below(bound, optimum), "{bound} {optimum}");
                        proof = higher;
                    }
                    None => step /= 2.0,
                }
            }
        }
    }

    /// A proof says as much as the eigenvalues from which it is made, but for the rounding of prices.
    #[test]
    fn proofs_are_valid_and_lose_nothing_of_the_dual_point(rows in losses(3..=7)) {
        for coalitions in 1..=rows.len() {
            let program = CoalitionProgram::new(&scores(&rows), coalitions).unwrap();
            let optimum = exact_optimum(&program);
            let grouping = search::solve(&program, 1, &never);
            let until = relaxation::RelaxationLimit {
                bound: f64::INFINITY,
                iterations: 60,
                stop: &never,
            };
            let (fixed, start) = (relaxation::FixedPairs::nothing(program.n), relaxation::Iterate::start(&program));
            let (relaxed, _) = relaxation::relax(&program, &fixed, start, &until);
            let (dual, _) = relaxation::relax_to_prices(&program, &until);
            for (dual, known) in [
                (certificate::dual(&program, &grouping), certificate::bound(&program, &grouping)),
                (dual.unwrap(), relaxed),
            ] {
                let (proof, bound) = from_dual(&program, &dual).unwrap();
                prop_assert!(is_below(bound, optimum), "{bound} {optimum}");
                prop_assert!(bound >= known - 1e-4, "{bound} of {known}");
                prop_assert_eq!(lower_bound(&program, &proof), Some(bound));
            }
        }
    }
}

/// Three kinds of silos: losses of 1 and a little within a kind, 2 and a little between kinds.
fn kinds(n: usize) -> Vec<Vec<f64>> {
    let noise = |i: usize, j: usize| ((i * 7919 + j * 104_729) % 1009) as f64 / 4036.0;
    let loss = |i: usize, j: usize| if i % 3 == j % 3 { 1.0 } else { 2.0 } + noise(i, j);
    (0..n)
        .map(|i| (0..n).map(|j| loss(i, j)).collect())
        .collect()
}

fn program(n: usize) -> CoalitionProgram {
    CoalitionProgram::new(&scores(&kinds(n)), 3).unwrap()
}

#[test]
fn clear_coalitions_are_proven_best_and_others_worse() {
    for n in [16, 31, 60] {
        let program = program(n);
        let proven = program.solve_with_proof(1);
        let proof = proven.proof.unwrap();
        assert!(proven.gap <= CLOSED, "{n}: {}", proven.gap);
        let best: Vec<u32> = (0..n).map(|i| (i % 3) as u32).collect();
        assert_eq!(proven.solution.assignment, best);
        let mut worse = best.clone();
        worse.swap(0, 1);
        let gap = program.gap(&worse, &proof).unwrap();
        let (least, cost) = (program.cost(&best), program.cost(&worse));
        assert!((gap - (cost - least) / cost).abs() <= CLOSED, "{n}: {gap}");
        assert!(program.better(&worse, 1).is_some() && program.better(&best, 1).is_none());
    }
}

#[test]
fn up_to_the_exact_size_there_is_no_proof() {
    let proven = program(15).solve_with_proof(1);
    assert_eq!((proven.proof, proven.gap), (None, 0.0));
    assert!(proven.solution.optimal);
}

#[test]
fn a_level_above_the_least_eigenvalue_proves_nothing() {
    let program = program(20);
    let proof = program.solve_with_proof(1).proof.unwrap();
    assert!(program.lower_bound(&proof).is_some());
    let level = proof.level + 1e-6;
    assert_eq!(program.lower_bound(&Proof { level, ..proof }), None);
}

#[test]
fn proofs_of_another_size_or_with_invalid_prices_are_refused() {
    let program = program(16);
    let proof = program.solve_with_proof(1).proof.unwrap();
    assert!(proof.fits(16) && !proof.fits(15) && !proof.fits(17));
    let price = |price: f32| {
        let mut other = proof.clone();
        other.prices[3] = price;
        other
    };
    let cut = |i, j, k, price| Proof {
        cuts: vec![PricedCut { i, j, k, price }],
        ..proof.clone()
    };
    assert!(program.lower_bound(&cut(0, 1, 2, 0.0)).is_some());
    let too_many = Proof {
        cuts: vec![cut(0, 1, 2, 0.0).cuts[0]; most_cuts(16) + 1],
        ..proof.clone()
    };
    let level = |level: f64| Proof {
        level,
        ..proof.clone()
    };
    for wrong in [
        Proof::default(),
        price(-1e-9),
        price(f32::NAN),
        price(f32::INFINITY),
        cut(0, 0, 1, 1.0),
        cut(0, 1, 1, 1.0),
        cut(0, 1, 16, 1.0),
        cut(0, 1, 2, -1.0),
        cut(0, 1, 2, f32::NAN),
        too_many,
        level(f64::NAN),
        level(f64::INFINITY),
    ] {
        assert_eq!(program.lower_bound(&wrong), None, "{wrong:?}");
    }
    // These fit, and prove nothing that a grouping could be refused for.
    for weak in [price(f32::MAX), level(f64::MIN), level(-1e300)] {
        let bound = program.lower_bound(&weak);
        assert!(
            bound.is_none_or(|bound| bound <= program.shift + 1e-9),
            "{bound:?}"
        );
    }
}

#[test]
fn large_rows_do_not_hide_a_worse_grouping() {
    let mut rows = kinds(18);
    // Multiples of 2⁻²⁰ stay exact beside 2³⁰.
    let exact = |loss: &mut f64| *loss = (*loss * f64::from(1 << 20)).round() / f64::from(1 << 20);
    rows.iter_mut().flatten().for_each(exact);
    let honest = CoalitionProgram::new(&scores(&rows), 3).unwrap();
    rows[4]
        .iter_mut()
        .for_each(|loss| *loss += f64::from(1 << 30));
    let huge = CoalitionProgram::new(&scores(&rows), 3).unwrap();
    let mut worse: Vec<u32> = (0..18).map(|i| i % 3).collect();
    worse.swap(0, 1);
    let gap = |program: &CoalitionProgram| {
        let proof = program.solve_with_proof(1).proof.unwrap();
        program.gap(&worse, &proof).unwrap()
    };
    assert_eq!(gap(&honest), gap(&huge));
    assert!(gap(&huge) > 0.01);
}
