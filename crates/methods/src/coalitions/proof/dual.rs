//! Makes a proof of a point of the dual program.

use super::check::{lower_bound, reduced};
use super::{PricedCut, Proof, most_cuts};
use crate::Matrix;
use crate::coalitions::CoalitionProgram;
use crate::coalitions::relaxation::{Dual, Orthogonal};

/// Attempts to find the greatest level that is confirmed in spite of rounding.
const ATTEMPTS: usize = 8;

/// The proof of a dual point, and the bound that it proves. `None` if eigenvalues cannot be computed,
/// or nothing is confirmed.
///
/// The bound of a dual point is a sum of `K − 1` eigenvalues, and that of a proof `K − 1` times one
/// level. They are made equal by adding the prices `½ Σ_q w_q (q_i − q_j)²`, where `q` are the
/// eigenvectors below the level and `w_q` what they are below it by. These prices follow from the
/// constraint `Z ⪯ I`: as the rows of `Z` sum to 1, `qᵀ(I − Z)q = ½ Σ_ij Z_ij (q_i − q_j)²`.
pub(in crate::coalitions) fn from_dual(
    program: &CoalitionProgram,
    dual: &Dual,
) -> Option<(Proof, f64)> {
    let n = program.n;
    let mut cuts: Vec<PricedCut> = dual
        .cuts
        .iter()
        .map(|&(i, j, k, price)| PricedCut {
            i,
            j,
            k,
            price: price as f32,
        })
        .filter(|cut| cut.price > 0.0)
        .collect();
    cuts.sort_by(|a, b| b.price.total_cmp(&a.price));
    cuts.truncate(most_cuts(n));
    let pairs = || (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let mut proof = Proof {
        prices: pairs().map(|at| dual.prices[at].max(0.0) as f32).collect(),
        cuts,
        level: 0.0,
    };
    let found = Orthogonal::of(reduced(program, &proof).values)?;
    let below = found.values.get(..program.coalitions.saturating_sub(1))?;
    let level = below
        .last()
        .or(found.values.first())
        .copied()
        .unwrap_or(0.0);
    let mut raised = Matrix::zeros(n, n);
    for (vector, value) in found.vectors.iter().zip(below) {
        let weight = (level - value) / 2.0;
        if weight > 0.0 {
            for (i, j) in pairs() {
                raised[(i, j)] += weight * (vector[i] - vector[j]) * (vector[i] - vector[j]);
            }
        }
    }
    for (at, price) in pairs().zip(&mut proof.prices) {
        *price = (dual.prices[at].max(0.0) + raised[at]) as f32;
    }
    confirmed(program, proof)
}

/// The proof with the greatest level that its check confirms.
fn confirmed(program: &CoalitionProgram, mut proof: Proof) -> Option<(Proof, f64)> {
    let values = reduced(program, &proof).values;
    let scale = values.values().iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let found = Orthogonal::of(values)?;
    let least = found.values.first().copied().unwrap_or(0.0);
    let mut margin = 0.0;
    for _ in 0..ATTEMPTS {
        proof.level = least - margin;
        if let Some(bound) = lower_bound(program, &proof) {
            return Some((proof, bound));
        }
        margin = (10.0 * margin).max(f64::EPSILON * program.n as f64 * scale);
    }
    None
}
