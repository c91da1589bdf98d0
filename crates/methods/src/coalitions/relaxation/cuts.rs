//! Triangle inequalities: `Z_ij + Z_ik ≤ Z_ii + Z_jk`.
//!
//! Every grouping satisfies them: if `i` shares a coalition with `j` and with `k`, then `j` and `k`
//! share it too. There are `n³/2`; those violated by the current point are added as it moves, each
//! with a multiplier that rises while it is violated and falls while it is slack.

use std::collections::BTreeSet;

use crate::Matrix;

/// Smallest violation for which a cut is added.
const BROKEN: f64 = 1e-3;

/// A cut with more slack than this and multiplier 0 is dropped.
const SLACK: f64 = -5e-3;

/// One inequality and its multiplier.
#[derive(Debug, Clone, Copy)]
struct Cut {
    i: u16,
    j: u16,
    k: u16,
    multiplier: f64,
    /// Violation at the last point; below 0 if it is satisfied.
    broken: f64,
}

impl Cut {
    /// The matrix entries it involves, as `(index, mirrored index, factor)`.
    fn entries(&self) -> [(usize, usize, f64); 3] {
        let (i, j, k) = (self.i.into(), self.j.into(), self.k.into());
        [(i, j, 1.0), (i, k, 1.0), (j, k, -1.0)]
    }
}

/// The active cuts.
#[derive(Debug, Clone, Default)]
pub(super) struct Cuts {
    cuts: Vec<Cut>,
    known: BTreeSet<(u16, u16, u16)>,
}

impl Cuts {
    pub(super) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// The inequalities with a multiplier, as `(i, j, k, multiplier)`.
    pub(super) fn priced(&self) -> impl Iterator<Item = (u16, u16, u16, f64)> {
        let priced = self.cuts.iter().filter(|cut| cut.multiplier > 0.0);
        priced.map(|cut| (cut.i, cut.j, cut.k, cut.multiplier))
    }

    /// Moves the multipliers by the violations at `point` times `rate`, divided by the number of cuts
    /// that share a matrix entry; without that, overlapping cuts oscillate.
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

    /// Adds the cuts times their multipliers to the costs.
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

    /// Drops inactive cuts and adds the most violated inequalities at `point`, at most one new cut per
    /// matrix entry. Returns the number of new cuts.
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

/// The most violated inequalities, worst first; at most a few hundred for every `i`.
fn worst(point: &Matrix) -> Vec<(f64, u16, u16, u16)> {
    const EACH: usize = 400;
    let n = point.rows();
    let mut all = Vec::new();
    let mut own = Vec::new();
    for i in 0..n {
        own.clear();
        let (row, diagonal) = (point.row(i), point[(i, i)]);
        for j in (0..n).filter(|&j| j != i) {
            // Cheap test first: without Z_ij most inequalities hold already.
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

/// Orders by violation, then by indices: the same order on every machine.
fn order(a: &(f64, u16, u16, u16), b: &(f64, u16, u16, u16)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0)
        .then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3)))
}
