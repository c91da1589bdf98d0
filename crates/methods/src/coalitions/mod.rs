//! The coalition program of CS-RCFL (Konti et al. 2024, eq. (11)).
//!
//! Given the loss `L_ij` of model `j` on the data of silo `i`, find the grouping of the `n` entries
//! into exactly `K` coalitions that minimises `Σ_C (1/|C|) Σ_{i,j ∈ C} L_ij`, an upper bound of the
//! losses of the coalitions' mean models (Theorem 1 there). With in-sample losses merging never
//! lowers the objective, so `K` must be given.
//!
//! [`CoalitionProgram::solve`] is fast enough for a round: exact for up to [`EXACT_UP_TO`] entries, by local
//! search beyond. [`CoalitionProgram::prove`] continues until optimality is proven or it is stopped. Both
//! return a lower bound, so the distance from the optimum is known.
//!
//! One file per algorithm: `exact`, dynamic programming over subsets; `search`, local search;
//! `bound` and `certificate`, cheap lower bounds; `relaxation`, tighter and costlier lower bounds;
//! `branch`, branch and bound with these; `proof`, lower bounds that others can check. [`choice`]
//! chooses the number of coalitions.

mod bound;
mod branch;
mod certificate;
pub mod choice;
mod exact;
pub mod proof;
mod relaxation;
mod search;

pub use exact::LARGEST as EXACT_UP_TO;

use crate::Matrix;
use crate::strategy::Scores;
use proof::Proof;

/// Relative tolerance when objectives are compared: members may sum in different orders.
pub const TOLERANCE: f64 = 1e-9;

/// Nodes of branch and bound after which dynamic programming is faster, for sizes that allow it. Most
/// programs of such sizes need a handful.
const BRANCHES: u64 = 1000;

/// Iterations of the relaxation in the search of a proof, each of them an eigendecomposition.
const PROOF_ITERATIONS: usize = 600;

/// Bound on the work of the search of a proof for large programs: iterations times `n³`.
const PROOF_WORK: usize = 1_500_000_000;

/// Errors of stating a coalition program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No coalitions, or more than entries.
    #[error(
        "{entries} entries cannot be grouped into {coalitions} coalitions: ask for 1 to {entries}"
    )]
    Coalitions {
        /// Coalitions asked for.
        coalitions: usize,
        /// Entries at hand.
        entries: usize,
    },
}

/// A grouping of the entries, its objective and a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Coalition of every entry; coalitions are numbered in the order of their first entry.
    pub assignment: Vec<u32>,
    /// Value of the program at this assignment.
    pub objective: f64,
    /// A proven lower bound of the program's value; equal to `objective` if `optimal`.
    pub lower_bound: f64,
    /// True if the grouping is proven to be the best (up to [`TOLERANCE`]).
    pub optimal: bool,
    /// True if the search was stopped early: only then does the answer depend on the machine.
    pub stopped: bool,
}

/// A grouping with a proof of how far it is from the best one at most.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// The grouping.
    pub solution: Solution,
    /// Proof that others can check; `None` up to [`EXACT_UP_TO`] entries, where they solve the program.
    pub proof: Option<Proof>,
    /// See [`CoalitionProgram::gap`].
    pub gap: f64,
}

/// One instance of the coalition program.
///
/// Only `(L + Lᵀ)/2` matters, and a constant added to a row (a silo with harder data, or one that
/// exaggerates) changes the objective of every grouping by the same amount. So the least entry of
/// every row is subtracted: costs are at least 0, and a row of huge numbers does not cause
/// cancellation in the others.
#[derive(Debug, Clone)]
pub struct CoalitionProgram {
    n: usize,
    coalitions: usize,
    /// Symmetric, at least 0, `n × n`.
    costs: Matrix,
    /// The subtracted total: `Σ_i min_j L_ij`.
    shift: f64,
    /// `Σ_i |min_j L_ij|`: the scale of rounding errors.
    size: f64,
}

