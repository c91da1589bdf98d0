//! Times in files and lines, as RFC 3339 writes them.

use std::time::{Duration, SystemTime};

/// The first second after the year 9999, in seconds since 1970: RFC 3339 has four digits for a year.
const END: u64 = 253_402_300_800;

/// A time in UTC, `2026-03-01T12:00:00Z`, from the seconds since 1970; `None` after the year 9999. Whoever signs a
/// text chooses its time, so every time that comes from others is written by this.
#[expect(clippy::disallowed_methods, reason = "the time has a text")]
pub(crate) fn utc(seconds: u64) -> Option<String> {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    (seconds < END).then(|| humantime::format_rfc3339_seconds(at).to_string())
}

/// Whole seconds from 1970 to a time; 0 before.
pub(crate) fn seconds(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_of_five_digits_has_no_text_and_stops_nobody() {
        assert_eq!(utc(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(utc(END - 1).as_deref(), Some("9999-12-31T23:59:59Z"));
        for late in [END, END + 86_400, 1 << 40, i64::MAX as u64, u64::MAX] {
            assert_eq!(utc(late), None, "{late}");
        }
    }
}
