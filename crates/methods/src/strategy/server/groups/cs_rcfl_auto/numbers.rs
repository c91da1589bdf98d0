//! The numbers of coalitions that are tried.
//!
//! Up to [`MOST`] silos: all of them. Beyond, a grid: every number up to [`EACH`], then numbers that
//! grow by one factor, up to one coalition for every silo; and around the number that looks best in
//! the cross-evaluation some more.

use rayon::prelude::*;

use crate::coalitions::{CoalitionProgram, Solution, choice};
use crate::strategy::Scores;

/// Most silos with which every number of coalitions is tried. One number more is tried at most,
/// with any number of silos.
pub const MOST: usize = 32;

/// Numbers that are tried one by one with more than [`MOST`] silos.
const EACH: usize = 12;

/// Numbers of the grid above [`EACH`].
const STEPS: usize = 12;

/// The numbers that are always tried.
pub(in super::super) fn grid(entries: usize) -> Vec<usize> {
    if entries <= MOST {
        return (1..=entries).collect();
    }
    let ratio = entries as f64 / EACH as f64;
    let step = |step: usize| {
        let power = libm::pow(ratio, step as f64 / STEPS as f64);
        libm::round(EACH as f64 * power) as usize
    };
    let mut numbers: Vec<usize> = (1..=EACH).chain((1..STEPS).map(step)).collect();
    numbers.push(entries);
    numbers.dedup();
    numbers
}

/// Further numbers between the neighbours of the grid's best, evenly spaced.
fn around(grid: &[usize], best: usize) -> Vec<usize> {
    let room = (MOST + 1).saturating_sub(grid.len());
    let low = grid[best.saturating_sub(1)];
    let high = grid[(best + 1).min(grid.len() - 1)];
    let between: Vec<usize> = (low..=high)
        .filter(|number| !grid.contains(number))
        .collect();
    let count = between.len().min(room);
    (0..count)
        .map(|at| between[at * between.len() / count])
        .collect()
}

/// The best groupings that are found, by ascending number of coalitions.
pub(super) fn solve(scores: &Scores, seed: u64) -> Vec<Solution> {
    let solve = |numbers: &[usize]| -> Vec<Solution> {
        let one = |&coalitions: &usize| program(scores, coalitions).solve(seed);
        numbers.par_iter().map(one).collect()
    };
    let grid = grid(scores.len());
    let mut found = solve(&grid);
    if scores.len() > MOST {
        // With out-of-fold losses of local models the objective has a least value.
        let objectives: Vec<f64> = found.iter().map(|one| one.objective).collect();
        let best = choice::least(&objectives).expect("a grid has numbers");
        found.extend(solve(&around(&grid, best)));
        found.sort_by_key(|one| coalitions(&one.assignment));
    }
    found
}

/// The programs of these groupings, if their numbers may be tried.
pub(super) fn programs(scores: &Scores, groupings: &[Vec<u32>]) -> Option<Vec<CoalitionProgram>> {
    let numbers: Vec<usize> = groupings.iter().map(|one| coalitions(one)).collect();
    let ascending = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    let complete = grid(scores.len())
        .iter()
        .all(|number| numbers.contains(number));
    let within = numbers
        .iter()
        .all(|number| (1..=scores.len()).contains(number));
    if !ascending || !complete || !within || numbers.len() > MOST + 1 {
        return None;
    }
    let programs: Vec<CoalitionProgram> = numbers.iter().map(|&k| program(scores, k)).collect();
    let mut pairs = programs.iter().zip(groupings);
    let canonical = pairs.all(|(program, grouping)| program.is_canonical(grouping));
    canonical.then_some(programs)
}

/// Standard errors by which coalitions have to be better than silos alone: of silos that have nothing in common some two
/// seem to gain by chance.
const ALONE: f64 = 1.0;
/// Standard errors within which fewer coalitions are taken: those that were found go on to gain by all rows of their silos,
/// which the mean of models that were trained apart does not show.
const FEWER: f64 = 0.5;

/// The candidate that is taken, where `least` is the one of least loss and the last one is silos alone. `reported` has the
/// losses of every silo, by candidate. Silos alone come first; then the fewest coalitions.
pub(super) fn preferred(reported: &[&[f32]], least: usize) -> usize {
    let candidates = reported.first().map_or(0, |losses| losses.len());
    let alone = candidates.saturating_sub(1);
    if least == alone || within(reported, (alone, least), ALONE) {
        return alone;
    }
    let mut fewer = 0..least;
    let found = fewer.find(|&one| within(reported, (one, least), FEWER));
    found.unwrap_or(least)
}

