//! An in-memory cache of the most recently used blobs, bounded in bytes.

use bytes::Bytes;
use lru::LruCache;
use protocol::Hash;

/// The most recently used blobs. Returning one shares its memory.
pub(super) struct BlobCache {
    /// Most bytes of all blobs together.
    capacity: usize,
    /// Bytes of the blobs in the cache.
    used: usize,
    blobs: LruCache<Hash, Bytes>,
}

impl BlobCache {
    /// An empty cache for `capacity` bytes.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            used: 0,
            blobs: LruCache::unbounded(),
        }
    }

    /// Most bytes of a blob that is inserted.
    pub(super) fn largest(&self) -> usize {
        self.capacity / 4
    }

    pub(super) fn get(&mut self, hash: &Hash) -> Option<Bytes> {
        self.blobs.get(hash).cloned()
    }

    /// Inserts a blob, and removes the least recently used ones while there is too much. A blob that
    /// would fill more than a quarter of the cache is not inserted.
    pub(super) fn insert(&mut self, hash: Hash, blob: Bytes) {
        self.remove(&hash);
        if blob.len() > self.largest() {
            return;
        }
        self.used += blob.len();
        self.blobs.put(hash, blob);
        while self.used > self.capacity
            && let Some((_, oldest)) = self.blobs.pop_lru()
        {
            self.used -= oldest.len();
        }
    }

    pub(super) fn remove(&mut self, hash: &Hash) {
        if let Some(blob) = self.blobs.pop(hash) {
            self.used -= blob.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_blobs_go_first_and_large_ones_uncached() {
        let mut cache = BlobCache::new(40);
        let blob = |i: u8| (Hash::of(&[i]), Bytes::from(vec![i; 10]));
        let has = |cache: &BlobCache, i: u8| cache.blobs.contains(&Hash::of(&[i]));
        for i in 0..4 {
            cache.insert(blob(i).0, blob(i).1);
        }
        assert_eq!(cache.get(&blob(0).0), Some(blob(0).1));
        cache.insert(blob(4).0, blob(4).1);
        assert!(has(&cache, 0) && !has(&cache, 1) && has(&cache, 4));
        cache.insert(Hash::of(b"large"), Bytes::from(vec![0; 11]));
        assert_eq!((cache.used, cache.blobs.len()), (40, 4));
        cache.remove(&blob(0).0);
        assert_eq!((cache.used, cache.blobs.len()), (30, 3));
    }
}
