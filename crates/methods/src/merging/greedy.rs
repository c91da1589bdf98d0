//! HCCT's Algorithm 2: starts with every client alone and repeats the merge with the largest benefit.
//!
//! # How a merge is tested in constant time
//!
//! With `C_kl` the cosine between two gradients and `w_k = n_k·‖g_k‖`, a group's share of
//! alignment is
//!
//! `Σ_{k∈c} cos(g_k, g_c) = P_cc / (2·√Q_cc)`,
//!
//! where `P_cd = Σ_{k∈c, l∈d} C_kl·(w_k + w_l)` and `Q_cd = Σ_{k∈c, l∈d} C_kl·w_k·w_l`: the `N_c`
//! cancel. Both are sums over blocks of symmetric matrices. So the utility of a union follows from
//! three entries of each, and a merge adds one row and column to another. Keeping the benefits of
//! all pairs and the best partner of every group, grouping `M` clients takes `O(M²)` time and
//! memory, plus `O(M)` for every group that loses its best partner to a merge without gaining a
//! better one: at worst `O(M³)` comparisons, but not evaluations.
//!
//! # Ties
//!
//! Benefits are compared as computed, without a tolerance. Ties go to the first pair in the order
//! `i = 1, 2, …; j < i` of the groups, which are ordered by their first member (as in the authors'
//! code). A benefit is computed by one sequence of operations that is symmetric in the two groups,
//! so pairs with bitwise equal inner products and samples have equal benefits. Rounding may separate
//! benefits that are equal only in exact arithmetic, or a benefit of exactly 0 (parallel gradients
//! at `α = 0`) from 0.
//!
//! Everything runs on one thread in a fixed order: the same input gives the same bits.

use super::utility::{Volume, direction};
use super::{Grouping, Utility};
use crate::Matrix;
use crate::coalitions::canonical;

/// Stopping criterion of merging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    /// Stop when no merge has a positive benefit, or one group is left (eq. (17)).
    #[default]
    NoGain,
    /// Stop at exactly this many groups, even if the last merges have negative benefits. From 1 to
    /// the number of clients.
    Groups(usize),
}

/// An impossible number of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{clients} clients cannot be merged into {groups} groups: ask for 1 to {clients}")]
pub struct GroupsError {
    /// Groups asked for.
    pub groups: usize,
    /// Clients at hand.
    pub clients: usize,
}

/// One merge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Merge {
    /// The first members of the two groups, ascending; the union is named by the first.
    pub groups: [usize; 2],
    /// The benefit of the merge: Δ of eq. (15).
    pub benefit: f64,
}

/// The result of merging: the grouping and the merges that led to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The grouping. Its utilities are recomputed from the inner products, free of the rounding
    /// errors of the merges.
    pub grouping: Grouping,
    /// The merges in order; as many as clients minus groups.
    pub merges: Vec<Merge>,
}

/// All merges, from every client alone to one group.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeTree {
    /// The total utility if every client stays alone. Each merge adds its benefit.
    pub alone: f64,
    /// The merges in order, those after the last that raises the total utility included.
    pub merges: Vec<Merge>,
}

impl Merge {
    /// Carries it out: every client has the first member of its group.
    fn carry_out(&self, assignment: &mut [u32]) {
        let [into, from] = self.groups.map(|first| first as u32);
        for group in assignment.iter_mut().filter(|group| **group == from) {
            *group = into;
        }
    }
}

impl MergeTree {
    /// The tree cut at this many groups, from 1 to the number of clients (the nearest, where there are not as
    /// many): the group of every client, numbered in the order of their first members.
    pub fn cut(&self, groups: usize) -> Vec<u32> {
        let clients = self.merges.len() + 1;
        let mut assignment: Vec<u32> = (0..clients as u32).collect();
        for merge in &self.merges[..clients - groups.clamp(1, clients)] {
            merge.carry_out(&mut assignment);
        }
        canonical(&assignment)
    }

    /// The largest total utility of a cut.
    pub fn most(&self) -> f64 {
        let mut total = self.alone;
        let totals = self.merges.iter().map(|merge| {
            total += merge.benefit;
            total
        });
        totals.fold(self.alone, f64::max)
    }
}

impl Utility {
    /// The merges down to one group, so that what the next ones would have cost can be seen.
    pub fn tree(&self) -> MergeTree {
        let alone: Vec<u32> = (0..self.len() as u32).collect();
        let merged = self.merge(Until::Groups(1));
        MergeTree {
            alone: self.grouping(&alone).total,
            merges: merged.map_or_else(|_| Vec::new(), |merged| merged.merges),
        }
    }

    /// Merges groups, starting with every client alone (Algorithm 2).
    ///
    /// # Errors
    /// [`GroupsError`] if `until` asks for no group, or for more than there are clients.
    pub fn merge(&self, until: Until) -> Result<Merged, GroupsError> {
        let clients = self.len();
        let fewest = match until {
            Until::NoGain => 1,
            Until::Groups(groups) if (1..=clients).contains(&groups) => groups,
            Until::Groups(groups) => return Err(GroupsError { groups, clients }),
        };
        let mut groups = MergingGroups::alone(self);
        let mut assignment: Vec<u32> = (0..clients as u32).collect();
        let mut merges = Vec::new();
        while groups.alive.len() > fewest {
            let merge = groups.best().expect("at least two groups are left");
            if until == Until::NoGain && merge.benefit <= 0.0 {
                break;
            }
            merge.carry_out(&mut assignment);
            let [into, from] = merge.groups;
            groups.merge(into, from);
            merges.push(merge);
        }
        Ok(Merged {
            grouping: self.grouping(&assignment),
            merges,
        })
    }
}