impl CoalitionProgram {
    /// The program for exactly `coalitions` coalitions of the scored entries.
    ///
    /// # Errors
    /// [`ProgramError::Coalitions`] unless `1 ≤ coalitions ≤ scores.len()`.
    pub fn new(scores: &Scores, coalitions: usize) -> Result<Self, ProgramError> {
        let n = scores.len();
        if coalitions == 0 || coalitions > n {
            return Err(ProgramError::Coalitions {
                coalitions,
                entries: n,
            });
        }
        let least: Vec<f64> = (0..n)
            .map(|row| {
                (0..n)
                    .map(|column| scores.at(row, column))
                    .fold(f64::INFINITY, f64::min)
            })
            .collect();
        let above = |row: usize, column: usize| scores.at(row, column) - least[row];
        let costs = Matrix::from_fn(n, n, |row, column| {
            (above(row, column) + above(column, row)) / 2.0
        });
        Ok(Self {
            n,
            coalitions,
            costs,
            shift: least.iter().sum(),
            size: least.iter().map(|least| least.abs()).sum(),
        })
    }

    /// Solves the program in the time of a round: exactly for up to [`EXACT_UP_TO`] entries; beyond,
    /// by a local search from several starts drawn from `seed`. Its result is `optimal` only if the
    /// lower bound proves it, as it does for clearly separated coalitions.
    pub fn solve(&self, seed: u64) -> Solution {
        self.solve_until(seed, &never)
    }

    /// As [`Self::solve`], but tries no further start once `stop` returns true.
    pub fn solve_until(&self, seed: u64, stop: &(dyn Fn() -> bool + Sync)) -> Solution {
        match self.solve_exactly() {
            Some(found) => {
                let cost = self.cost(&found);
                self.solution(&found, cost)
            }
            None => {
                let found = search::solve(self, seed, stop);
                self.solution(&found, self.quick_bound(&found))
            }
        }
    }

    /// Searches until optimality is proven or `stop` returns true; then returns the best grouping so
    /// far with a valid lower bound. Unless stopped, the result is a function of the program and
    /// `seed` (up to the last bits of the bound between processors).
    ///
    /// Takes milliseconds for clearly separated coalitions of any size and up to [`EXACT_UP_TO`]
    /// entries, seconds for 20 entries, and exponential time beyond in the worst case.
    pub fn prove(&self, seed: u64, stop: &(dyn Fn() -> bool + Sync)) -> Solution {
        if self.n <= exact::LARGEST {
            return self.solve(seed);
        }
        let found = search::solve(self, seed, stop);
        let bound = self.quick_bound(&found);
        if self.closes(self.cost(&found), bound) {
            return self.solution(&found, bound);
        }
        let enumerable = self.n <= exact::LARGEST_WITH_PATIENCE;
        let nodes = if enumerable { BRANCHES } else { u64::MAX };
        let progress = branch::search(self, found, bound, nodes, stop);
        let mut solution = self.solution(&progress.best, progress.bound);
        if !solution.optimal
            && enumerable
            && let Some(found) = exact::solve(self, stop)
        {
            solution = self.solution(&found, self.cost(&found));
        }
        Solution {
            stopped: !solution.optimal,
            ..solution
        }
    }

