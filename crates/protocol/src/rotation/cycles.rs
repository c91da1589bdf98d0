//! A new lead in every view: each member leads once per cycle of n views.

use std::sync::{Mutex, PoisonError};

use crate::hash::Hash;
use crate::roster::MemberIndex;

/// The leads of a federation's views under `every-round`.
///
/// View v of n members belongs to cycle c = ⌊v/n⌋. The leads of a cycle are all members in the order
/// of a Fisher–Yates shuffle seeded by BLAKE3("lead" ‖ federation ‖ c). So every member leads once
/// per cycle, and no member can influence when.
#[derive(Debug, Default)]
pub(crate) struct Cycles {
    /// A cache of one even and one odd cycle: a view and the next are in at most two cycles.
    cycles: [Mutex<Option<Cycle>>; 2],
}

/// A cycle's number, and its leads in order.
type Cycle = (u64, Vec<u16>);

impl Cycles {
    /// The lead of `view` (from 1) among `n` members. Callers always pass the same federation and
    /// `n`, because the cache does not tell others apart.
    pub(crate) fn lead(&self, federation: &Hash, n: usize, view: u64) -> MemberIndex {
        let (cycle, at) = (view / n as u64, (view % n as u64) as usize);
        // Nothing panics while it holds this lock.
        let cached = self.cycles[(cycle % 2) as usize].lock();
        let mut cached = cached.unwrap_or_else(PoisonError::into_inner);
        let hit = cached.take().filter(|(of, _)| *of == cycle);
        let (_, order) =
            cached.insert(hit.unwrap_or_else(|| (cycle, permutation(federation, n, cycle))));
        MemberIndex(order[at])
    }
}

impl Clone for Cycles {
    /// With an empty cache.
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// All members in the order of a cycle.
pub(super) fn permutation(federation: &Hash, n: usize, cycle: u64) -> Vec<u16> {
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
        // Multiply-shift: its bias is at most n/2^64.
        let pick = ((u128::from(next()) * (last as u128 + 1)) >> 64) as usize;
        order.swap(last, pick);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_leads_once_per_cycle() {
        let federation = Hash::of(b"a federation");
        let lead = |federation: &Hash, n, view| Cycles::default().lead(federation, n, view);
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
    fn cached_cycles_give_the_same_leads_as_new_ones() {
        let (federation, leads) = (Hash::of(b"a federation"), Cycles::default());
        for view in [1, 9, 12, 31, 2, 1, 30, 8, 9] {
            let anew = Cycles::default().lead(&federation, 4, view);
            assert_eq!(leads.lead(&federation, 4, view), anew, "view {view}");
        }
    }

    #[test]
    fn the_order_of_leads_is_pinned_per_cycle_and_federation() {
        let order = |name: &[u8], cycle| permutation(&Hash::of(name), 10, cycle);
        assert_ne!(order(b"a", 0), order(b"a", 1));
        assert_ne!(order(b"a", 0), order(b"b", 0));
        // Another order would be another protocol.
        assert_eq!(order(b"a", 0), PINNED);
    }

    const PINNED: [u16; 10] = [1, 6, 0, 2, 8, 4, 9, 3, 7, 5];
}