/// Returns whether a candidate is worse than the one of least loss by at most so many standard errors, which are those of
/// the silos' differences.
fn within(reported: &[&[f32]], (candidate, least): (usize, usize), errors: f64) -> bool {
    let count = reported.len() as f64;
    let each = reported
        .iter()
        .map(|losses| f64::from(losses[candidate]) - f64::from(losses[least]));
    let each: Vec<f64> = each.collect();
    let mean = each.iter().sum::<f64>() / count;
    let squares: f64 = each.iter().map(|one| (one - mean) * (one - mean)).sum();
    let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
    mean <= errors * error
}

fn program(scores: &Scores, coalitions: usize) -> CoalitionProgram {
    CoalitionProgram::new(scores, coalitions).expect("from one coalition to one per entry")
}

/// The number of coalitions of a grouping in canonical numbers.
fn coalitions(grouping: &[u32]) -> usize {
    grouping.iter().max().map_or(0, |&last| last as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one taken of these candidates, alone last, by their losses at two silos.
    fn chosen(losses: &[[f32; 2]], least: usize) -> usize {
        let [first, second] =
            [0, 1].map(|silo| losses.iter().map(|one| one[silo]).collect::<Vec<f32>>());
        preferred(&[&first, &second], least)
    }

    #[test]
    fn fewer_coalitions_win_within_a_part_of_the_standard_error() {
        let (far, alone) = ([9.0, 9.0], [9.0, 9.0]);
        // To the third 3 and −1: mean 1, standard deviation √8, standard error 2, of which that is half.
        assert_eq!(chosen(&[far, [5.0, 1.0], [2.0, 2.0], alone], 2), 1);
        // 3.1 and −.9: a little more than half.
        assert_eq!(chosen(&[far, [5.1, 1.1], [2.0, 2.0], alone], 2), 2);
        // The first is 7 above it at both, without a doubt.
        assert_eq!(chosen(&[far, [2.0, 2.0], alone], 1), 1);
        // With one silo there is no error.
        assert_eq!(preferred(&[&[9.0, 5.0, 2.0, 9.0]], 2), 2);
    }

    #[test]
    fn silos_stay_alone_unless_merging_is_better_without_a_doubt() {
        let far = [9.0, 9.0];
        // The last is the best: that merging harms by no more than a part of the standard error is no reason.
        assert_eq!(chosen(&[far, [5.0, 1.0], [2.0, 2.0]], 2), 2);
        // It is worse than the second by 3 and −1, half a standard error; by 5 and 1, one and a half.
        assert_eq!(chosen(&[far, [2.0, 2.0], [5.0, 1.0]], 1), 2);
        assert_eq!(chosen(&[far, [2.0, 2.0], [7.0, 3.0]], 1), 1);
        // It helps one silo of many, by one standard error, and harms another a little.
        let mut many: Vec<[f32; 3]> = vec![[9.0, 2.0, 2.0]; 12];
        (many[0][2], many[1][2]) = (3.0, 1.9);
        let many: Vec<&[f32]> = many.iter().map(|one| &one[..]).collect();
        assert_eq!(preferred(&many, 1), 2);
        // All of them.
        let all = vec![&[9.0f32, 2.0, 3.0][..]; 12];
        assert_eq!(preferred(&all, 1), 1);
    }

    #[test]
    fn the_grid_follows_the_number_of_silos() {
        assert_eq!(grid(1), [1]);
        assert_eq!(grid(32), (1..=32).collect::<Vec<_>>());
        for entries in [33, 40, 139, 1_000, 65_535] {
            let grid = grid(entries);
            assert!(grid.windows(2).all(|pair| pair[0] < pair[1]), "{grid:?}");
            assert_eq!((grid[0], grid[11]), (1, 12));
            assert_eq!(grid.last(), Some(&entries));
            for best in 0..grid.len() {
                let more = around(&grid, best);
                assert!(grid.len() + more.len() <= MOST + 1);
                assert!(more.iter().all(|number| !grid.contains(number)));
            }
        }
        // 139 schools: between 67 and 139 the step was one of 72.
        let best = grid(139).iter().position(|&k| k == 92).unwrap();
        assert_eq!(around(&grid(139), best).len(), 9);
    }
}
