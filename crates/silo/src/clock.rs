//! The runtime's clock, as the state machine sees it.

use std::time::Duration;

use protocol::Time;
use tokio::time::Instant;

/// Moments since a start that all silos of a process may share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(pub(crate) Instant);

impl Clock {
    /// This moment.
    pub(crate) fn now(self) -> Time {
        Time::since_start(self.0.elapsed())
    }

    /// How long ago that was.
    pub(crate) fn since(self, moment: Time) -> Duration {
        self.now() - moment
    }
}
