//! The clock of this machine, and times in files and lines: in UTC, as RFC 3339 writes them.

use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The seconds since 1970 at which a clock is plausible: 2025 to 2100.
const PLAUSIBLE: Range<u64> = 1_735_689_600..4_102_444_800;
/// The last second that has a text, of the year 9999: RFC 3339 has four digits for a year.
const LAST: u64 = 253_402_300_799;

/// `2026-03-01T10:00:00Z`.
#[expect(clippy::disallowed_methods, reason = "every time has a text here")]
pub(crate) fn to_second(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(with_text(at)).to_string()
}

/// `2026-03-01T10:00:00.250Z`.
#[expect(clippy::disallowed_methods, reason = "every time has a text here")]
pub(crate) fn to_millisecond(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(with_text(at)).to_string()
}

/// A time, or the nearest one that has a text: a clock that shows another one is wrong, and stops no node.
fn with_text(at: SystemTime) -> SystemTime {
    let first = SystemTime::UNIX_EPOCH;
    at.clamp(first, first + Duration::from_secs(LAST))
}

/// Returns what is wrong with a clock that shows this time, in a sentence without a full stop; `None` where nothing is.
pub(crate) fn fault(now: SystemTime) -> Option<String> {
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    let plausible = since.is_ok_and(|since| PLAUSIBLE.contains(&since.as_secs()));
    (!plausible).then(|| {
        let shown = to_second(now);
        format!(
            "this machine's clock is not plausible: it shows {shown}, or a time that has no text"
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A time so many seconds after 1970.
    fn at(seconds: i64) -> SystemTime {
        let size = Duration::from_secs(seconds.unsigned_abs());
        let first = SystemTime::UNIX_EPOCH;
        let at = match seconds < 0 {
            true => first.checked_sub(size),
            false => first.checked_add(size),
        };
        at.unwrap()
    }

    #[test]
    fn every_time_that_a_clock_can_show_has_a_text() {
        let last = LAST as i64;
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (1_772_359_200, "2026-03-01T10:00:00"),
            (last, "9999-12-31T23:59:59"),
            // Before 1970, and after the year 9999.
            (-1, "1970-01-01T00:00:00"),
            (-3_000_000_000, "1970-01-01T00:00:00"),
            (i64::MIN / 4, "1970-01-01T00:00:00"),
            (last + 1, "9999-12-31T23:59:59"),
            (i64::MAX / 4, "9999-12-31T23:59:59"),
        ] {
            assert_eq!(to_second(at(seconds)), format!("{text}Z"));
            assert_eq!(to_millisecond(at(seconds)), format!("{text}.000Z"));
            let plausible = seconds == 1_772_359_200;
            assert_eq!(fault(at(seconds)).is_none(), plausible, "{seconds}");
        }
    }
}
