//! A semidefinite relaxation of the coalition program, which gives proven lower bounds.
//!
//! A grouping is the matrix `Z` with `Z_ij = 1/|C|` where `i` and `j` share coalition `C`, else 0;
//! its cost is `⟨c, Z⟩`. Such a `Z` has row sums 1, trace `K`, no negative entry, and eigenvalues
//! between 0 and 1 (Peng & Wei 2007). Keeping only these properties gives a convex program; the
//! triangle inequalities of [`cuts`] tighten it.
//!
//! **The bound.** For any matrix `B ≥ 0` and any multipliers of the cuts, with `M` the costs plus
//! the weighted cuts minus `B`: no grouping costs less than `vᵀMv` plus the sum of the `K − 1`
//! least eigenvalues of `M` on the vectors orthogonal to `v = 1/√n`. This holds at every iterate,
//! converged or not, so every iterate gives a valid bound.
//!
//! **The iteration** is the alternating direction method of multipliers (ADMM) between a point with
//! the required spectrum (an eigendecomposition) and a point without negative entries; the dual
//! prices of their difference are `B`.

mod cuts;
mod spectrum;

use crate::Matrix;
use cuts::Cuts;
use spectrum::Spectrum;

use super::CoalitionProgram;

/// Iterations between two evaluations of the bound.
const LOOK: usize = 10;

/// Iterations before the first search for cuts, and between two searches.
const RENEW: usize = 30;

/// Constraints of a node of the search tree: which entries share a coalition and which do not.
#[derive(Debug, Clone)]
pub(super) struct FixedPairs {
    /// Entries that are together, as blocks that cover all entries.
    pub(super) blocks: Vec<Vec<usize>>,
    /// Pairs of blocks (positions, the lower first) that are apart.
    pub(super) apart: Vec<(usize, usize)>,
}

impl FixedPairs {
    /// Nothing is fixed.
    pub(super) fn nothing(n: usize) -> Self {
        Self {
            blocks: (0..n).map(|entry| vec![entry]).collect(),
            apart: Vec::new(),
        }
    }

    /// Projects onto the matrices without negative entries that satisfy the constraints.
    fn project(&self, point: &mut Matrix) {
        if self.blocks.len() < point.rows() {
            for a in &self.blocks {
                for b in &self.blocks {
                    let pairs = || a.iter().flat_map(|&i| b.iter().map(move |&j| (i, j)));
                    let sum: f64 = pairs().map(|at| point[at]).sum();
                    let mean = sum / (a.len() * b.len()) as f64;
                    pairs().for_each(|at| point[at] = mean);
                }
            }
        }
        for value in point.values_mut() {
            *value = value.max(0.0);
        }
        for &(a, b) in &self.apart {
            for &i in &self.blocks[a] {
                for &j in &self.blocks[b] {
                    point[(i, j)] = 0.0;
                    point[(j, i)] = 0.0;
                }
            }
        }
    }
}

/// State of an iteration, from which it can continue on this node or a child of it.
#[derive(Debug, Clone)]
pub(super) struct Iterate {
    /// The point without negative entries: the best guess at `Z`.
    pub(super) point: Matrix,
    /// Prices per unit of `penalty`.
    prices: Matrix,
    penalty: f64,
    /// Initial penalty.
    scale: f64,
    cuts: Cuts,
}

impl Iterate {
    /// The uniform starting point.
    pub(super) fn start(program: &CoalitionProgram) -> Self {
        let (n, k) = (program.n, program.coalitions as f64);
        let own = k / n as f64;
        let other = (1.0 - own) / (n as f64 - 1.0).max(1.0);
        let costs = program.costs.values();
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        let spread = costs.iter().map(|cost| (cost - mean).abs()).sum::<f64>() / costs.len() as f64;
        // Found by experiment: costs divided by this are of the order of Z.
        let scale = (spread * n as f64 / k / 2.0).max(f64::MIN_POSITIVE);
        Self {
            point: Matrix::from_fn(n, n, |i, j| if i == j { own } else { other }),
            prices: Matrix::zeros(n, n),
            penalty: scale,
            scale,
            cuts: Cuts::default(),
        }
    }
}

