//! A bounded number of computations at a time on a device.
//!
//! Silos of one process train in parallel. Each takes memory of the device, and on a processor each
//! takes a core, so those that find no slot free wait for one. A thread that has a slot already needs
//! no second one: what it computes besides is part of the same training.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::DeviceName;

/// Taken slots of every device, for the whole process: what one simulation leaves free another may
/// take.
static TAKEN: Mutex<BTreeMap<DeviceName, usize>> = Mutex::new(BTreeMap::new());
static FREED: Condvar = Condvar::new();

thread_local! {
    /// Number of times that this thread has asked for each device and not given it back yet.
    static HELD: RefCell<BTreeMap<DeviceName, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// A slot of a device, until it is dropped, on the thread that took it.
pub(crate) struct DeviceSlot {
    device: DeviceName,
    here: PhantomData<*const ()>,
}

impl DeviceSlot {
    /// Waits until fewer than `most` threads of this process compute on the device.
    pub(super) fn take(device: DeviceName, most: NonZero<usize>) -> Self {
        let depth = HELD.with_borrow_mut(|held| {
            let depth = held.entry(device).or_default();
            *depth += 1;
            *depth
        });
        if depth == 1 {
            let full = |all: &mut BTreeMap<_, usize>| *all.entry(device).or_default() >= most.get();
            let free = FREED.wait_while(taken(), full);
            *free
                .unwrap_or_else(PoisonError::into_inner)
                .entry(device)
                .or_default() += 1;
        }
        Self {
            device,
            here: PhantomData,
        }
    }
}

impl Drop for DeviceSlot {
    fn drop(&mut self) {
        let device = self.device;
        let depth = HELD.with_borrow_mut(|held| {
            let depth = held.entry(device).or_default();
            *depth -= 1;
            *depth
        });
        if depth == 0 {
            *taken().entry(device).or_default() -= 1;
            FREED.notify_all();
        }
    }
}

fn taken() -> MutexGuard<'static, BTreeMap<DeviceName, usize>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    /// A device that no other test computes on.
    const OWN: DeviceName = DeviceName::TchCuda(60_000);

    #[test]
    fn no_more_threads_compute_at_a_time_than_there_are_slots() {
        let most = NonZero::new(2).unwrap();
        let (now, highest) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let slot = DeviceSlot::take(OWN, most);
                        // A thread with a slot does not wait for itself.
                        let again = [DeviceSlot::take(OWN, most), DeviceSlot::take(OWN, most)];
                        highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                        drop((slot, again));
                    }
                });
            }
        });
        assert_eq!(highest.into_inner(), 2);
        assert_eq!(taken()[&OWN], 0, "every slot is free again");
    }
}
