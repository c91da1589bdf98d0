//! The coalition program by local search: fast at any size, without a proof of optimality.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::CoalitionProgram;
use crate::Matrix;

/// Number of starts of one search: one by merging, the others random.
const STARTS: usize = 24;

/// Maximum number of passes of a descent. It needs about ten; the limit guarantees termination where
/// rounding between costs of very different size could cycle.
const PASSES: usize = 1000;

/// Smallest relative improvement that counts: smaller ones are rounding and could cycle.
const STEP: f64 = 1e-12;

/// The best assignment over all starts; unless stopped early, a function of the program and `seed`.
pub(super) fn solve(
    program: &CoalitionProgram,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut best = merged(&program.costs, program.coalitions);
    descend(program, &mut best);
    let mut least = program.cost(&best);
    for _ in 1..STARTS {
        if stop() {
            break;
        }
        let mut assignment = scattered(program, &mut random);
        descend(program, &mut assignment);
        let cost = program.cost(&assignment);
        if cost < least {
            (best, least) = (assignment, cost);
        }
    }
    best
}

/// The end of one descent from a random start.
pub(super) fn from_one_start(program: &CoalitionProgram, seed: u64) -> Vec<u32> {
    let mut assignment = scattered(program, &mut ChaCha8Rng::seed_from_u64(seed));
    descend(program, &mut assignment);
    assignment
}

/// Moves and swaps entries between coalitions as long as that lowers the cost. Coalitions never
/// become empty.
pub(super) fn descend(program: &CoalitionProgram, assignment: &mut [u32]) {
    let mut state = SearchState::new(program, assignment);
    for _ in 0..PASSES {
        let mut improved = false;
        for i in 0..program.n {
            improved |= state.improve_by_moving(i);
        }
        for i in 0..program.n {
            for j in 0..i {
                improved |= state.improve_by_swapping(i, j);
            }
        }
        if !improved {
            break;
        }
    }
}

/// Agglomerative start: merges the pair of coalitions with the least increase in cost, starting with
/// every entry alone, until `coalitions` are left (Ward's method).
pub(super) fn merged(costs: &Matrix, coalitions: usize) -> Vec<u32> {
    let n = costs.rows();
    let mut assignment: Vec<u32> = (0..n as u32).collect();
    let mut sizes = vec![1f64; n];
    // Costs between whole coalitions; coalitions of size 0 have been merged into others.
    let mut between = costs.values().to_vec();
    for _ in coalitions..n {
        let mut best = (f64::INFINITY, 0, 0);
        for a in (0..n).filter(|&a| sizes[a] > 0.0) {
            for b in (a + 1..n).filter(|&b| sizes[b] > 0.0) {
                let (own, other) = (between[a * n + a], between[b * n + b]);
                let together = (own + other + 2.0 * between[a * n + b]) / (sizes[a] + sizes[b]);
                let rise = together - own / sizes[a] - other / sizes[b];
                if rise < best.0 {
                    best = (rise, a, b);
                }
            }
        }
        let (_, a, b) = best;
        for c in 0..n {
            between[a * n + c] += between[b * n + c];
        }
        for c in 0..n {
            between[c * n + a] += between[c * n + b];
        }
        sizes[a] += std::mem::take(&mut sizes[b]);
        for coalition in assignment
            .iter_mut()
            .filter(|coalition| **coalition == b as u32)
        {
            *coalition = a as u32;
        }
    }
    super::canonical(&assignment)
}

/// A random assignment in which no coalition is empty.
fn scattered(program: &CoalitionProgram, random: &mut ChaCha8Rng) -> Vec<u32> {
    let coalitions = program.coalitions as u64;
    // The remainder's bias is below 2⁻⁵⁰ and does not matter to a heuristic.
    let mut assignment: Vec<u32> =
        (0..program.n as u64).map(|i| if i < coalitions { i } else { random.next_u64() % coalitions } as u32).collect();
    for last in (1..assignment.len()).rev() {
        assignment.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    assignment
}

/// An assignment with the sums from which the effect of a step is computed quickly.
struct SearchState<'a> {
    program: &'a CoalitionProgram,
    assignment: &'a mut [u32],
    sizes: Vec<f64>,
    /// Cost within every coalition: all ordered pairs and the diagonal.
    within: Vec<f64>,
    /// `links[i·K + c]`: sum of the costs between entry `i` and the other entries of coalition `c`.
    links: Vec<f64>,
}

