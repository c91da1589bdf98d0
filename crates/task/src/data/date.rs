//! Dates as numbers and as texts.

/// Days from the first of January 1970 to a date, with or without a time of day.
pub(crate) fn date(text: &str) -> Option<f64> {
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    let mut numbers = day.splitn(3, '-').map(str::parse::<i64>);
    let mut next = || numbers.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let days = days_of(year, month, day)?;
    let Some(time) = time else {
        return Some(days as f64);
    };
    let mut parts = time
        .trim_end_matches('Z')
        .splitn(3, ':')
        .map(str::parse::<f64>);
    let hour = parts
        .next()?
        .ok()
        .filter(|hour| (0.0..24.0).contains(hour))?;
    let mut sixty = || match parts.next() {
        None => Some(0.0),
        Some(value) => value.ok().filter(|value| (0.0..60.0).contains(value)),
    };
    let (minute, second) = (sixty()?, sixty()?);
    Some(days as f64 + (hour + (minute + second / 60.0) / 60.0) / 24.0)
}

/// Returns whether a year has 366 days.
pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days from the first of January 1970 to a day of the calendar.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let last = match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(0..=9999).contains(&year) || !(1..=last).contains(&day) {
        return None;
    }
    // Years begin in March, so that the day of a leap year is the last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(before + (153 * month + 2) / 5 + day - 719_469)
}

/// A date, from the days since 1970.
pub(crate) fn day_text(days: i64) -> String {
    let (year, month, day) = calendar(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The year, the month and the day of the month, from the days since 1970.
pub(crate) fn calendar(days: i64) -> (i64, i64, i64) {
    // Years begin in March, so that the day of a leap year is the last; four centuries repeat.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    match month {
        0..10 => (year + 400 * era, month + 3, day),
        _ => (year + 400 * era + 1, month - 9, day),
    }
}

/// A date with its time of day, from parts of a second since 1970.
pub(super) fn moment_text(value: i64, second: i64) -> String {
    let day = 86_400 * second;
    let time = time_text(value.rem_euclid(day), second);
    format!("{} {time}", day_text(value.div_euclid(day)))
}

/// A time of day, from parts of a second since midnight.
pub(super) fn time_text(value: i64, second: i64) -> String {
    let (seconds, part) = (value / second, value % second);
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    let text = format!("{hour:02}:{minute:02}:{:02}", seconds % 60);
    if part == 0 {
        return text;
    }
    let digits = second.ilog10() as usize;
    let part = format!("{part:0digits$}");
    format!("{text}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        let known = [
            ("1970-01-01", 0.0),
            ("2000-02-29", 11_016.0),
            ("2024-12-31", 20_088.0),
            ("1969-12-31T18:00", -0.25),
            ("2024-12-31 12:30:36Z", 20_088.521_25),
        ];
        for (text, days) in known {
            let found = date(text).unwrap_or(f64::NAN);
            assert!((found - days).abs() < 1e-9, "{text}: {found}");
        }
        for text in [
            "",
            "2023-02-29",
            "31.12.2024",
            "2024-13-01",
            "2024-01-01 25:00",
            "2024-01",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let known = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (20_088, "2024-12-31"),
            (-719_162, "0001-01-01"),
            (2_932_896, "9999-12-31"),
        ];
        for (days, text) in known {
            assert_eq!(day_text(days), text);
        }
    }
}
