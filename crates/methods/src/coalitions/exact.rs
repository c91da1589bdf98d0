//! The coalition program by dynamic programming over subsets.

use rayon::prelude::*;

use super::CoalitionProgram;

/// Entries up to which it takes milliseconds. The work grows as `3ⁿ·K`.
pub const LARGEST: usize = 15;

/// Entries up to which it takes seconds, with `2ⁿ·K` numbers in memory.
pub(super) const LARGEST_WITH_PATIENCE: usize = 20;

/// Number of sets that a thread evaluates between two calls of `stop`.
const STRETCH: usize = 1 << 10;

/// An optimal assignment; `None` if it was stopped.
pub(super) fn solve(
    program: &CoalitionProgram,
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<u32>> {
    divide(program.n, program.coalitions, subset_costs(program), stop)
}

/// The cheapest grouping of `n` entries into `coalitions`, given the cost of every set of entries as
/// a coalition (indexed by its bits; infinite for the empty set). `None` if it was stopped.
///
/// `f_k(S)`, the least cost of grouping `S` into `k` coalitions, is the minimum over the coalition
/// `T ⊆ S` of `S`'s first entry: `cost(T) + f_{k−1}(S ∖ T)`. Coalitions are split off in the order
/// of their first entries, so for `k < K` only sets without entry 0 occur. Ties between
/// optima are broken in a fixed way.
pub(super) fn divide(
    n: usize,
    coalitions: usize,
    cost: Vec<f64>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<u32>> {
    let all = (1usize << n) - 1;
    let mut layers = vec![cost.clone()];
    for k in 2..coalitions {
        let below = &layers[k - 2];
        let mut layer = vec![f64::INFINITY; all + 1];
        let fill = |(stretch, values): (usize, &mut [f64])| {
            if stop() {
                return None;
            }
            for (set, value) in (stretch * STRETCH..).zip(values) {
                let size = set.count_ones() as usize;
                // Even: without entry 0. The size leaves entries for the coalitions split off before.
                if set & 1 == 0 && size >= k && size + (coalitions - k) <= n {
                    *value = best_split(set, &cost, below).0;
                }
            }
            Some(())
        };
        layer
            .par_chunks_mut(STRETCH)
            .enumerate()
            .try_for_each(fill)?;
        layers.push(layer);
    }
    let mut assignment = vec![0u32; n];
    let mut rest = all;
    for (number, k) in (1..=coalitions).rev().enumerate() {
        let taken = if k == 1 {
            rest
        } else {
            best_split(rest, &cost, &layers[k - 2]).1
        };
        for (entry, coalition) in assignment.iter_mut().enumerate() {
            if taken >> entry & 1 == 1 {
                *coalition = number as u32;
            }
        }
        rest &= !taken;
    }
    Some(assignment)
}

/// The best coalition for the first entry of `set`, with the rest grouped at the costs `below`.
fn best_split(set: usize, cost: &[f64], below: &[f64]) -> (f64, usize) {
    let first = set & set.wrapping_neg();
    let others = set & !first;
    let mut best = (f64::INFINITY, set);
    // All proper subsets of the others: the remaining coalitions need at least one entry.
    let mut joined = others;
    while joined != 0 {
        joined = (joined - 1) & others;
        let value = cost[joined | first] + below[others & !joined];
        if value < best.0 {
            best = (value, joined | first);
        }
    }
    best
}

/// `(1/|T|) Σ_{i,j ∈ T} c_ij` for every subset; infinite for the empty set.
fn subset_costs(program: &CoalitionProgram) -> Vec<f64> {
    let mut sums = vec![0f64; 1 << program.n];
    for set in 1..sums.len() {
        let last = set.ilog2() as usize;
        let others = set & !(1 << last);
        let links: f64 = (0..last)
            .filter(|i| others >> i & 1 == 1)
            .map(|i| program.at(i, last))
            .sum();
        sums[set] = sums[others] + program.at(last, last) + 2.0 * links;
    }
    sums[0] = f64::INFINITY;
    for (set, sum) in sums.iter_mut().enumerate().skip(1) {
        *sum /= f64::from(set.count_ones());
    }
    sums
}
