//! Current activity of a silo, for operators: the work that its member asked for, the progress of a training,
//! and the time that each kind of work took.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use methods::Progress;
use tokio::time::Instant;

pub use protocol::work::WorkKind as Activity;

/// The work under way. Clones share it; a silo keeps it up to date.
#[derive(Debug, Clone, Default)]
pub struct Activities(Arc<Mutex<ActivityState>>);

/// Is told that work of a kind begins, or that it is over and how long it took.
pub type HearWork = dyn Fn(Activity, Option<Duration>) + Send;

/// Requests of one kind of work that are not answered.
#[derive(Debug, Clone, Copy)]
struct PendingRequests {
    requests: u32,
    began: Instant,
    /// Since when their time is not yet part of what was spent.
    counted: Instant,
}

struct ActivityState {
    open: BTreeMap<Activity, PendingRequests>,
    hear: Option<Box<HearWork>>,
    progress: Option<Progress>,
    /// Since when `spent` counts.
    since: Instant,
    spent: Spent,
    /// Since when some work is under way.
    busy: Option<Instant>,
}

impl fmt::Debug for ActivityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("open", &self.open)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl Default for ActivityState {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            hear: None,
            progress: None,
            since: Instant::now(),
            spent: Spent::default(),
            busy: None,
        }
    }
}

/// Use of a span of time, by the silo's clock; of the disk by that of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// The whole span.
    pub whole: Duration,
    /// The time in which some work was under way.
    pub busy: Duration,
    /// The time in which work of each kind was under way. Kinds overlap.
    pub work: BTreeMap<Activity, Duration>,
    /// The time that transactions of the journal took to become durable.
    pub disk: Duration,
}

impl ActivityState {
    /// Work of a kind is over: its time counts.
    fn close(&mut self, activity: Activity, now: Instant) {
        if let Some(open) = self.open.remove(&activity) {
            *self.spent.work.entry(activity).or_default() += now - open.counted;
            if let Some(hear) = &self.hear {
                hear(activity, Some(now - open.began));
            }
        }
        if self.open.is_empty()
            && let Some(since) = self.busy.take()
        {
            self.spent.busy += now - since;
        }
    }
}

impl Activities {
    /// The most important kind of work under way.
    pub fn current(&self) -> Option<Activity> {
        self.inner().open.keys().next().copied()
    }

    /// Progress of the training under way, or else of the last one.
    pub fn progress(&self) -> Option<Progress> {
        self.inner().progress
    }

    /// From now on `hear` is told of the begin and the end of every piece of work. It must not wait.
    pub fn heard_by(&self, hear: impl Fn(Activity, Option<Duration>) + Send + 'static) {
        self.inner().hear = Some(Box::new(hear));
    }

    fn inner(&self) -> MutexGuard<'_, ActivityState> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work was asked for.
    pub(crate) fn begin(&self, activity: Activity) {
        let (mut inner, now) = (self.inner(), Instant::now());
        // A silo asks for an adoption again until it has happened; the repetition is no more work.
        let fresh = PendingRequests {
            requests: 0,
            began: now,
            counted: now,
        };
        let open = inner.open.entry(activity).or_insert(fresh);
        let begins = open.requests == 0;
        open.requests = match activity {
            Activity::Apply => 1,
            _ => open.requests + 1,
        };
        inner.busy.get_or_insert(now);
        if let (true, Some(hear)) = (begins, &inner.hear) {
            hear(activity, None);
        }
        if activity == Activity::Train {
            inner.progress = None;
        }
    }

    /// Work was answered.
    pub(crate) fn end(&self, activity: Activity) {
        let (mut inner, now) = (self.inner(), Instant::now());
        if activity == Activity::Apply {
            // Requests of a round that is over are not answered.
            let open: Vec<Activity> = inner.open.keys().copied().collect();
            open.into_iter().for_each(|open| inner.close(open, now));
        } else if let Some(open) = inner.open.get_mut(&activity) {
            open.requests -= 1;
            if open.requests == 0 {
                inner.close(activity, now);
            }
        }
    }

