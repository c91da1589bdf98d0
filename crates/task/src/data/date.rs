//! Dates as numbers.

/// Days from the first of January 1970 to a date, with or without a time of day.
pub(crate) fn date(text: &str) -> Option<f64> {
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    let mut numbers = day.splitn(3, '-').map(str::parse::<i64>);
    let mut next = || numbers.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
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
    let days = before + (153 * month + 2) / 5 + day - 719_469;
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
}
