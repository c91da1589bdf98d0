//! Work that waits for blobs.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Hash;

/// Work of type `T` that waits until all its blobs are here, or one of them cannot be had.
pub(super) struct Wants<T> {
    waiting: BTreeMap<u64, (BTreeSet<Hash>, T)>,
    /// Blobs under way, and which work waits for each.
    under_way: BTreeMap<Hash, BTreeSet<u64>>,
    next: u64,
}

impl<T> Default for Wants<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            under_way: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T> Wants<T> {
    /// Lets `work` wait for these blobs, at least one; those of them that nobody asked for yet.
    pub(super) fn wait(&mut self, work: T, blobs: &BTreeSet<Hash>) -> Vec<Hash> {
        let number = self.next;
        self.next += 1;
        let mut new = Vec::new();
        for &blob in blobs {
            let waiters = self.under_way.entry(blob).or_default();
            if waiters.is_empty() {
                new.push(blob);
            }
            waiters.insert(number);
        }
        self.waiting.insert(number, (blobs.clone(), work));
        new
    }

    /// A blob is here: the work that can begin now, oldest first.
    pub(super) fn arrived(&mut self, blob: &Hash) -> Vec<T> {
        let mut ready = Vec::new();
        for number in self.under_way.remove(blob).unwrap_or_default() {
            let Some((missing, _)) = self.waiting.get_mut(&number) else {
                continue;
            };
            missing.remove(blob);
            if missing.is_empty() {
                ready.extend(self.waiting.remove(&number).map(|(_, work)| work));
            }
        }
        ready
    }

    /// A blob cannot be had: the work that cannot begin, oldest first.
    pub(super) fn missing(&mut self, blob: &Hash) -> Vec<T> {
        let waiters = self.under_way.remove(blob).unwrap_or_default();
        waiters
            .iter()
            .filter_map(|number| Some(self.waiting.remove(number)?.1))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes<const N: usize>(names: [u8; N]) -> BTreeSet<Hash> {
        names.iter().map(|name| Hash::of(&[*name])).collect()
    }

    #[test]
    fn work_begins_when_its_last_blob_is_here_and_each_is_asked_for_once() {
        let mut wants = Wants::default();
        let asked = wants.wait("first", &hashes([1, 2]));
        assert_eq!(asked.into_iter().collect::<BTreeSet<_>>(), hashes([1, 2]));
        assert_eq!(wants.wait("second", &hashes([2])), []);
        assert_eq!(wants.arrived(&Hash::of(&[2])), ["second"]);
        assert_eq!(wants.arrived(&Hash::of(&[1])), ["first"]);
        // It is gone from here, so the next asks anew.
        assert_eq!(wants.wait("third", &hashes([2])), [Hash::of(&[2])]);
    }

    #[test]
    fn a_missing_blob_fails_all_that_wait_for_it_and_nothing_else() {
        let mut wants = Wants::default();
        wants.wait("both", &hashes([1, 2]));
        wants.wait("one", &hashes([1]));
        wants.wait("other", &hashes([2]));
        assert_eq!(wants.missing(&Hash::of(&[1])), ["both", "one"]);
        assert_eq!(wants.arrived(&Hash::of(&[2])), ["other"]);
        assert_eq!(wants.missing(&Hash::of(&[9])), [""; 0]);
    }
}
