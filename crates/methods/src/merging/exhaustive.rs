//! The best of all divisions, for few clients.

use super::{Partition, Utility};

/// Clients up to which this is a matter of milliseconds. Its work grows as `3ⁿ`.
pub const LARGEST: usize = 15;

/// More clients than can be gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all divisions of {0} clients are too many: merge greedily beyond {LARGEST}")]
pub struct TooManyClients(
    /// Clients at hand.
    pub usize,
);

impl Utility {
    /// The division with the largest total utility (eqs. (10), (11)), by dynamic programming: the
    /// best of a set is, over the group of its first client, that group and the best of the rest.
    /// Among equally good divisions the choice is a fixed one.
    ///
    /// # Errors
    /// [`TooManyClients`] beyond [`EXHAUSTIVE_UP_TO`](super::EXHAUSTIVE_UP_TO).
    pub fn exhaustive(&self) -> Result<Partition, TooManyClients> {
        let clients = self.len();
        if clients > LARGEST {
            return Err(TooManyClients(clients));
        }
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
        Ok(self.partition(&assignment))
    }
}

/// The clients of a set of bits.
fn listed(set: usize) -> Vec<usize> {
    (0..LARGEST)
        .filter(|client| set >> client & 1 == 1)
        .collect()
}
