//! What a silo works on at the moment, for operators: the work that its member asked for, and the
//! progress of a training.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use methods::Progress;
use protocol::{Effect, Input};

/// A kind of work in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Training.
    Train,
    /// Measuring the losses of contributed models on the silo's own rows.
    Evaluate,
    /// As lead: choosing the decision.
    Decide,
    /// Checking the lead's decision.
    Check,
    /// Computing the outcome of a decision.
    Settle,
    /// Adopting a final outcome, and fetching it where it is not here.
    Apply,
    /// As lead: fetching and checking contributed models.
    Admit,
    /// Fetching the models of a sheet.
    Hold,
    /// Fetching an outcome that others check.
    Keep,
    /// Computing the plan of a round.
    Plan,
}

impl Activity {
    /// The work that an effect asks for.
    pub(crate) fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Plan { .. } => Some(Self::Plan),
            Effect::Train { .. } => Some(Self::Train),
            Effect::Admit { .. } => Some(Self::Admit),
            Effect::Evaluate { .. } => Some(Self::Evaluate),
            Effect::Hold { .. } => Some(Self::Hold),
            Effect::Decide { .. } => Some(Self::Decide),
            Effect::Check { .. } => Some(Self::Check),
            Effect::Settle { .. } => Some(Self::Settle),
            Effect::Apply { .. } => Some(Self::Apply),
            Effect::Keep { .. } => Some(Self::Keep),
            Effect::Send { .. }
            | Effect::Publish { .. }
            | Effect::Await { .. }
            | Effect::Persist(_)
            | Effect::EpochOver(_)
            | Effect::Report(_) => None,
        }
    }

    /// The work that an input answers.
    pub(crate) fn answered_by(input: &Input) -> Option<Self> {
        match input {
            Input::Planned(_) => Some(Self::Plan),
            Input::Trained { .. } => Some(Self::Train),
            Input::Admitted { .. } => Some(Self::Admit),
            Input::Evaluated { .. } => Some(Self::Evaluate),
            Input::Held { .. } => Some(Self::Hold),
            Input::Decided { .. } => Some(Self::Decide),
            Input::Checked { .. } => Some(Self::Check),
            Input::Settled { .. } => Some(Self::Settle),
            Input::Applied { .. } => Some(Self::Apply),
            Input::Kept { .. } => Some(Self::Keep),
            Input::Opened(_)
            | Input::Up { .. }
            | Input::Down { .. }
            | Input::Approve { .. }
            | Input::Withdraw { .. }
            | Input::Arrived { .. }
            | Input::Resume
            | Input::KeyElsewhere
            | Input::Recover { .. }
            | Input::Time => None,
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "training",
            Self::Evaluate => "evaluating models on its own rows",
            Self::Decide => "deciding",
            Self::Check => "checking the decision",
            Self::Settle => "computing the outcome",
            Self::Apply => "adopting the outcome",
            Self::Admit => "checking contributed models",
            Self::Hold => "fetching the round's models",
            Self::Keep => "fetching the outcome",
            Self::Plan => "planning",
        })
    }
}

/// The work under way. Clones share it; a silo keeps it up to date.
#[derive(Debug, Clone, Default)]
pub struct Activities(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Requests of each kind that are not answered.
    open: BTreeMap<Activity, u32>,
    progress: Option<Progress>,
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

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work was asked for.
    pub(crate) fn begin(&self, activity: Activity) {
        let mut inner = self.inner();
        // A silo asks for an adoption again until it has happened; the repetition is no more work.
        let open = inner.open.entry(activity).or_default();
        *open = match activity {
            Activity::Apply => 1,
            _ => *open + 1,
        };
        if activity == Activity::Train {
            inner.progress = None;
        }
    }

    /// Work was answered.
    pub(crate) fn end(&self, activity: Activity) {
        let mut inner = self.inner();
        if activity == Activity::Apply {
            // Requests of a round that is over are not answered.
            inner.open.clear();
        } else if let Some(open) = inner.open.get_mut(&activity) {
            *open -= 1;
            if *open == 0 {
                inner.open.remove(&activity);
            }
        }
    }

    pub(crate) fn report(&self, progress: Progress) {
        self.inner().progress = Some(progress);
    }
}

#[cfg(test)]
mod tests {
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
