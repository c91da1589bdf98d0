//! The comparison of the models that an institution could serve, which is made once, and waited for by those who choose by
//! it and those who tell other members of it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use methods::serving::{ComparedModels, Tuned};

/// Models that an institution could serve, compared on its own rows.
#[derive(Debug)]
pub(crate) struct OwnComparison {
    /// The models with what was measured.
    pub(crate) models: ComparedModels,
    /// Tuning of its local model, where it was tuned.
    pub(crate) tuned: Option<Tuned>,
}

/// A comparison that is there once somebody has made it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ComparisonSlot(Arc<SharedComparison>);

#[derive(Debug, Default)]
struct SharedComparison {
    made: OnceLock<OwnComparison>,
    /// Held by whoever looks whether it is made, so that none falls asleep while it is told.
    looking: Mutex<()>,
    told: Condvar,
}

impl ComparisonSlot {
    /// Makes the comparison, if nobody has made it or makes it, and returns it.
    pub(crate) fn make(&self, compare: impl FnOnce() -> OwnComparison) -> &OwnComparison {
        let made = self.0.made.get_or_init(compare);
        drop(self.look());
        self.0.told.notify_all();
        made
    }

    /// The comparison, if it is made before this time is over.
    pub(crate) fn within(&self, longest: Duration) -> Option<&OwnComparison> {
        let missing = |_: &mut ()| self.0.made.get().is_none();
        let waited = self
            .0
            .told
            .wait_timeout_while(self.look(), longest, missing);
        drop(waited);
        self.0.made.get()
    }

    fn look(&self) -> MutexGuard<'_, ()> {
        // It guards nothing that could be half done.
        self.0
            .looking
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::thread;

    use methods::Params;
    use methods::serving::PersonalParts;

    use super::*;

    /// The comparison of an institution that could compare nothing.
    pub(crate) fn nothing() -> OwnComparison {
        let coalition = (Params::empty(), Params::empty());
        OwnComparison {
            models: ComparedModels::none(coalition, PersonalParts::Trained),
            tuned: None,
        }
    }

    #[test]
    fn a_comparison_is_made_once_and_awaited() {
        let slot = ComparisonSlot::default();
        assert!(slot.within(Duration::ZERO).is_none());
        thread::scope(|scope| {
            let waits = scope.spawn(|| slot.within(Duration::MAX).is_some());
            let made: *const _ = slot.make(nothing);
            assert!(waits.join().expect("the thread ends when it is made"));
            let again: *const _ = slot.make(|| panic!("it was made before"));
            assert_eq!(made, again);
        });
        assert!(slot.clone().within(Duration::ZERO).is_some());
    }
}