    /// Solves the program in the time of a round, with a proof for those that check it: exactly for up
    /// to [`EXACT_UP_TO`] entries. Beyond, the best grouping of [`Self::solve`] and of the
    /// relaxation, with the best proof that is found in a fixed number of steps, so that the same
    /// program gives the same answer on one machine.
    pub fn solve_with_proof(&self, seed: u64) -> Proven {
        if self.n <= exact::LARGEST {
            let solution = self.solve(seed);
            return Proven {
                solution,
                proof: None,
                gap: 0.0,
            };
        }
        let mut best = search::solve(self, seed, &never);
        let mut proven = proof::from_dual(self, &certificate::dual(self, &best));
        let closed = |cost: f64, proven: &Option<(Proof, f64)>| {
            let bound = proven.as_ref().map_or(0.0, |(_, bound)| *bound);
            relative_gap(cost, bound) <= proof::CLOSED
        };
        if !closed(self.cost(&best), &proven) {
            let until = relaxation::RelaxationLimit {
                bound: self.closing_bound(self.cost(&best)),
                iterations: PROOF_ITERATIONS.min(PROOF_WORK / self.n.pow(3)),
                stop: &never,
            };
            let (dual, iterate) = relaxation::relax_to_prices(self, &until);
            let rounded = branch::round(self, &iterate.point);
            if self.cost(&rounded) < self.cost(&best) {
                best = rounded;
            }
            let relaxed = dual.and_then(|dual| proof::from_dual(self, &dual));
            let bound = |proven: &Option<(Proof, f64)>| proven.as_ref().map(|(_, bound)| *bound);
            if bound(&relaxed) > bound(&proven) {
                proven = relaxed;
            }
        }
        // Prices of 0 prove that no cost is negative, if nothing else.
        let (proof, bound) = proven.unwrap_or_else(|| (Proof::nothing(self.n), 0.0));
        let solution = self.solution(&best, bound.max(0.0));
        let gap = self.gap(&solution.assignment, &proof).unwrap_or(1.0);
        Proven {
            solution,
            proof: Some(proof),
            gap,
        }
    }

    /// Returns how much of the cost of a grouping a better one could save at most, from 0 to 1, by what `proof`
    /// proves. The cost is what the objective is above `Σ_i min_j L_ij`, so that a row of large
    /// losses does not hide the differences of the others. `None` if the proof is not about as many
    /// entries, or proves nothing.
    ///
    /// The same bits on every machine.
    ///
    /// # Panics
    /// As [`Self::objective`].
    pub fn gap(&self, assignment: &[u32], proof: &Proof) -> Option<f64> {
        let bound = proof::lower_bound(self, proof)?;
        Some(relative_gap(self.cost(assignment), bound))
    }

    /// The lower bound of the objective that `proof` proves; `None` as in [`Self::gap`].
    pub fn lower_bound(&self, proof: &Proof) -> Option<f64> {
        // No cost is negative.
        Some(self.shift + proof::lower_bound(self, proof)?.max(0.0))
    }

    /// A grouping that the search of a round finds and that is better than `assignment` by more than
    /// rounding.
    ///
    /// # Panics
    /// As [`Self::audit`].
    pub fn better(&self, assignment: &[u32], seed: u64) -> Option<Solution> {
        let mut near = assignment.to_vec();
        search::descend(self, &mut near);
        let limit = self.closing_bound(self.cost(assignment));
        let found = Some(near).filter(|near| self.cost(near) < limit);
        let found = found.or_else(|| {
            let far = search::solve(self, seed, &never);
            Some(far).filter(|far| self.cost(far) < limit)
        })?;
        Some(self.solution(&found, 0.0))
    }

    /// A grouping that no move of one entry and no swap of two improves, from one start that is drawn
    /// from `seed`. It may be far from the best one.
    pub fn local_optimum(&self, seed: u64) -> Vec<u32> {
        canonical(&search::from_one_start(self, seed))
    }

    /// Looks for a better grouping than `assignment`: exactly where that is fast, otherwise by local
    /// search from it. Returns `assignment` itself, with a lower bound, if nothing found is better by
    /// more than rounding.
    ///
    /// # Panics
    /// If `assignment` is not a grouping into the program's number of coalitions.
    pub fn audit(&self, assignment: &[u32]) -> Solution {
        let (found, bound) = match self.solve_exactly() {
            Some(found) => {
                let cost = self.cost(&found);
                (found, cost)
            }
            None => {
                let mut found = assignment.to_vec();
                search::descend(self, &mut found);
                let bound = self.quick_bound(&found);
                (found, bound)
            }
        };
        let better = self.cost(&found) < self.cost(assignment) * (1.0 - TOLERANCE);
        self.solution(if better { &found } else { assignment }, bound)
    }

