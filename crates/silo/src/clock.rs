//! The silo's clock.

use std::time::Duration;

use protocol::Time;
use tokio::time::Instant;

/// Measures time since a start that all silos of a process may share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(pub(crate) Instant);

impl Clock {
    /// The current time.
    pub(crate) fn now(self) -> Time {
        Time::since_start(self.0.elapsed())
    }

    /// Time since `moment`.
    pub(crate) fn since(self, moment: Time) -> Duration {
        self.now() - moment
    }
}