/// The current groups, each named by its first member.
struct MergingGroups {
    /// Ascending.
    alive: Vec<usize>,
    volumes: Vec<Volume>,
    /// `Σ n_k‖g_k‖`.
    pulls: Vec<f64>,
    /// `P` of the module's formula.
    sums: Matrix,
    /// `Q` of the module's formula.
    squares: Matrix,
    /// `Σ cos(g_k, g_c)` of every group.
    alignments: Vec<f64>,
    /// Row `i`, column `j < i`: the benefit of merging the two.
    benefits: Matrix,
    /// For every group `i` but the first: the `j < i` with the largest benefit; ties go to the first.
    partners: Vec<usize>,
}

impl MergingGroups {
    fn alone(utility: &Utility) -> Self {
        let n = utility.len();
        let (pulls, cosines) = (&utility.pulls, &utility.cosines);
        let mut groups = Self {
            alive: (0..n).collect(),
            volumes: (0..n).map(|k| utility.volume(&[k])).collect(),
            pulls: pulls.clone(),
            sums: Matrix::from_fn(n, n, |k, l| cosines[(k, l)] * (pulls[k] + pulls[l])),
            squares: Matrix::from_fn(n, n, |k, l| cosines[(k, l)] * (pulls[k] * pulls[l])),
            alignments: vec![0.0; n],
            benefits: Matrix::zeros(n, n),
            partners: vec![0; n],
        };
        for i in 0..n {
            groups.alignments[i] = groups.alignment(i);
            for j in 0..i {
                groups.benefits[(i, j)] = groups.benefit(i, j);
            }
            groups.partners[i] = groups.partner(i);
        }
        groups
    }

    /// `Σ cos(g_k, g_c)` of one group, from the sums.
    fn alignment(&self, c: usize) -> f64 {
        aligned(self.sums[(c, c)], self.squares[(c, c)], self.pulls[c])
    }

    /// Δ of eq. (15).
    fn benefit(&self, c: usize, d: usize) -> f64 {
        let (sums, squares) = (&self.sums, &self.squares);
        let together = aligned(
            sums[(c, c)] + sums[(d, d)] + 2.0 * sums[(c, d)],
            squares[(c, c)] + squares[(d, d)] + 2.0 * squares[(c, d)],
            self.pulls[c] + self.pulls[d],
        );
        self.volumes[c].gain(self.volumes[d]) + together - (self.alignments[c] + self.alignments[d])
    }

    /// The best partner of a group among those before it; ties go to the first.
    fn partner(&self, i: usize) -> usize {
        let row = self.benefits.row(i);
        let before = self.alive.iter().copied().take_while(|&j| j < i);
        let first = (f64::NEG_INFINITY, 0);
        let best = before.fold(
            first,
            |best, j| if row[j] > best.0 { (row[j], j) } else { best },
        );
        best.1
    }

    /// The merge with the largest benefit, in ties the first; `None` if one group is left.
    fn best(&self) -> Option<Merge> {
        let mut best: Option<Merge> = None;
        for &i in self.alive.get(1..)? {
            let j = self.partners[i];
            let benefit = self.benefits[(i, j)];
            if best.is_none_or(|best| benefit > best.benefit) {
                let groups = [j, i];
                best = Some(Merge { groups, benefit });
            }
        }
        best
    }

    /// Merges group `from` into group `into`, which is before it.
    fn merge(&mut self, into: usize, from: usize) {
        for matrix in [&mut self.sums, &mut self.squares] {
            add(matrix, &self.alive, into, from);
        }
        self.pulls[into] += self.pulls[from];
        self.volumes[into].samples += self.volumes[from].samples;
        self.volumes[into].alpha += self.volumes[from].alpha;
        self.alignments[into] = self.alignment(into);
        self.alive.retain(|&group| group != from);
        for at in 0..self.alive.len() {
            let other = self.alive[at];
            if other < into {
                self.benefits[(into, other)] = self.benefit(into, other);
            } else if other > into {
                self.revise(other, into, from);
            }
        }
        self.partners[into] = self.partner(into);
    }

    /// Updates the row of group `i` after the merge of `from` into `into < i`.
    fn revise(&mut self, i: usize, into: usize, from: usize) {
        let partner = self.partners[i];
        let before = self.benefits[(i, partner)];
        let now = self.benefit(i, into);
        self.benefits[(i, into)] = now;
        if now > before || (now == before && into <= partner) {
            // `partner` was the first with the largest benefit, so `into` is now.
            self.partners[i] = into;
        } else if partner == into || partner == from {
            self.partners[i] = self.partner(i);
        }
    }
}

/// `P/(2·√Q)`, or 0 if the gradients cancel.
fn aligned(sum: f64, square: f64, pull: f64) -> f64 {
    direction(square, pull).map_or(0.0, |length| 0.5 * sum / length)
}

/// Adds row and column `from` to row and column `into` of a symmetric matrix.
fn add(matrix: &mut Matrix, alive: &[usize], into: usize, from: usize) {
    for &other in alive {
        let value = matrix[(into, other)] + matrix[(from, other)];
        matrix[(into, other)] = value;
        if other != into {
            matrix[(other, into)] = value;
        }
    }
    // The diagonal entry holds both entries of its own column by now; add those of the other.
    let corner = matrix[(into, from)];
    matrix[(into, into)] += corner;
}
