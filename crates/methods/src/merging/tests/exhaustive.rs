//! The grouping with the largest total utility, for few clients: what greedy merging is compared
//! with.

use super::super::{Grouping, Utility};

/// Largest number of clients; the work grows as `3ⁿ`.
const LARGEST: usize = 15;

impl Utility {
    /// The grouping with the largest total utility (eqs. (10), (11)), by dynamic programming: the
    /// best of a set is, over the group of its first client, that group and the best of the rest.
    /// Among equally good groupings the choice is a fixed one.
    pub(super) fn exhaustive(&self) -> Grouping {
        let clients = self.len();
        assert!(clients <= LARGEST, "{clients} clients are too many");
        let sets = 1usize << clients;
        // What a group is worth, counted from what its members are worth alone, so that a large α
        // does not drown the cosines.
        let mut worth = vec![0.0; sets];
        for (set, worth) in worth.iter_mut().enumerate().skip(1) {
            *worth = self.worth(&listed(set));
        }
        // Of every set: the best it can be divided into, and the group of its first client there.
        let mut best = vec![(0.0, 0); sets];
        for set in 1..sets {
            let first = set & set.wrapping_neg();
            let others = set & !first;
            let mut found = (f64::NEG_INFINITY, set);
            let mut joined = others;
            loop {
                let group = first | joined;
                let value = worth[group] + best[set & !group].0;
                if value > found.0 {
                    found = (value, group);
                }
                if joined == 0 {
                    break;
                }
                joined = (joined - 1) & others;
            }
            best[set] = found;
        }
        let mut assignment = vec![0; clients];
        let mut rest = sets - 1;
        let mut number = 0;
        while rest != 0 {
            let group = best[rest].1;
            for member in listed(group) {
                assignment[member] = number;
            }
            number += 1;
            rest &= !group;
        }
        self.grouping(&assignment)
    }

    /// `U_c`, counted from what the members are worth alone: a large α that all have alike would
    /// drown the cosines.
    fn worth(&self, members: &[usize]) -> f64 {
        let total = self.volume(members).samples;
        let gain = |(&k, cosine): (&usize, f64)| {
            let own = self.samples[k];
            self.alphas[k] * ((total - own) / own / total) + (cosine - self.cosines[(k, k)])
        };
        members.iter().zip(self.alignments(members)).map(gain).sum()
    }
}

/// The clients of a set of bits.
fn listed(set: usize) -> Vec<usize> {
    (0..LARGEST)
        .filter(|client| set >> client & 1 == 1)
        .collect()
}