impl<'a> SearchState<'a> {
    fn new(program: &'a CoalitionProgram, assignment: &'a mut [u32]) -> Self {
        let k = program.coalitions;
        let mut sizes = vec![0f64; k];
        let mut within = vec![0f64; k];
        let mut links = vec![0f64; k * program.n];
        for i in 0..program.n {
            let own = assignment[i] as usize;
            sizes[own] += 1.0;
            for (j, &other) in assignment.iter().enumerate() {
                if i != j {
                    links[i * k + other as usize] += program.at(i, j);
                }
            }
            within[own] += links[i * k + own] + program.at(i, i);
        }
        Self {
            program,
            assignment,
            sizes,
            within,
            links,
        }
    }

    fn link(&self, i: usize, coalition: usize) -> f64 {
        self.links[i * self.program.coalitions + coalition]
    }

    fn share(&self, coalition: usize) -> f64 {
        self.within[coalition] / self.sizes[coalition]
    }

    /// Makes the best move of entry `i`, if it lowers the cost.
    fn improve_by_moving(&mut self, i: usize) -> bool {
        let own = self.assignment[i] as usize;
        if self.sizes[own] < 2.0 {
            return false;
        }
        let diagonal = self.program.at(i, i);
        let left =
            (self.within[own] - 2.0 * self.link(i, own) - diagonal) / (self.sizes[own] - 1.0);
        let mut best = (0.0, own);
        for other in (0..self.program.coalitions).filter(|&other| other != own) {
            let joined = (self.within[other] + 2.0 * self.link(i, other) + diagonal)
                / (self.sizes[other] + 1.0);
            let (before, after) = (self.share(own) + self.share(other), left + joined);
            let change = after - before;
            if change < best.0 && change < -STEP * before {
                best = (change, other);
            }
        }
        if best.1 != own {
            self.transfer(i, best.1);
        }
        best.1 != own
    }

    /// Swaps `i` and `j` if that lowers the cost.
    fn improve_by_swapping(&mut self, i: usize, j: usize) -> bool {
        let (a, b) = (self.assignment[i] as usize, self.assignment[j] as usize);
        if a == b {
            return false;
        }
        let program = self.program;
        let (own, other, cross) = (program.at(i, i), program.at(j, j), program.at(i, j));
        let in_a =
            self.within[a] - 2.0 * self.link(i, a) - own + 2.0 * (self.link(j, a) - cross) + other;
        let in_b =
            self.within[b] - 2.0 * self.link(j, b) - other + 2.0 * (self.link(i, b) - cross) + own;
        let before = self.share(a) + self.share(b);
        let after = in_a / self.sizes[a] + in_b / self.sizes[b];
        let improves = after - before < -STEP * before;
        if improves {
            self.transfer(i, b);
            self.transfer(j, a);
        }
        improves
    }

    fn transfer(&mut self, i: usize, to: usize) {
        let (k, diagonal) = (self.program.coalitions, self.program.at(i, i));
        let from = std::mem::replace(&mut self.assignment[i], to as u32) as usize;
        self.within[from] -= 2.0 * self.link(i, from) + diagonal;
        self.within[to] += 2.0 * self.link(i, to) + diagonal;
        self.sizes[from] -= 1.0;
        self.sizes[to] += 1.0;
        for (j, cost) in self.program.row(i).iter().enumerate() {
            if i != j {
                self.links[j * k + from] -= cost;
                self.links[j * k + to] += cost;
            }
        }
    }
}
