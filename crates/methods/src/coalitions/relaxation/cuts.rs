//! Triangle inequalities: `Z_ij + Z_ik ≤ Z_ii + Z_jk`.
//!
//! Every division obeys them: if `i` is with `j` and with `k`, then `j` is with `k`. There are
//! `n³/2`; those that the current point breaks are added as it moves, each with a multiplier that
//! rises while it is broken and falls while it is slack.

use std::collections::BTreeSet;

use crate::Matrix;

/// Less than this is not worth a cut.
const BROKEN: f64 = 1e-3;

/// A cut with more room than this, and no multiplier, is dropped.
const SLACK: f64 = -5e-3;

/// One inequality and its multiplier.
#[derive(Debug, Clone, Copy)]
struct Cut {
    i: u16,
    j: u16,
    k: u16,
    multiplier: f64,
    /// By how much the last point broke it; below 0 if it obeyed.
    broken: f64,
}

impl Cut {
    /// The entries it concerns, as `(at, twin, factor)`: both halves of a symmetric matrix.
    fn entries(&self) -> [(usize, usize, f64); 3] {
        let (i, j, k) = (self.i.into(), self.j.into(), self.k.into());
        [(i, j, 1.0), (i, k, 1.0), (j, k, -1.0)]
    }
}

/// The cuts in force.
#[derive(Debug, Clone, Default)]
pub(super) struct Cuts {
    cuts: Vec<Cut>,
    known: BTreeSet<(u16, u16, u16)>,
}

impl Cuts {
    pub(super) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Moves the multipliers along what `point` breaks, at `rate` divided by how many cuts share a
    /// matrix entry, without which cuts that overlap push each other to and fro.
    pub(super) fn ascend(&mut self, point: &Matrix, rate: f64, shared: &mut Matrix) {
        shared.values_mut().fill(0.0);
        for cut in &mut self.cuts {
            cut.broken = broken(point, cut.i, cut.j, cut.k);
            if cut.multiplier > 0.0 || cut.broken > 0.0 {
                for (a, b, _) in cut.entries() {
                    shared[(a, b)] += 1.0;
                    shared[(b, a)] += 1.0;
                }
                shared[(cut.i.into(), cut.i.into())] += 1.0;
            }
        }
        for cut in &mut self.cuts {
            let off: f64 = cut.entries().iter().map(|&(a, b, _)| shared[(a, b)]).sum();
            let load = off / 2.0 + shared[(cut.i.into(), cut.i.into())];
            let step = rate * cut.broken / load.max(1.0);
            cut.multiplier = (cut.multiplier + step).max(0.0);
        }
    }

    /// Adds the cuts, times their multipliers, to the costs.
    pub(super) fn add_to(&self, costs: &mut Matrix) {
        for cut in self.cuts.iter().filter(|cut| cut.multiplier > 0.0) {
            for (a, b, factor) in cut.entries() {
                let half = factor * cut.multiplier / 2.0;
                costs[(a, b)] += half;
                costs[(b, a)] += half;
            }
            costs[(cut.i.into(), cut.i.into())] -= cut.multiplier;
        }
    }

    /// Drops what no longer matters and adds what `point` breaks most, at most one new cut for
    /// each matrix entry. Gives back how many are new.
    pub(super) fn renew(&mut self, point: &Matrix) -> usize {
        self.cuts
            .retain(|cut| cut.multiplier > 0.0 || cut.broken > SLACK);
        self.known = self.cuts.iter().map(|cut| (cut.i, cut.j, cut.k)).collect();
        let n = point.rows();
        let mut taken = vec![false; n * n];
        let mut new = 0;
        for (amount, i, j, k) in worst(point) {
            let places = [(i, j), (i, k), (j, k)].map(|(a, b)| {
                let (a, b) = (a.min(b), a.max(b));
                usize::from(a) * n + usize::from(b)
            });
            if places.iter().any(|&place| taken[place]) || !self.known.insert((i, j, k)) {
                continue;
            }
            for place in places {
                taken[place] = true;
            }
            self.cuts.push(Cut {
                i,
                j,
                k,
                multiplier: 0.0,
                broken: amount,
            });
            new += 1;
        }
        new
    }
}

fn broken(point: &Matrix, i: u16, j: u16, k: u16) -> f64 {
    let (i, j, k) = (i.into(), j.into(), k.into());
    point[(i, j)] + point[(i, k)] - point[(j, k)] - point[(i, i)]
}

/// The most broken inequalities, worst first; for every `i` at most a few hundred.
fn worst(point: &Matrix) -> Vec<(f64, u16, u16, u16)> {
    const EACH: usize = 400;
    let n = point.rows();
    let mut all = Vec::new();
    let mut own = Vec::new();
    for i in 0..n {
        own.clear();
        let (row, diagonal) = (point.row(i), point[(i, i)]);
        for j in (0..n).filter(|&j| j != i) {
            // Z_ik ≤ Z_ii + Z_jk nearly always holds without Z_ij's help.
            if row[j] <= BROKEN {
                continue;
            }
            let reach = row[j] - diagonal;
            for (k, (own_k, other_k)) in row.iter().zip(point.row(j)).enumerate().skip(j + 1) {
                let amount = reach + own_k - other_k;
                if amount > BROKEN && k != i {
                    own.push((amount, i as u16, j as u16, k as u16));
                }
            }
        }
        if own.len() > EACH {
            own.select_nth_unstable_by(EACH, order);
            own.truncate(EACH);
        }
        all.extend_from_slice(&own);
    }
    all.sort_unstable_by(order);
    all
}

/// By how much, then by place: one order on every machine.
fn order(a: &(f64, u16, u16, u16), b: &(f64, u16, u16, u16)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0)
        .then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3)))
}
