//! What is remembered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use protocol::Hash;

/// A value that is computed once; whoever comes while it is being computed waits for it.
pub(crate) type Once<T> = Arc<OnceLock<T>>;

/// Results by key, each computed at most once while it is remembered.
pub(crate) struct Memo<T>(Mutex<BTreeMap<Hash, (u64, Once<T>)>>);

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Memo<T> {
    /// The place of a result that belongs to `round`.
    pub(super) fn place(&self, key: Hash, round: u64) -> Once<T> {
        locked(&self.0)
            .entry(key)
            .or_insert_with(|| (round, Once::default()))
            .1
            .clone()
    }

    /// Forgets everything of rounds before `round`.
    pub(super) fn forget(&self, round: u64) {
        locked(&self.0).retain(|_, (of, _)| *of >= round);
    }
}

/// Hashes of blobs by where they lie in memory. Sound because a blob is immutable, and stays where
/// it is as long as this keeps a clone of it.
#[derive(Default)]
pub(super) struct Lying(Mutex<BTreeMap<Place, (u64, Bytes, Hash)>>);

/// Address and length.
type Place = (usize, usize);

impl Lying {
    pub(super) fn get(&self, blob: &Bytes) -> Option<Hash> {
        locked(&self.0).get(&place(blob)).map(|(_, _, hash)| *hash)
    }

    /// Whether it was not there yet.
    pub(super) fn insert(&self, blob: &Bytes, hash: Hash, round: u64) -> bool {
        locked(&self.0)
            .insert(place(blob), (round, blob.clone(), hash))
            .is_none()
    }

    pub(super) fn forget(&self, round: u64) {
        locked(&self.0).retain(|_, (of, _, _)| *of >= round);
    }
}

fn place(blob: &Bytes) -> Place {
    (blob.as_ptr() as usize, blob.len())
}

/// Signatures that hold, and whether also strictly. The oldest half goes when there are too many.
#[derive(Default)]
pub(super) struct Held(Mutex<[BTreeMap<Hash, bool>; 2]>);

/// Signatures in each half: far more than a simulation has, so that what is forgotten when never
/// depends on the threads.
const HALF: usize = 1 << 19;

impl Held {
    /// Whether that signature is known to hold, strictly if `strict`.
    pub(super) fn holds(&self, key: &Hash, strict: bool) -> bool {
        let halves = locked(&self.0);
        halves
            .iter()
            .any(|half| half.get(key).is_some_and(|&held| held || !strict))
    }

    /// Whether it was not known at all.
    pub(super) fn insert(&self, key: Hash, strict: bool) -> bool {
        let mut halves = locked(&self.0);
        let known = halves.iter().any(|half| half.contains_key(&key));
        if halves[0].len() >= HALF {
            halves[1] = std::mem::take(&mut halves[0]);
        }
        *halves[0].entry(key).or_insert(strict) |= strict;
        !known
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
