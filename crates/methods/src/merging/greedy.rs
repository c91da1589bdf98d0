//! HCCT's Algorithm 2: everybody alone, then again and again the merge that gains most.
//!
//! # How a merge is tested in constant time
//!
//! With `C_kl` the cosine between two gradients and `w_k = n_k·‖g_k‖`, a group's share of
//! alignment is
//!
//! `Σ_{k∈c} cos(g_k, g_c) = P_cc / (2·√Q_cc)`,
//!
//! where `P_cd = Σ_{k∈c, l∈d} C_kl·(w_k + w_l)` and `Q_cd = Σ_{k∈c, l∈d} C_kl·w_k·w_l`: the `N_c`
//! cancel. Both are sums over blocks of symmetric matrices. So what a union is worth follows from
//! three entries of each, and a merge adds a row and a column to another. With the benefits of all
//! pairs at hand and the best partner of every group remembered, dividing `M` clients takes
//! `O(M²)` time and memory, plus `O(M)` for every group that lost its best partner to a merge
//! without gaining a better one: `O(M³)` comparisons, not evaluations, at worst.
//!
//! # Ties
//!
//! Benefits are compared as computed, without a tolerance. Of equal ones the first counts, in the
//! order `i = 1, 2, …; j < i` of the groups, which are ordered by their first member (as in the
//! authors' code). A benefit is computed by one sequence of operations in which the two groups are
//! interchangeable, so pairs whose inner products and samples are equal bit for bit have equal
//! benefits. Benefits that are equal only in theory may be told apart by rounding; so may a
//! benefit of exactly 0, as between parallel gradients at `α = 0`, from 0.
//!
//! It all runs on one thread in one order: the same input gives the same bits.

use super::utility::{Volume, direction};
use super::{Grouping, Utility};
use crate::Matrix;

/// When to stop merging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    /// When no merge gains, or one group is left (eq. (17)).
    #[default]
    NoGain,
    /// When so many groups are left, no sooner and no later: the last merges may lose. At least 1,
    /// at most the number of clients.
    Groups(usize),
}

/// A number of groups that cannot be.
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
    /// The two groups, each by its first member, ascending; the union keeps the first.
    pub groups: [usize; 2],
    /// What was gained by it: Δ of eq. (15).
    pub benefit: f64,
}

/// A division and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The division. Its utilities are computed from the inner products anew, so that no rounding
    /// of the merges is in them.
    pub grouping: Grouping,
    /// The merges, in order: clients − groups of them.
    pub merges: Vec<Merge>,
}

impl Utility {
    /// Merges from everybody alone (Algorithm 2).
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
        let mut groups = Groups::alone(self);
        let mut assignment: Vec<u32> = (0..clients as u32).collect();
        let mut merges = Vec::new();
        while groups.alive.len() > fewest {
            let merge = groups.best().expect("two groups at least are left");
            if until == Until::NoGain && merge.benefit <= 0.0 {
                break;
            }
            let [into, from] = merge.groups;
            for group in assignment.iter_mut().filter(|group| **group == from as u32) {
                *group = into as u32;
            }
            groups.merge(into, from);
            merges.push(merge);
        }
        Ok(Merged {
            grouping: self.grouping(&assignment),
            merges,
        })
    }
}

/// The groups of the moment, each under the number of its first member.
struct Groups {
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
    /// Row `i`, column `j < i`: what the two gain by merging.
    benefits: Matrix,
    /// For every group but the first: the `j < i` it would best merge with, the first of equals.
    partners: Vec<usize>,
}

impl Groups {
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

    /// Whom before it a group would best merge with; the first of equals.
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

    /// The best merge of all, the first of equals; none if one group is left.
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

    /// Lets group `from` become part of group `into`, which is before it.
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

    /// Brings the row of group `i` up to date after `from` became part of `into < i`.
    fn revise(&mut self, i: usize, into: usize, from: usize) {
        let partner = self.partners[i];
        let before = self.benefits[(i, partner)];
        let now = self.benefit(i, into);
        self.benefits[(i, into)] = now;
        if now > before || (now == before && into <= partner) {
            // `partner` was the first to offer the most, so `into` is now.
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
    // The corner has both entries of its own column by now; this adds those of the other's.
    let corner = matrix[(into, from)];
    matrix[(into, into)] += corner;
}
