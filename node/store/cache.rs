//! Blobs in memory: the most recently used, up to a number of bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::Hash;

/// The most recently used blobs. Handing one out shares its memory.
pub(super) struct Cache {
    room: usize,
    used: usize,
    /// Counts uses: the order in which blobs go.
    clock: u64,
    blobs: BTreeMap<Hash, (u64, Bytes)>,
    by_use: BTreeMap<u64, Hash>,
}

impl Cache {
    /// An empty one for that many bytes.
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            used: 0,
            clock: 0,
            blobs: BTreeMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    pub(super) fn get(&mut self, hash: &Hash) -> Option<Bytes> {
        let (last, blob) = self.blobs.get_mut(hash)?;
        self.by_use.remove(last);
        self.clock += 1;
        *last = self.clock;
        self.by_use.insert(self.clock, *hash);
        Some(blob.clone())
    }

    /// Takes a blob in, and lets go those not used for longest. One that would fill more than a
    /// quarter of the room is left to the disk.
    pub(super) fn insert(&mut self, hash: Hash, blob: Bytes) {
        self.remove(&hash);
        if blob.len() > self.room / 4 {
            return;
        }
        self.used += blob.len();
        self.clock += 1;
        self.blobs.insert(hash, (self.clock, blob));
        self.by_use.insert(self.clock, hash);
        while self.used > self.room
            && let Some((_, oldest)) = self.by_use.first_key_value()
        {
            let oldest = *oldest;
            self.remove(&oldest);
        }
    }

    pub(super) fn remove(&mut self, hash: &Hash) {
        if let Some((last, blob)) = self.blobs.remove(hash) {
            self.by_use.remove(&last);
            self.used -= blob.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut cache = Cache::new(40);
        let blob = |i: u8| (Hash::of(&[i]), Bytes::from(vec![i; 10]));
        let has = |cache: &Cache, i: u8| cache.blobs.contains_key(&Hash::of(&[i]));
        for i in 0..4 {
            cache.insert(blob(i).0, blob(i).1);
        }
        assert_eq!(cache.get(&blob(0).0), Some(blob(0).1));
        cache.insert(blob(4).0, blob(4).1);
        assert!(has(&cache, 0) && !has(&cache, 1) && has(&cache, 4));
        cache.insert(Hash::of(b"large"), Bytes::from(vec![0; 11]));
        assert_eq!(
            (cache.used, cache.blobs.len(), cache.by_use.len()),
            (40, 4, 4)
        );
        cache.remove(&blob(0).0);
        assert_eq!((cache.used, cache.by_use.len()), (30, 3));
    }
}
