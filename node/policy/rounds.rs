//! Refusals of single rounds by a policy.

use std::time::{SystemTime, UNIX_EPOCH};

use formatting::numbers;
use silo::RoundPolicy;

use super::hours::Hours;

/// The rules for every round.
pub(super) struct RoundRules {
    pub(super) hours: Vec<Hours>,
    /// Most bytes of a contribution.
    pub(super) bytes: Option<u64>,
}

impl RoundRules {
    /// Returns whether a training may begin in this minute of the day.
    ///
    /// # Errors
    /// The reason against it.
    pub(super) fn at(&self, minute: u16, bytes: u64) -> Result<(), String> {
        too_large(self.bytes, bytes)?;
        if self.hours.is_empty() || self.hours.iter().any(|hours| hours.has(minute)) {
            return Ok(());
        }
        let hours: Vec<_> = self.hours.iter().map(Hours::to_string).collect();
        Err(format!(
            "[policy] allows training to begin only at {} UTC (`training-hours-utc`), and it is {:02}:{:02}",
            hours.join(", "),
            minute / 60,
            minute % 60
        ))
    }
}

/// Returns whether a contribution may have so many bytes.
///
/// # Errors
/// The reason against it.
pub(super) fn too_large(most: Option<u64>, bytes: u64) -> Result<(), String> {
    match most {
        Some(most) if bytes > most => Err(format!(
            "[policy] allows at most {} per round (`max-bytes-per-round`), and a model has {}",
            numbers::bytes(most),
            numbers::bytes(bytes)
        )),
        _ => Ok(()),
    }
}

impl RoundPolicy for RoundRules {
    fn allows(&self, _: u64, bytes: u64) -> Result<(), String> {
        // A clock before 1970 is wrong anyway, and `rota check` says so.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let minute = now.as_secs() / 60 % (24 * 60);
        self.at(minute as u16, bytes)
    }
}