    /// Transactions of the journal took this long.
    pub(crate) fn disk(&self, took: Duration) {
        self.inner().spent.disk += took;
    }

    /// Returns what the time since the last call, or since the start, was spent on.
    pub fn take_spent(&self) -> Spent {
        let (mut inner, now) = (self.inner(), Instant::now());
        // Work under way counts as far as it has come.
        let ActivityState {
            open, spent, busy, ..
        } = &mut *inner;
        for (activity, open) in open {
            *spent.work.entry(*activity).or_default() += now - open.counted;
            open.counted = now;
        }
        if let Some(since) = busy {
            spent.busy += now - *since;
            *since = now;
        }
        let whole = now - std::mem::replace(&mut inner.since, now);
        Spent {
            whole,
            ..std::mem::take(&mut inner.spent)
        }
    }

    pub(crate) fn report(&self, progress: Progress) {
        self.inner().progress = Some(progress);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[test]
    fn the_most_important_open_work_is_current_until_it_is_answered() {
        let work = Activities::default();
        assert_eq!(work.current(), None);
        work.begin(Activity::Admit);
        work.begin(Activity::Admit);
        work.begin(Activity::Train);
        assert_eq!(work.current(), Some(Activity::Train));
        work.end(Activity::Train);
        work.end(Activity::Admit);
        assert_eq!(work.current(), Some(Activity::Admit));
        work.end(Activity::Admit);
        assert_eq!(work.current(), None);
        // An answer to work that nobody counts changes nothing.
        work.end(Activity::Check);
        assert_eq!(work.current(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn every_kind_of_work_is_timed_once_and_open_work_so_far() {
        let (work, second) = (Activities::default(), Duration::from_secs(1));
        advance(second).await;
        work.begin(Activity::Train);
        work.begin(Activity::Admit);
        work.begin(Activity::Admit);
        advance(second).await;
        work.end(Activity::Admit);
        work.end(Activity::Admit);
        advance(second).await;
        work.disk(second);
        // Both were under way at the same time.
        let both = [(Activity::Train, 2 * second), (Activity::Admit, second)];
        let expected = Spent {
            whole: 3 * second,
            busy: 2 * second,
            work: both.into(),
            disk: second,
        };
        assert_eq!(work.take_spent(), expected);
        advance(second).await;
        work.end(Activity::Train);
        advance(second).await;
        let expected = Spent {
            whole: 2 * second,
            busy: second,
            work: [(Activity::Train, second)].into(),
            disk: Duration::ZERO,
        };
        assert_eq!(work.take_spent(), expected);
        assert_eq!(work.take_spent(), Spent::default());
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_reported_at_its_begin_and_end_with_the_time_it_took() {
        let (work, second) = (Activities::default(), Duration::from_secs(1));
        let heard = Arc::<Mutex<Vec<_>>>::default();
        let hearing = heard.clone();
        work.heard_by(move |activity, took| {
            let mut heard = hearing.lock().unwrap_or_else(PoisonError::into_inner);
            heard.push((activity, took));
        });
        work.begin(Activity::Train);
        advance(second).await;
        // Asking for what was spent ends no piece.
        let _ = work.take_spent();
        // Several requests of one kind at once are one piece.
        work.begin(Activity::Admit);
        work.begin(Activity::Admit);
        advance(second).await;
        work.end(Activity::Admit);
        work.end(Activity::Train);
        work.end(Activity::Admit);
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = [
            (Activity::Train, None),
            (Activity::Admit, None),
            (Activity::Train, Some(2 * second)),
            (Activity::Admit, Some(second)),
        ];
        assert_eq!(*heard, expected);
    }

    #[test]
    fn an_adoption_ends_all_work_of_its_round() {
        let work = Activities::default();
        work.begin(Activity::Evaluate);
        work.begin(Activity::Apply);
        work.begin(Activity::Apply);
        work.end(Activity::Apply);
        assert_eq!(work.current(), None);
    }
}
