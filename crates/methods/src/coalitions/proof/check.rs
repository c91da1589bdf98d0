//! Checks a proof: the lower bound that it proves, with all rounding errors subtracted.

use super::Proof;
use crate::Matrix;
use crate::coalitions::CoalitionProgram;

/// Half the distance from 1 to the next number: the largest relative error of one operation.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// Bound of the relative error of a sum or product of `terms` numbers, in any order (Higham 2002,
/// Lemma 3.1), with some room for computing the bound itself.
fn error(terms: usize) -> f64 {
    let all = (terms + 4) as f64 * ROUNDING;
    1.01 * all / (1.0 - all)
}

/// A lower bound of the cost of every grouping of the program, proven by `proof`; `None` if it is not
/// about as many entries, or proves nothing.
///
/// The bound holds for the exact values of the program's costs. See [`proof`](super) for why.
pub(in crate::coalitions) fn lower_bound(program: &CoalitionProgram, proof: &Proof) -> Option<f64> {
    let (n, coalitions) = (program.n, program.coalitions as f64);
    if !proof.fits(n) {
        return None;
    }
    let Reduced {
        mut values,
        mut sizes,
    } = reduced(program, proof);
    // Any `y` is valid, so these sums need no bound of their errors.
    let means: Vec<f64> = (0..n)
        .map(|row| values.row(row).iter().sum::<f64>() / n as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    let y: Vec<f64> = means.iter().map(|own| 2.0 * own - mean).collect();
    let lift = proof.level / n as f64;
    for i in 0..n {
        for j in 0..n {
            values[(i, j)] = values[(i, j)] - (y[i] + y[j]) / 2.0 + lift;
            sizes[(i, j)] += y[i].abs() + y[j].abs() + lift.abs();
        }
        values[(i, i)] -= proof.level;
        sizes[(i, i)] += proof.level.abs();
    }
    let below = least_eigenvalue(&mut values, &mut sizes)?;
    // Rows of `Z` are not negative and sum to 1: an error in a row counts at most once.
    let entries = error(proof.cuts.len() + 8) * rows(&sizes);
    let sum: f64 = y.iter().sum();
    let size: f64 = y.iter().map(|own| own.abs()).sum();
    let parts = [
        proof.level * coalitions,
        -(lift * n as f64),
        -(below * coalitions),
        -entries,
    ];
    let size = size + parts.iter().map(|part| part.abs()).sum::<f64>();
    let bound = sum + parts.iter().sum::<f64>() - error(n + 8) * size;
    bound.is_finite().then_some(bound)
}

/// The costs plus the priced inequalities minus the prices of pairs, and for every matrix entry the sum
/// of the absolute values that it was computed from.
pub(super) struct Reduced {
    pub(super) values: Matrix,
    sizes: Matrix,
}

pub(super) fn reduced(program: &CoalitionProgram, proof: &Proof) -> Reduced {
    let mut values = program.costs.clone();
    let mut sizes = program.costs.clone();
    let mut add = |i: usize, j: usize, value: f64| {
        values[(i, j)] += value;
        sizes[(i, j)] += value.abs();
    };
    for (i, j, price) in proof.priced(program.n) {
        add(i, j, -price);
        add(j, i, -price);
    }
    for cut in &proof.cuts {
        let price = f64::from(cut.price);
        for (a, b, factor) in cut.pairs() {
            add(a, b, factor * price / 2.0);
            add(b, a, factor * price / 2.0);
        }
        add(cut.i.into(), cut.i.into(), -price);
    }
    Reduced { values, sizes }
}

/// The sum of the largest entry of every row.
fn rows(matrix: &Matrix) -> f64 {
    let largest = |row| matrix.row(row).iter().fold(0.0, |a: f64, b| a.max(*b));
    (0..matrix.rows()).map(largest).sum()
}

/// A `δ ≥ 0` such that no eigenvalue of the symmetric `matrix` is below `−δ`; `None` if there is no
/// small one. Overwrites the lower triangle, and adds what it adds to the diagonal to `sizes`.
///
/// If the Cholesky factorisation of a matrix `A` in floating-point arithmetic does not fail, then
/// no eigenvalue of `A` is below `−γ tr A` with `γ = error(n + 1)` (Rump 2006, Verification of positive
/// definiteness); and it does not fail if none is below `γ tr A`. So a shift above that is added before.
fn least_eigenvalue(matrix: &mut Matrix, sizes: &mut Matrix) -> Option<f64> {
    let n = matrix.rows();
    let relative = 2.0 * error(n + 1);
    // Not of the trace alone: along the vector of ones only rounding errors are left, and they are as
    // large as what was subtracted. The last term is above all that underflow can do.
    let shift = 4.0 * relative * rows(sizes) + (n * n) as f64 * f64::MIN_POSITIVE;
    for i in 0..n {
        matrix[(i, i)] += shift;
        sizes[(i, i)] += shift;
    }
    let trace: f64 = (0..n).map(|i| matrix[(i, i)].abs()).sum();
    factorise(matrix)?;
    Some((shift + relative * trace) * (1.0 + error(n)))
}

/// Cholesky factorisation of the lower triangle, in place. `None` if a pivot is not above 0.
fn factorise(matrix: &mut Matrix) -> Option<()> {
    let n = matrix.rows();
    for i in 0..n {
        for j in 0..=i {
            let products = matrix.row(i)[..j].iter().zip(&matrix.row(j)[..j]);
            let rest = products.fold(matrix[(i, j)], |rest, (a, b)| rest - a * b);
            matrix[(i, j)] = if i == j {
                // Neither a negative number nor NaN.
                (rest > 0.0 && rest.is_finite()).then(|| rest.sqrt())?
            } else {
                rest / matrix[(j, j)]
            };
        }
    }
    Some(())
}