/// Stopping criteria of an iteration.
pub(super) struct RelaxationLimit<'a> {
    /// Stop when this bound is reached.
    pub(super) bound: f64,
    /// Maximum number of iterations.
    pub(super) iterations: usize,
    /// Stop when this returns true.
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
}

/// Prices that prove a lower bound.
#[derive(Debug, Clone)]
pub(super) struct Dual {
    /// Of pairs, at least 0: what the costs of sharing a coalition are above the reduced ones.
    pub(super) prices: Matrix,
    /// Triangle inequalities `Z_ij + Z_ik ≤ Z_ii + Z_jk`, as `(i, j, k, price)`.
    pub(super) cuts: Vec<(u16, u16, u16, f64)>,
}

/// Runs the iteration on a node; returns the greatest bound proven for it and the final state.
pub(super) fn relax(
    program: &CoalitionProgram,
    fixed: &FixedPairs,
    from: Iterate,
    until: &RelaxationLimit<'_>,
) -> (f64, Iterate) {
    relax_with(program, fixed, from, until, |_| ())
}

/// Relaxes the program with no pair fixed; returns the final state, and the prices of the greatest bound.
pub(super) fn relax_to_prices(
    program: &CoalitionProgram,
    until: &RelaxationLimit<'_>,
) -> (Option<Dual>, Iterate) {
    let (fixed, from) = (FixedPairs::nothing(program.n), Iterate::start(program));
    let mut dual = None;
    let (_, iterate) = relax_with(program, &fixed, from, until, |run| dual = Some(run.dual()));
    (dual, iterate)
}

/// Calls `better` whenever the bound has grown.
fn relax_with(
    program: &CoalitionProgram,
    fixed: &FixedPairs,
    from: Iterate,
    until: &RelaxationLimit<'_>,
    mut better: impl FnMut(&RelaxationRun<'_>),
) -> (f64, Iterate) {
    let mut run = RelaxationRun::new(program, fixed, from);
    let mut best = f64::NEG_INFINITY;
    let mut before = f64::NEG_INFINITY;
    for iteration in 1..=until.iterations {
        if (until.stop)() {
            break;
        }
        let Some((apart, moved)) = run.step() else {
            break;
        };
        if iteration % LOOK == 0 {
            let bound = run.bound();
            if bound > best {
                best = bound;
                better(&run);
            }
            if best >= until.bound {
                break;
            }
            run.balance(apart, moved);
        }
        if iteration % RENEW == 0 {
            let new = run.iterate.cuts.renew(&run.between);
            // At this rate a hundred more such intervals would not suffice.
            let rate = best - before;
            if new == 0 && iteration > 2 * RENEW && rate * 20.0 < until.bound - best {
                break;
            }
            before = best;
        }
    }
    (best, run.iterate)
}

struct RelaxationRun<'a> {
    program: &'a CoalitionProgram,
    fixed: &'a FixedPairs,
    iterate: Iterate,
    /// The point with the required spectrum.
    spectral: Matrix,
    /// The mean of both points, at which cuts are evaluated.
    between: Matrix,
    /// Costs with the weighted cuts.
    costs: Matrix,
    scratch: Matrix,
    spectrum: Spectrum,
}

impl<'a> RelaxationRun<'a> {
    fn new(program: &'a CoalitionProgram, fixed: &'a FixedPairs, iterate: Iterate) -> Self {
        let n = program.n;
        let mut costs = program.costs.clone();
        iterate.cuts.add_to(&mut costs);
        Self {
            program,
            fixed,
            spectral: iterate.point.clone(),
            between: iterate.point.clone(),
            iterate,
            costs,
            scratch: Matrix::zeros(n, n),
            spectrum: Spectrum::new(n),
        }
    }

