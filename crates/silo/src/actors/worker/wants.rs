//! Work that waits for blobs.

use std::collections::BTreeMap;

use protocol::Hash;
use protocol::net::BlobRequest;

/// Work of type `T` that waits until all its blobs are here, or one of them is unavailable.
pub(super) struct Wants<T> {
    /// Each with the number of blobs that it still waits for.
    waiting: BTreeMap<u64, (usize, T)>,
    under_way: BTreeMap<Hash, Waiters>,
    next: u64,
}

/// The work that waits for a blob, oldest first; rarely more than one.
struct Waiters {
    first: u64,
    more: Vec<u64>,
}

impl Waiters {
    fn all(self) -> impl Iterator<Item = u64> {
        std::iter::once(self.first).chain(self.more)
    }
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
    /// Lets `work` wait for these blobs, at least one. Returns those that were not requested before.
    pub(super) fn wait(&mut self, work: T, blobs: &BTreeMap<Hash, u64>) -> Vec<BlobRequest> {
        let first = self.next;
        self.next += 1;
        let mut asked = Vec::with_capacity(blobs.len());
        for (&hash, &limit) in blobs {
            match self.under_way.get_mut(&hash) {
                Some(waiters) => waiters.more.push(first),
                None => asked.push(BlobRequest { hash, limit }),
            }
        }
        let waiters = |wish: &BlobRequest| {
            (
                wish.hash,
                Waiters {
                    first,
                    more: Vec::new(),
                },
            )
        };
        self.under_way
            .append(&mut asked.iter().map(waiters).collect());
        self.waiting.insert(first, (blobs.len(), work));
        asked
    }

    /// Returns whether a blob was requested.
    pub(super) fn asked(&self, blob: &Hash) -> bool {
        self.under_way.contains_key(blob)
    }

    /// A blob is here: the work that can begin now, oldest first.
    pub(super) fn arrived(&mut self, blob: &Hash) -> Vec<T> {
        let mut ready = Vec::new();
        for number in self
            .under_way
            .remove(blob)
            .into_iter()
            .flat_map(Waiters::all)
        {
            let Some((missing, _)) = self.waiting.get_mut(&number) else {
                continue;
            };
            *missing -= 1;
            if *missing == 0 {
                ready.extend(self.waiting.remove(&number).map(|(_, work)| work));
            }
        }
        ready
    }

    /// A blob is unavailable: the work that cannot begin, oldest first.
    pub(super) fn missing(&mut self, blob: &Hash) -> Vec<T> {
        let waiters = self.under_way.remove(blob).into_iter();
        waiters
            .flat_map(Waiters::all)
            .filter_map(|number| Some(self.waiting.remove(&number)?.1))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes<const N: usize>(names: [u8; N]) -> BTreeMap<Hash, u64> {
        names.iter().map(|name| (Hash::of(&[*name]), 9)).collect()
    }

    #[test]
    fn work_begins_with_its_last_blob_and_each_is_requested_once() {
        let mut wants = Wants::default();
        let asked = wants.wait("first", &hashes([1, 2])).into_iter();
        let asked: BTreeMap<_, _> = asked.map(|wish| (wish.hash, wish.limit)).collect();
        assert_eq!(asked, hashes([1, 2]));
        assert!(wants.asked(&Hash::of(&[2])) && !wants.asked(&Hash::of(&[3])));
        assert_eq!(wants.wait("second", &hashes([2])), []);
        assert_eq!(wants.arrived(&Hash::of(&[2])), ["second"]);
        assert_eq!(wants.arrived(&Hash::of(&[1])), ["first"]);
        // The blob is not waited for any more, so the next work requests it again.
        assert_eq!(
            wants.wait("third", &hashes([2])),
            [BlobRequest {
                hash: Hash::of(&[2]),
                limit: 9
            }]
        );
    }

    #[test]
    fn a_missing_blob_fails_only_the_work_that_waits_for_it() {
        let mut wants = Wants::default();
        wants.wait("both", &hashes([1, 2]));
        wants.wait("one", &hashes([1]));
        wants.wait("other", &hashes([2]));
        assert_eq!(wants.missing(&Hash::of(&[1])), ["both", "one"]);
        assert_eq!(wants.arrived(&Hash::of(&[2])), ["other"]);
        assert_eq!(wants.missing(&Hash::of(&[9])), [""; 0]);
    }
}
