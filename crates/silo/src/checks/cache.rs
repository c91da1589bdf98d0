//! Caches of results, shared by the silos of one process. The order of their entries is never used.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use protocol::Hash;
use protocol::hash::Uniform;

/// A result that is computed once and shared.
pub(crate) struct Shared<T>(Arc<CacheSlot<T>>);

struct CacheSlot<T> {
    result: OnceLock<Result<T, String>>,
    claimed: AtomicBool,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        let (result, claimed) = (OnceLock::new(), AtomicBool::new(false));
        Self(Arc::new(CacheSlot { result, claimed }))
    }
}

impl<T: Clone> Shared<T> {
    /// Returns whether a silo has claimed the computation.
    pub(crate) fn is_claimed(&self) -> bool {
        self.0.claimed.load(Ordering::Relaxed)
    }

    /// Claims the computation. A job must then [`compute`](Self::compute) it: others wait for it.
    pub(crate) fn claim(&self) {
        self.0.claimed.store(true, Ordering::Relaxed);
    }

    /// Returns the result, and computes it first if it is not there yet. A panic becomes an error.
    pub(crate) fn compute(&self, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let caught = || {
            let result = catch_unwind(AssertUnwindSafe(work));
            result.unwrap_or_else(|_| Err("its computation panicked".into()))
        };
        self.0.result.get_or_init(caught).clone()
    }

    /// Waits for the result of a claimed computation.
    pub(crate) fn wait(&self) -> Result<T, String> {
        self.0.result.wait().clone()
    }

    /// The result, if it is there.
    #[cfg(test)]
    pub(crate) fn result(&self) -> Option<Result<T, String>> {
        self.0.result.get().cloned()
    }
}

/// Values by key, each with the round that it belongs to.
pub(super) struct Cache<K, V, S>(Mutex<HashMap<K, (u64, V), S>>);

/// Results by hash, each computed at most once while it is cached.
pub(super) type ResultCache<T> = Cache<Hash, Shared<T>, Uniform>;

/// Values that follow from bytes, by their hash.
pub(super) type HashCache<T> = Cache<Hash, T, Uniform>;

/// Values that are inserted at most. A round of hundreds of silos has fewer; one that never ends, or in
/// which somebody floods the others, has any number.
const MOST: usize = 1 << 16;

impl<K, V, S: Default> Default for Cache<K, V, S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + std::hash::Hash, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// The value with that key, if it is cached.
    pub(super) fn known(&self, key: &K) -> Option<V> {
        locked(&self.0).get(key).map(|(_, value)| value.clone())
    }

    /// Inserts a value, which belongs to `round`. True if none was cached.
    pub(super) fn insert(&self, key: K, value: V, round: u64) -> bool {
        let mut cached = locked(&self.0);
        if cached.len() >= MOST {
            cached.clear();
        }
        cached.insert(key, (round, value)).is_none()
    }

    /// Removes values of rounds before `round`.
    pub(super) fn remove_before(&self, round: u64) {
        locked(&self.0).retain(|_, (of, _)| *of >= round);
    }
}

impl<T> ResultCache<T> {
    /// The result with that key, which belongs to `round`.
    pub(super) fn get(&self, key: Hash, round: u64) -> Shared<T> {
        locked(&self.0)
            .entry(key)
            .or_insert_with(|| (round, Shared::default()))
            .1
            .clone()
    }
}

/// Values that follow from bytes, by the address of the bytes. Sound because bytes are immutable,
/// and stay at their address as long as this holds a clone of them.
pub(super) struct BytesCache<T>(Cache<BytesAddress, (Bytes, T), RandomState>);

/// Address and length.
type BytesAddress = (usize, usize);

impl<T> Default for BytesCache<T> {
    fn default() -> Self {
        Self(Cache::default())
    }
}

impl<T: Clone> BytesCache<T> {
    pub(super) fn get(&self, bytes: &Bytes) -> Option<T> {
        self.0.known(&address(bytes)).map(|(_, value)| value)
    }

    /// The values of several, if all are cached.
    pub(super) fn all(&self, bytes: &[Bytes]) -> Option<Vec<T>> {
        bytes.iter().map(|bytes| self.get(bytes)).collect()
    }

    /// Inserts a value. True if none was cached.
    pub(super) fn insert(&self, bytes: &Bytes, value: T, round: u64) -> bool {
        let value = (bytes.clone(), value);
        self.0.insert(address(&value.0), value, round)
    }

    /// Removes values of rounds before `round`.
    pub(super) fn remove_before(&self, round: u64) {
        self.0.remove_before(round);
    }
}

fn address(bytes: &Bytes) -> BytesAddress {
    (bytes.as_ptr() as usize, bytes.len())
}

/// Valid signatures, each with whether it was also verified strictly. In two generations: when the
/// newer is full, the older is dropped.
#[derive(Default)]
pub(super) struct SignatureCache(Mutex<[HashMap<Hash, bool, Uniform>; 2]>);

/// Signatures in each generation: far more than a simulation has, so that what is dropped when
/// never depends on the threads.
const GENERATION: usize = 1 << 19;

impl SignatureCache {
    /// Returns whether that signature is known to be valid, strictly if `strict`.
    pub(super) fn is_valid(&self, key: &Hash, strict: bool) -> bool {
        let generations = locked(&self.0);
        generations
            .iter()
            .any(|generation| generation.get(key).is_some_and(|&known| known || !strict))
    }

    /// Inserts a valid signature. True if it was not known.
    pub(super) fn insert(&self, key: Hash, strict: bool) -> bool {
        let mut generations = locked(&self.0);
        let known = generations
            .iter()
            .any(|generation| generation.contains_key(&key));
        if generations[0].len() >= GENERATION {
            generations[1] = std::mem::take(&mut generations[0]);
        }
        *generations[0].entry(key).or_insert(strict) |= strict;
        !known
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
