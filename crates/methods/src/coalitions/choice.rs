//! Chooses the number of coalitions by held-out losses.
//!
//! With in-sample losses every silo's local model is the best on its own data, so the program prefers
//! `n` coalitions of one silo each. The number is therefore chosen by losses on data that did not
//! form the coalitions. One coalition of all silos and `n` single silos are always among the
//! candidates.

use rayon::prelude::*;

use super::{CoalitionProgram, ProgramError, Solution};
use crate::strategy::Scores;

/// Number of numbers of coalitions that are tried in parallel.
const ABREAST: usize = 8;

/// The best grouping found for one number of coalitions.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupingCandidate {
    /// Number of coalitions.
    pub coalitions: usize,
    /// The grouping, from [`CoalitionProgram::solve`].
    pub solution: Solution,
    /// Loss of the grouping on held-out data, as measured by the caller.
    pub held_out: f64,
}

/// The best grouping for every number of coalitions, from 1 to the number of entries, with its
/// held-out loss; [`best`] chooses among them. Once `stop` returns true the remaining numbers are
/// skipped (they are tried in ascending order), except 1 and the number of entries.
///
/// * `scores`: losses that form the coalitions. They should be cross-fitted, that is, have the
///   out-of-fold losses of the silos' local models on the diagonal; with in-sample losses too few
///   silos merge.
/// * `held_out`: the loss of a grouping on data that formed neither models nor coalitions: that of
///   the coalitions' mean models in a second cross-evaluation where there is one, otherwise
///   [`transfer`] on a second table of losses.
///
/// # Errors
/// [`ProgramError::Coalitions`] if there are no entries.
pub fn candidates(
    scores: &Scores,
    seed: u64,
    held_out: impl Fn(&[u32]) -> f64 + Sync,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<GroupingCandidate>, ProgramError> {
    let candidate = |coalitions: usize| {
        let solution = CoalitionProgram::new(scores, coalitions)?.solve_until(seed, stop);
        let held_out = held_out(&solution.assignment);
        Ok(GroupingCandidate {
            coalitions,
            solution,
            held_out,
        })
    };
    let most = scores.len();
    let mut found = vec![candidate(1)?];
    let between: Vec<usize> = (2..most).collect();
    for numbers in between.chunks(ABREAST) {
        if stop() {
            break;
        }
        let next: Result<Vec<_>, _> = numbers.par_iter().map(|&n| candidate(n)).collect();
        found.extend(next?);
    }
    if most > 1 {
        found.push(candidate(most)?);
    }
    Ok(found)
}

/// The candidate with the least held-out loss; ties (up to rounding) go to the fewest coalitions,
/// which have the most data each.
pub fn best(candidates: &[GroupingCandidate]) -> Option<&GroupingCandidate> {
    let losses: Vec<f64> = candidates.iter().map(|one| one.held_out).collect();
    least(&losses).map(|at| &candidates[at])
}

/// The position of the least loss; ties (up to rounding) go to the first.
pub fn least(losses: &[f64]) -> Option<usize> {
    let least = losses.iter().copied().min_by(f64::total_cmp)?;
    let limit = least + super::TOLERANCE * least.abs();
    losses.iter().position(|&loss| loss <= limit)
}

/// `Σ_i mean_{j ∈ C(i)} L_ij`: the objective of a grouping under another table of losses of the same
/// entries. An upper bound of the losses of the coalitions' mean models (Konti et al. 2024, Lemma 4).
///
/// # Panics
/// If `assignment` has another length than `losses`, or a number beyond its entries.
pub fn transfer(losses: &Scores, assignment: &[u32]) -> f64 {
    CoalitionProgram::new(losses, 1)
        .expect("losses of at least one entry")
        .objective(assignment)
}

/// Returns whether every silo's local model is the best on its own data, as it is for in-sample losses.
/// Then more coalitions never cost more, and the best grouping into at most `K` coalitions has `K`.
pub fn own_is_best(scores: &Scores) -> bool {
    let n = scores.len();
    (0..n).all(|i| (0..n).all(|j| scores.at(i, i) <= scores.at(i, j)))
}

/// The best grouping into at most `most` coalitions, by [`CoalitionProgram::prove`] for each number; the lower
/// bound holds for all numbers.
///
/// # Errors
/// [`ProgramError::Coalitions`] unless `1 ≤ most ≤ scores.len()`.
pub fn prove_at_most(
    scores: &Scores,
    most: usize,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Solution, ProgramError> {
    let program = CoalitionProgram::new(scores, most)?;
    if own_is_best(scores) {
        return Ok(program.prove(seed, stop));
    }
    let mut best = program.prove(seed, stop);
    for fewer in (1..most).rev() {
        let other = CoalitionProgram::new(scores, fewer)?.prove(seed, stop);
        let lower_bound = best.lower_bound.min(other.lower_bound);
        let stopped = best.stopped || other.stopped;
        if other.objective < best.objective {
            best = other;
        }
        let optimal = program.same(best.objective, lower_bound);
        best = Solution {
            lower_bound,
            optimal,
            stopped,
            ..best
        };
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn scores(rows: &[Vec<f64>]) -> Scores {
        Scores::from_rows(rows).unwrap()
    }

    /// Two kinds of three silos; local models overfit by `gain`.
    fn two_kinds(gain: f64) -> Vec<Vec<f64>> {
        let loss = |i: usize, j: usize| {
            let apart = if i % 2 == j % 2 { 0.5 } else { 1.0 };
            if i == j { apart - gain } else { apart }
        };
        (0..6)
            .map(|i| (0..6).map(|j| loss(i, j)).collect())
            .collect()
    }

    #[test]
    fn held_out_losses_find_the_true_number_of_coalitions() {
        let in_sample = scores(&two_kinds(0.3));
        let own = |grouping: &[u32]| transfer(&in_sample, grouping);
        let alone = candidates(&in_sample, 1, own, &|| false).unwrap();
        assert_eq!(best(&alone).unwrap().coalitions, 6);
        // Out of sample a silo's local model is worse than its kind's.
        let held_out = scores(&two_kinds(-0.1));
        let fresh = candidates(
            &in_sample,
            1,
            |grouping| transfer(&held_out, grouping),
            &|| false,
        )
        .unwrap();
        let chosen = best(&fresh).unwrap();
        assert_eq!(chosen.coalitions, 2);
        assert_eq!(chosen.solution.assignment, [0, 1, 0, 1, 0, 1]);
        let counts: Vec<usize> = fresh.iter().map(|candidate| candidate.coalitions).collect();
        assert_eq!(counts, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn ties_go_to_the_fewest_coalitions() {
        let flat = scores(&vec![vec![0.5; 4]; 4]);
        let all = candidates(&flat, 1, |grouping| transfer(&flat, grouping), &|| false).unwrap();
        assert_eq!(best(&all).unwrap().coalitions, 1);
        assert!(best(&[]).is_none());
        assert!(candidates(&scores(&[]), 1, |_| 0.0, &|| false).is_err());
    }

    #[test]
    fn a_stopped_search_keeps_one_coalition_and_n_coalitions() {
        let rows = scores(&two_kinds(0.1));
        let found = candidates(&rows, 1, |grouping| transfer(&rows, grouping), &|| true).unwrap();
        let counts: Vec<usize> = found.iter().map(|candidate| candidate.coalitions).collect();
        assert_eq!(counts, [1, 6]);
    }

    #[test]
    fn prove_at_most_is_the_minimum_over_all_numbers() {
        // Held-out losses: local models are not the best.
        let rows = two_kinds(-0.1);
        assert!(!own_is_best(&scores(&rows)) && own_is_best(&scores(&two_kinds(0.1))));
        let solution = prove_at_most(&scores(&rows), 5, 1, &|| false).unwrap();
        let least = (1..=5)
            .map(|k| {
                CoalitionProgram::new(&scores(&rows), k)
                    .unwrap()
                    .solve(1)
                    .objective
            })
            .fold(f64::INFINITY, f64::min);
        assert!((solution.objective - least).abs() < 1e-12 && solution.optimal);
        assert_eq!(solution.assignment, [0, 1, 0, 1, 0, 1]);
        let in_sample = scores(&two_kinds(0.1));
        let exactly = CoalitionProgram::new(&in_sample, 4).unwrap().solve(1);
        assert_eq!(prove_at_most(&in_sample, 4, 1, &|| false).unwrap(), exactly);
    }
}