    fn solve_exactly(&self) -> Option<Vec<u32>> {
        (self.n <= exact::LARGEST)
            .then(|| exact::solve(self, &never).expect("`never` does not stop it"))
    }

    /// A cheap lower bound of every cost; tight if `assignment` is close to optimal.
    fn quick_bound(&self, assignment: &[u32]) -> f64 {
        bound::lower_bound(self).max(certificate::bound(self, assignment))
    }

    /// Returns whether a lower bound proves `cost` optimal, up to rounding.
    fn closes(&self, cost: f64, bound: f64) -> bool {
        bound >= self.closing_bound(cost)
    }

    /// The least bound that proves `cost` optimal.
    fn closing_bound(&self, cost: f64) -> f64 {
        cost * (1.0 - TOLERANCE)
    }

    /// Value of the program at `assignment`: `Σ_C (1/|C|) Σ_{i,j ∈ C} L_ij`.
    ///
    /// # Panics
    /// If `assignment` has another length, or a number beyond its entries.
    pub fn objective(&self, assignment: &[u32]) -> f64 {
        self.shift + self.cost(assignment)
    }

    /// Returns whether two objective values of this program are equal up to rounding.
    pub fn same(&self, a: f64, b: f64) -> bool {
        let size = (a - self.shift).abs().max((b - self.shift).abs()) + self.size;
        size.is_finite() && (a - b).abs() <= TOLERANCE * size
    }

    /// Returns whether `assignment` groups the entries into exactly the required number of coalitions,
    /// numbered in the order of their first entry.
    pub fn is_canonical(&self, assignment: &[u32]) -> bool {
        assignment.len() == self.n
            && is_canonical(assignment)
            && assignment
                .iter()
                .max()
                .is_some_and(|&last| last as usize + 1 == self.coalitions)
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.costs[(i, j)]
    }

    fn row(&self, i: usize) -> &[f64] {
        self.costs.row(i)
    }

    /// The objective without the shift.
    fn cost(&self, assignment: &[u32]) -> f64 {
        let mut sums = vec![0f64; self.n];
        let mut sizes = vec![0u32; self.n];
        for (i, &own) in assignment.iter().enumerate() {
            sizes[own as usize] += 1;
            for (cost, &other) in self.row(i).iter().zip(assignment) {
                if own == other {
                    sums[own as usize] += cost;
                }
            }
        }
        let shares = sums.iter().zip(&sizes).filter(|(_, size)| **size > 0);
        shares.map(|(sum, &size)| sum / f64::from(size)).sum()
    }

    /// An assignment with its value; `bound` is a lower bound of every cost.
    fn solution(&self, assignment: &[u32], bound: f64) -> Solution {
        let assignment = canonical(assignment);
        let cost = self.cost(&assignment);
        let optimal = self.closes(cost, bound);
        let objective = self.shift + cost;
        let lower_bound = if optimal {
            objective
        } else {
            (self.shift + bound).min(objective)
        };
        Solution {
            assignment,
            objective,
            lower_bound,
            optimal,
            stopped: false,
        }
    }
}

/// Returns what part of `cost` is above `bound`, from 0 to 1.
fn relative_gap(cost: f64, bound: f64) -> f64 {
    if cost > bound.max(0.0) {
        ((cost - bound) / cost).min(1.0)
    } else {
        0.0
    }
}

fn never() -> bool {
    false
}

/// Numbers coalitions in the order of their first entry.
pub fn canonical(assignment: &[u32]) -> Vec<u32> {
    let mut seen: Vec<u32> = Vec::new();
    assignment
        .iter()
        .map(|coalition| {
            let known = seen.iter().position(|seen| seen == coalition);
            known.unwrap_or_else(|| {
                seen.push(*coalition);
                seen.len() - 1
            }) as u32
        })
        .collect()
}

/// Returns whether coalitions are numbered in the order of their first entry.
fn is_canonical(assignment: &[u32]) -> bool {
    let mut next = 0;
    assignment.iter().all(|&coalition| {
        next += u32::from(coalition == next);
        coalition < next
    })
}

#[cfg(test)]
mod tests;