    /// One iteration; returns the primal residual (distance of the two points) and the dual residual
    /// (movement of the second point). `None` if the eigendecomposition fails.
    fn step(&mut self) -> Option<(f64, f64)> {
        let penalty = self.iterate.penalty;
        if !self.iterate.cuts.is_empty() {
            let cuts = &mut self.iterate.cuts;
            cuts.ascend(&self.between, penalty, &mut self.scratch);
            self.costs.clone_from(&self.program.costs);
            cuts.add_to(&mut self.costs);
        }
        self.project_spectrum()?;
        let (mut apart, mut moved) = (0.0, 0.0);
        let Iterate { point, prices, .. } = &mut self.iterate;
        let new = &mut self.scratch;
        for ((new, z), price) in new
            .values_mut()
            .iter_mut()
            .zip(self.spectral.values())
            .zip(prices.values())
        {
            *new = z + price;
        }
        self.fixed.project(new);
        let rows = self.spectral.values().iter().zip(new.values());
        let state = point.values_mut().iter_mut().zip(prices.values_mut());
        for (((z, new), (point, price)), between) in rows.zip(state).zip(self.between.values_mut())
        {
            let difference = z - new;
            *price += difference;
            apart += difference * difference;
            moved += (new - *point) * (new - *point);
            *point = *new;
            *between = (z + new) / 2.0;
        }
        Some((apart.sqrt(), moved.sqrt()))
    }

    /// Sets `spectral` to the matrix with row sums 1, trace `K` and eigenvalues from 0 to 1 that is
    /// nearest to `point − prices − costs/penalty`.
    fn project_spectrum(&mut self) -> Option<()> {
        let n = self.program.n;
        let Iterate {
            point,
            prices,
            penalty,
            ..
        } = &self.iterate;
        let target = &mut self.scratch;
        let parts = point.values().iter().zip(prices.values());
        for ((target, (point, price)), cost) in target
            .values_mut()
            .iter_mut()
            .zip(parts)
            .zip(self.costs.values())
        {
            *target = point - price - cost / penalty;
        }
        centre(target);
        push_ones(target, -1.0);
        let (values, vectors) = self.spectrum.decompose(target)?;
        // The first eigenvalue belongs to the vector of ones, see `push_ones`.
        let shares = shares(&values[1..], (self.program.coalitions - 1) as f64);
        let spectral = self.spectral.values_mut();
        spectral.fill(1.0 / n as f64);
        for (column, &share) in (1..).zip(&shares) {
            if share > 0.0 {
                let vector: Vec<f64> = vectors.col(column).iter().copied().collect();
                for (row, own) in spectral.chunks_exact_mut(n).zip(&vector) {
                    let factor = share * own;
                    for (z, other) in row.iter_mut().zip(&vector) {
                        *z += factor * other;
                    }
                }
            }
        }
        Some(())
    }

    /// A lower bound of the cost of every grouping in this node, with a margin for rounding.
    fn bound(&mut self) -> f64 {
        let Iterate {
            prices, penalty, ..
        } = &self.iterate;
        for ((value, cost), price) in self
            .scratch
            .values_mut()
            .iter_mut()
            .zip(self.costs.values())
            .zip(prices.values())
        {
            *value = cost + price * penalty;
        }
        spectral_bound(
            &mut self.scratch,
            self.program.coalitions,
            &mut self.spectrum,
        )
    }

    /// The prices of this bound.
    fn dual(&self) -> Dual {
        let Iterate {
            prices,
            penalty,
            cuts,
            ..
        } = &self.iterate;
        Dual {
            prices: Matrix::from_fn(prices.rows(), prices.columns(), |i, j| {
                // Prices of the iteration are those of entries that would become negative.
                -prices[(i, j)] * penalty
            }),
            cuts: cuts.priced().collect(),
        }
    }

    /// Adapts the penalty so that both residuals stay within a factor of each other. The factor is
    /// limited: where the optimum is not unique, the residuals do not balance for any penalty.
    fn balance(&mut self, apart: f64, moved: f64) {
        const STEP: f64 = 1.3;
        const REACH: f64 = 20.0;
        let Iterate {
            prices,
            penalty,
            scale,
            ..
        } = &mut self.iterate;
        let factor = if apart > 5.0 * moved {
            STEP
        } else if moved > 5.0 * apart {
            1.0 / STEP
        } else {
            return;
        };
        let within = *scale / REACH..=*scale * REACH;
        if !within.contains(&(*penalty * factor)) {
            return;
        }
        *penalty *= factor;
        for price in prices.values_mut() {
            *price /= factor;
        }
    }
}

