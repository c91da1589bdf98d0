//! Values that several runs share: each is made once and kept for a while.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value that is made by the first who asks for it, while others wait.
pub(super) struct Once<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Once<T> {
    /// The value: kept, or made now. Nothing is kept of an error.
    ///
    /// # Errors
    /// That of `make`.
    pub(super) fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        fill(lock(&self.0), make)
    }

    /// The value as from [`get`](Self::get), but `None` where somebody is making it at this moment.
    pub(super) fn try_get<E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Option<Result<Arc<T>, E>> {
        Some(fill(self.0.try_lock().ok()?, make))
    }
}

fn fill<T, E>(
    mut slot: MutexGuard<'_, Option<Arc<T>>>,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<Arc<T>, E> {
    if let Some(value) = &*slot {
        return Ok(value.clone());
    }
    let value = Arc::new(make()?);
    *slot = Some(value.clone());
    Ok(value)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The values that were first asked for last, by key.
pub(super) struct RecentValues<T> {
    most: usize,
    all: Mutex<VecDeque<(String, Arc<Once<T>>)>>,
}

impl<T> RecentValues<T> {
    /// Keeps at most this number of values.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            all: Mutex::default(),
        }
    }

    /// The value of a key: kept, or made now.
    ///
    /// # Errors
    /// That of `make`.
    pub(super) fn get<E>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let slot = {
            let mut all = lock(&self.all);
            match all.iter().position(|(of, _)| of == key) {
                Some(at) => all[at].1.clone(),
                None => {
                    let slot = Arc::new(Once::default());
                    all.push_back((key.to_owned(), slot.clone()));
                    while all.len() > self.most {
                        all.pop_front();
                    }
                    slot
                }
            }
        };
        slot.get(make)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_are_made_once_until_newer_ones_take_their_place() {
        let kept = RecentValues::new(2);
        let mut made = 0;
        let mut get = |key: &str| {
            let make = || {
                made += 1;
                Ok::<_, ()>(made)
            };
            *kept.get(key, make).unwrap()
        };
        assert_eq!([get("a"), get("a"), get("b"), get("a")], [1, 1, 2, 1]);
        assert_eq!([get("c"), get("b"), get("a")], [3, 2, 4]);
        assert_eq!(RecentValues::<u8>::new(1).get("x", || Err("no")), Err("no"));
    }
}
