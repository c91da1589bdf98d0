//! The grouping with the largest total utility, for few clients: what greedy merging is compared
//! with.

use super::super::{Grouping, Utility};

/// Largest number of clients; the work grows as `3ⁿ`.
const LARGEST: usize = 15;

impl Utility {
    /// The grouping with the largest total utility (eqs. (10), (11)), by dynamic programming: the
    /// best grouping of a set is the best choice of its first client's group and the best grouping of
    /// the rest.
    /// Ties are broken in a fixed way.
    pub(super) fn exhaustive(&self) -> Grouping {
        let clients = self.len();
        assert!(clients <= LARGEST, "{clients} clients are too many");
        let sets = 1usize << clients;
        // The utility of every group, less what its members have alone.
        let mut worth = vec![0.0; sets];
        for (set, worth) in worth.iter_mut().enumerate().skip(1) {
            *worth = self.worth(&listed(set));
        }
        // For every set, the utility of its best grouping and the group of its first client there.
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

    /// `U_c` minus the utilities of its members alone, so that a large α does not cancel the cosines.
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
