//! Proofs of lower bounds of the coalition program, which a lead sends and members check.
//!
//! A grouping is the matrix `Z` with `Z_ij = 1/|C|` where `i` and `j` share coalition `C`, else 0
//! (see the module `relaxation`); its cost is `⟨c, Z⟩`, its rows sum to 1, its trace is `K`.
//! A [`Proof`] is a point of the dual program: prices `B ≥ 0` of pairs, prices of triangle
//! inequalities, and a level `λ`. With `M` the costs plus the priced inequalities minus `B`,
//! `⟨c, Z⟩ ≥ ⟨M, Z⟩`. With any numbers `y`, `M = S + ½(y_i + y_j) + λ(I − J/n)`, and if `S` has
//! no eigenvalue below `−δ`, then no grouping costs less than `Σ y_i + λ(K − 1) − δK`.
//!
//! To find such a point takes many eigendecompositions (`proof/dual.rs`); to check it takes one Cholesky
//! factorisation (`proof/check.rs`), whose rounding errors are bounded. No step of the check depends on the
//! processor: additions, multiplications, divisions and roots in a fixed order. So all members
//! confirm the same bound to the last bit, whatever machine the lead had.

mod check;
mod dual;

use serde::{Deserialize, Serialize};

pub(super) use check::lower_bound;
pub(super) use dual::from_dual;

/// Relative gap up to which a grouping counts as proven best. Prices are sent with 24 bits, so about
/// a tenth of this remains of a proof without a gap.
pub const CLOSED: f64 = 1e-6;

/// A proof of a lower bound. Any values that [fit](Self::fits) are a valid proof of some bound; the
/// closer they are to the optimum of the dual program, the better it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Price of every pair of entries, at least 0: (1, 0), (2, 0), (2, 1), (3, 0), … In units of the
    /// scores.
    pub prices: Vec<f32>,
    /// Triangle inequalities with a price, at most [`most_cuts`].
    pub cuts: Vec<PricedCut>,
    /// The level `λ`, in units of the scores.
    pub level: f64,
}

/// The inequality `Z_ij + Z_ik ≤ Z_ii + Z_jk`, which every grouping satisfies, with its price.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PricedCut {
    /// The entry that shares coalitions with both others.
    pub i: u16,
    /// The first of the others.
    pub j: u16,
    /// The second of the others.
    pub k: u16,
    /// At least 0, in units of the scores.
    pub price: f32,
}

/// Most inequalities in a proof about `n` entries: `n²/4`. So its encoding has at most
/// `2n(n − 1) + 13n²/4 + 16` bytes.
pub fn most_cuts(n: usize) -> usize {
    n * n / 4
}

impl PricedCut {
    /// The matrix entries it involves besides `(i, i)`, each with its factor.
    fn pairs(&self) -> [(usize, usize, f64); 3] {
        let (i, j, k) = (self.i.into(), self.j.into(), self.k.into());
        [(i, j, 1.0), (i, k, 1.0), (j, k, -1.0)]
    }

    fn fits(&self, n: usize) -> bool {
        let within = [self.i, self.j, self.k]
            .iter()
            .all(|&at| usize::from(at) < n);
        within && self.i != self.j && self.i != self.k && self.j != self.k && is_price(self.price)
    }
}

impl Proof {
    /// Returns whether the proof is about `n` entries: a price for every pair, and prices that are finite and
    /// not negative.
    pub fn fits(&self, n: usize) -> bool {
        self.prices.len() == n * n.saturating_sub(1) / 2
            && self.prices.iter().all(|&price| is_price(price))
            && self.cuts.len() <= most_cuts(n)
            && self.cuts.iter().all(|cut| cut.fits(n))
            && self.level.is_finite()
    }

    /// The proof without prices, of a bound that is rarely above 0.
    pub(super) fn nothing(n: usize) -> Self {
        Self {
            prices: vec![0.0; n * n.saturating_sub(1) / 2],
            ..Self::default()
        }
    }

    /// Every pair `(i, j)` with `j < i`, and its price.
    fn priced(&self, n: usize) -> impl Iterator<Item = (usize, usize, f64)> {
        let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs
            .zip(&self.prices)
            .map(|((i, j), &price)| (i, j, f64::from(price)))
    }
}

fn is_price(price: f32) -> bool {
    price.is_finite() && price >= 0.0
}

#[cfg(test)]
mod tests;