/// The lower bound that a symmetric `matrix` of reduced costs proves for groupings into `coalitions`,
/// minus a bound of the rounding error. Overwrites the matrix.
fn spectral_bound(matrix: &mut Matrix, coalitions: usize, spectrum: &mut Spectrum) -> f64 {
    let n = matrix.rows() as f64;
    let size = norm(matrix);
    let along = matrix.values().iter().sum::<f64>() / n;
    centre(matrix);
    push_ones(matrix, 1.0);
    let Some(values) = spectrum.eigenvalues(matrix) else {
        return f64::NEG_INFINITY;
    };
    let least: f64 = values[..coalitions - 1].iter().sum();
    along + least - 4.0 * f64::EPSILON * n.sqrt() * coalitions as f64 * size
}

/// The lower bound from reduced costs `c − B`, for any prices `B ≥ 0`, without cuts.
pub(super) fn bound_of(mut reduced: Matrix, coalitions: usize) -> f64 {
    let mut spectrum = Spectrum::new(reduced.rows());
    spectral_bound(&mut reduced, coalitions, &mut spectrum)
}

/// The eigenvalues, ascending, of a symmetric matrix on the vectors orthogonal to that of ones, and
/// their unit eigenvectors.
pub(super) struct Orthogonal {
    pub(super) values: Vec<f64>,
    pub(super) vectors: Vec<Vec<f64>>,
}

impl Orthogonal {
    /// `None` if they cannot be computed.
    pub(super) fn of(mut matrix: Matrix) -> Option<Self> {
        centre(&mut matrix);
        push_ones(&mut matrix, 1.0);
        let mut spectrum = Spectrum::new(matrix.rows());
        let (mut values, vectors) = spectrum.decompose(&matrix)?;
        // The last belongs to the vector of ones, see `push_ones`.
        values.pop();
        let column = |at: usize| vectors.col(at).iter().copied().collect();
        Some(Self {
            vectors: (0..values.len()).map(column).collect(),
            values,
        })
    }
}

/// Subtracts the means of rows and columns: the result is orthogonal to the vector of ones.
fn centre(matrix: &mut Matrix) {
    let n = matrix.rows();
    let means: Vec<f64> = (0..n)
        .map(|row| matrix.row(row).iter().sum::<f64>() / n as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    for (row, own) in means.iter().enumerate() {
        for (value, other) in matrix.row_mut(row).iter_mut().zip(&means) {
            *value += mean - own - other;
        }
    }
}

/// Makes the eigenvalue of the vector of ones of a centred matrix the largest (`sign` 1) or the
/// smallest (`sign` −1).
fn push_ones(matrix: &mut Matrix, sign: f64) {
    let beyond = sign * (2.0 * norm(matrix)).max(f64::MIN_POSITIVE) / matrix.rows() as f64;
    for value in matrix.values_mut() {
        *value += beyond;
    }
}

fn norm(matrix: &Matrix) -> f64 {
    let squares: f64 = matrix.values().iter().map(|value| value * value).sum();
    squares.sqrt()
}

/// The point of `{0 ≤ x ≤ 1, Σx = total}` nearest to `values`: `clamp(value − level)`, with the
/// level found by bisection.
fn shares(values: &[f64], total: f64) -> Vec<f64> {
    let clamped = |level: f64| {
        values
            .iter()
            .map(move |value| (value - level).clamp(0.0, 1.0))
    };
    let (least, most) = values.iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), value| (least.min(*value), most.max(*value)),
    );
    let (mut low, mut high) = (least - 1.0, most);
    for _ in 0..100 {
        let middle = low + (high - low) / 2.0;
        if clamped(middle).sum::<f64>() > total {
            low = middle;
        } else {
            high = middle;
        }
    }
    clamped(high).collect()
}
