//! Whose turn it is to lead.

use std::sync::{Mutex, PoisonError};

use crate::hash::Hash;
use crate::roster::MemberIndex;

/// The leads of a federation's views.
///
/// Cycle `c = v div n` has the permutation that a Fisher–Yates shuffle seeded by
/// BLAKE3("lead" ‖ federation ‖ c) gives, so that everybody leads once per cycle and nobody can
/// influence when.
#[derive(Debug, Default)]
pub struct Leads {
    /// The cycles asked for last, even and odd: a view and the next are never in three.
    cycles: [Mutex<Option<Cycle>>; 2],
}

/// A cycle's number, and its leads in order.
type Cycle = (u64, Vec<u16>);

impl Leads {
    /// The lead of `view` (from 1) among `n` members. Always asked with the same federation.
    pub fn lead(&self, federation: &Hash, n: usize, view: u64) -> MemberIndex {
        let (cycle, at) = (view / n as u64, (view % n as u64) as usize);
        // Nothing panics while it holds this lock.
        let place = self.cycles[(cycle % 2) as usize].lock();
        let mut place = place.unwrap_or_else(PoisonError::into_inner);
        let remembered = place.take().filter(|(of, _)| *of == cycle);
        let (_, order) =
            place.insert(remembered.unwrap_or_else(|| (cycle, permutation(federation, n, cycle))));
        MemberIndex(order[at])
    }
}

impl Clone for Leads {
    /// Remembers nothing: what is remembered follows from what is asked.
    fn clone(&self) -> Self {
        Self::default()
    }
}

fn permutation(federation: &Hash, n: usize, cycle: u64) -> Vec<u16> {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(b"lead")
        .update(&federation.0)
        .update(&cycle.to_le_bytes());
    let mut stream = hasher.finalize_xof();
    let mut next = move || {
        let mut bytes = [0; 8];
        stream.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    };
    let mut order: Vec<u16> = (0..n as u16).collect();
    for last in (1..n).rev() {
        // Multiply-shift: the bias of at most n/2^64 is the same for everybody and far below
        // anything that a rotation could be won by.
        let pick = ((u128::from(next()) * (last as u128 + 1)) >> 64) as usize;
        order.swap(last, pick);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_leads_once_per_cycle() {
        let federation = Hash::of(b"a federation");
        let lead = |federation: &Hash, n, view| Leads::default().lead(federation, n, view);
        for n in [1u64, 2, 4, 7, 100] {
            for cycle in 0..3 {
                let mut leads: Vec<_> = (cycle * n..(cycle + 1) * n)
                    .map(|view| lead(&federation, n as usize, view).at() as u64)
                    .collect();
                leads.sort_unstable();
                assert_eq!(leads, (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_is_remembered_changes_nothing() {
        let (federation, leads) = (Hash::of(b"a federation"), Leads::default());
        for view in [1, 9, 12, 31, 2, 1, 30, 8, 9] {
            let anew = Leads::default().lead(&federation, 4, view);
            assert_eq!(leads.lead(&federation, 4, view), anew, "view {view}");
        }
    }

    #[test]
    fn cycles_and_federations_differ() {
        let order = |name: &[u8], cycle| permutation(&Hash::of(name), 10, cycle);
        assert_ne!(order(b"a", 0), order(b"a", 1));
        assert_ne!(order(b"a", 0), order(b"b", 0));
        // Pinned: another order would be another protocol.
        assert_eq!(order(b"a", 0), PINNED);
    }

    const PINNED: [u16; 10] = [1, 6, 0, 2, 8, 4, 9, 3, 7, 5];
}
