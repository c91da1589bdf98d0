//! The coalition program of CS-RCFL (Konti et al. 2024, eq. (11)): who learns with whom.
//!
//! Given the loss `L_ij` of model `j` on the data of silo `i`, divide the `n` entries into exactly
//! `K` coalitions so that `Σ_C (1/|C|) Σ_{i,j ∈ C} L_ij` is least: an upper bound of the losses
//! that the coalitions' mean models will have (Theorem 1 there). With in-sample losses merging
//! never pays, so `K` has to be given.
//!
//! Two efforts: [`Program::solve`] is what a round can afford, exact for up to [`EXACT_UP_TO`]
//! entries, by local search beyond. [`Program::prove`] goes on until the answer is proven, or it is
//! told to stop. Both say how far from the optimum their answer can be at most.
//!
//! Roads, one file each: `exact`, dynamic programming over subsets; `search`, local search; `bound`
//! and `certificate`, lower bounds for little; `relaxation`, lower bounds for more; `branch`, which
//! makes a proof of them. [`choice`] finds the number of coalitions, [`enumeration`] solves the
//! program that this one stands for.

mod bound;
mod branch;
mod certificate;
pub mod choice;
mod exact;
mod relaxation;
mod search;

pub use exact::LARGEST as EXACT_UP_TO;

use crate::Matrix;
use crate::strategy::Scores;

/// Divisions are compared up to this part of their objective: members sum in different orders.
pub const TOLERANCE: f64 = 1e-9;

/// Branches after which enumeration is the quicker road, where it is one. Most programs of that
/// size need a handful.
const BRANCHES: u64 = 1000;

/// Why there is no program to solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No coalitions, or more than there are entries.
    #[error(
        "{entries} entries cannot be divided into {coalitions} coalitions: ask for 1 to {entries}"
    )]
    Coalitions {
        /// Coalitions asked for.
        coalitions: usize,
        /// Entries at hand.
        entries: usize,
    },
}

/// A division of the entries, and how good it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Coalition of every entry; coalitions are numbered in the order of their first entry.
    pub assignment: Vec<u32>,
    /// Value of the program at this assignment.
    pub objective: f64,
    /// A proven lower bound of the program's value; equal to `objective` if `optimal`.
    pub lower_bound: f64,
    /// Whether it is proven that no division is better (up to [`TOLERANCE`]).
    pub optimal: bool,
    /// Whether it was stopped before it was done: only then does the answer depend on the machine.
    pub stopped: bool,
}

/// One instance of the coalition program.
///
/// Only `(L + Lᵀ)/2` matters, and a constant added to a row (a silo whose data are harder, or who
/// exaggerates) changes every division alike. So rows are measured from their least entry: costs
/// are at least 0, and a row of huge numbers cannot drown the others in rounding.
#[derive(Debug, Clone)]
pub struct Program {
    n: usize,
    coalitions: usize,
    /// Symmetric, at least 0, `n × n`.
    costs: Matrix,
    /// What was taken off: `Σ_i min_j L_ij`.
    shift: f64,
    /// `Σ_i |min_j L_ij|`: how large the numbers are that rounding acts on.
    size: f64,
}

impl Program {
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

    /// Solves it as well as a round can afford: exactly for up to [`EXACT_UP_TO`] entries; beyond,
    /// by a local search from several starts drawn from `seed`, whose result is optimal only where
    /// its bound shows it, as it does for coalitions that stand clearly apart.
    pub fn solve(&self, seed: u64) -> Solution {
        self.solve_until(seed, &never)
    }

    /// As [`Self::solve`], with fewer starts once `stop` says so; one there always is.
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

    /// Solves it to the end: until it is proven that nothing is better, or `stop` says so. What is
    /// known by then is given back, and is proven too. Unless stopped, a function of the program
    /// and `seed` (up to last bits of the bound between processors).
    ///
    /// Takes milliseconds where the coalitions stand apart, at any size, and up to
    /// [`EXACT_UP_TO`] entries; seconds for 20 entries; beyond, in the worst case, exponential
    /// time.
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

    /// Looks for something better than `assignment`: by solving exactly where that is quick, else
    /// by descending from it. Gives `assignment` back, with what is proven about it, if nothing
    /// is better by more than rounding.
    ///
    /// # Panics
    /// If `assignment` is not a division into the program's number of coalitions.
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
        (self.n <= exact::LARGEST).then(|| exact::solve(self, &never).expect("nothing stops it"))
    }

    /// A lower bound of every cost for little, good if `assignment` is.
    fn quick_bound(&self, assignment: &[u32]) -> f64 {
        bound::lower_bound(self).max(certificate::bound(self, assignment))
    }

    /// Whether a lower bound proves that nothing costs less than `cost`, up to rounding.
    fn closes(&self, cost: f64, bound: f64) -> bool {
        bound >= self.closing_bound(cost)
    }

    /// The least bound that does.
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

    /// Whether two values of this program are the same up to rounding.
    pub fn same(&self, a: f64, b: f64) -> bool {
        let size = (a - self.shift).abs().max((b - self.shift).abs()) + self.size;
        size.is_finite() && (a - b).abs() <= TOLERANCE * size
    }

    /// Whether `assignment` divides the entries into exactly the asked number of coalitions,
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

/// Whether coalitions are numbered in the order of their first entry.
fn is_canonical(assignment: &[u32]) -> bool {
    let mut next = 0;
    assignment.iter().all(|&coalition| {
        next += u32::from(coalition == next);
        coalition < next
    })
}

#[cfg(test)]
mod tests;
