//! What is remembered.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use protocol::Hash;

/// Where the result of work is that is done once, for everybody who needs it.
pub(crate) struct Once<T>(Arc<Place<T>>);

struct Place<T> {
    result: OnceLock<Result<T, String>>,
    taken: AtomicBool,
}

impl<T> Clone for Once<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        let (result, taken) = (OnceLock::new(), AtomicBool::new(false));
        Self(Arc::new(Place { result, taken }))
    }
}

impl<T: Clone> Once<T> {
    /// Whether somebody else has taken the work on.
    pub(crate) fn taken(&self) -> bool {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Takes the work on. A job must then [`do_it`](Self::do_it): others wait for it.
    pub(crate) fn take(&self) {
        self.0.taken.store(true, Ordering::Relaxed);
    }

    /// Does the work, unless that has happened. A panic is a result too.
    pub(crate) fn do_it(&self, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let caught = || {
            let result = catch_unwind(AssertUnwindSafe(work));
            result.unwrap_or_else(|_| Err("the work on it panicked".into()))
        };
        self.0.result.get_or_init(caught).clone()
    }

    /// The result of the work that was taken on; waits for it.
    pub(crate) fn wait(&self) -> Result<T, String> {
        self.0.result.wait().clone()
    }

    /// The result, if it is there.
    #[cfg(test)]
    pub(crate) fn result(&self) -> Option<Result<T, String>> {
        self.0.result.get().cloned()
    }
}

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

/// What is known of bytes, by where they lie in memory. Sound because bytes are immutable, and stay
/// where they are as long as this keeps a clone of them.
pub(super) struct Lying<T>(Mutex<BTreeMap<Spot, (u64, Bytes, T)>>);

/// Address and length.
type Spot = (usize, usize);

impl<T> Default for Lying<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Lying<T> {
    pub(super) fn get(&self, bytes: &Bytes) -> Option<T> {
        let known = locked(&self.0);
        known.get(&spot(bytes)).map(|(_, _, known)| known.clone())
    }

    /// The same of several, if something is known of each.
    pub(super) fn all(&self, bytes: &[Bytes]) -> Option<Vec<T>> {
        let known = locked(&self.0);
        let of = |bytes| Some(known.get(&spot(bytes))?.2.clone());
        bytes.iter().map(of).collect()
    }

    /// Whether nothing was known yet.
    pub(super) fn insert(&self, bytes: &Bytes, known: T, round: u64) -> bool {
        locked(&self.0)
            .insert(spot(bytes), (round, bytes.clone(), known))
            .is_none()
    }

    pub(super) fn forget(&self, round: u64) {
        locked(&self.0).retain(|_, (of, _, _)| *of >= round);
    }
}

fn spot(bytes: &Bytes) -> Spot {
    (bytes.as_ptr() as usize, bytes.len())
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
