//! Numbers, durations and names as text for people.

use protocol::name::printable;

/// Bytes in decimal units: `999 B`, `1.2 kB`, `34.5 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    // A value that would be printed as 1000.0 goes to the next unit.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A count with separated thousands: `12,345`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration: `12 ms`, `0.34 s`, `5.6 s`, `2 min 05 s`, `3 h 20 min`.
pub fn seconds(value: f64) -> String {
    if value < 0.0995 {
        format!("{:.0} ms", value * 1000.0)
    } else if value < 0.995 {
        format!("{value:.2} s")
    } else if value < 119.95 {
        format!("{value:.1} s")
    } else if value < 7_199.5 {
        let whole = value.round() as u64;
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        let minutes = (value / 60.0).round() as u64;
        format!("{} h {:02} min", minutes / 60, minutes % 60)
    }
}

/// The number of decimals that shows three to four digits of a value of this size.
pub fn decimals(largest: f64) -> usize {
    match largest.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 0.1 || size == 0.0 => 3,
        size => (2.0 - size.log10().floor()).min(9.0) as usize,
    }
}

/// The number of decimals that suits most of these values: one that is absurdly large or small does
/// not count.
pub fn decimals_of(values: impl Iterator<Item = f64>) -> usize {
    let finite = values.filter(|value| value.is_finite() && *value != 0.0);
    let mut sizes: Vec<f64> = finite.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    decimals(sizes.get(sizes.len() / 2).copied().unwrap_or(0.0))
}

/// A difference with its sign: `+1.87`, `−0.35`; `0.00` without one.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = self::value(value.abs(), decimals);
    match text.trim_matches(['0', '.']).is_empty() {
        true => text,
        false if value < 0.0 => format!("−{text}"),
        false => format!("+{text}"),
    }
}

/// A measured value with this number of decimals, or in scientific notation if it is very large or
/// small.
pub fn value(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "not finite".to_owned();
    }
    if value.abs() >= 1e7 {
        return format!("{value:.2e}");
    }
    format!("{value:.decimals$}")
}

/// The date and time in UTC, from the seconds since the beginning of 1970, for example
/// `2026-11-22 13:49 UTC`. Days become years, months and days as by Hinnant's algorithm.
pub fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // From the first of March of the year 0, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02} UTC",
        minutes / 60,
        minutes % 60
    )
}

/// A count with its noun, and thousands separated: `1 silo`, `2,000 silos`, `0 entries`.
pub fn plural(count: usize, one: &str) -> String {
    let number = self::count(count as u64);
    match one.strip_suffix('y') {
        _ if count == 1 => format!("{number} {one}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ if one.ends_with(['s', 'x']) || one.ends_with("ch") => format!("{number} {one}es"),
        _ => format!("{number} {one}s"),
    }
}

/// The verb of a counted noun: `is` for one, `are` for none or several.
pub fn verb<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// A text from elsewhere on one line: control characters are shown as `�`.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if printable(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

/// A message for a terminal that may hold texts from elsewhere: bounded in length, without control
/// characters, and with all lines but the first indented, so that none looks like the program's own.
pub fn message(text: &str) -> String {
    const LONGEST: usize = 4000;
    let lines: Vec<_> = text.lines().map(plain).collect();
    let text = lines.join("\n  ");
    if text.chars().count() <= LONGEST {
        return text;
    }
    let kept: String = text.chars().take(LONGEST).collect();
    format!("{kept}…")
}

/// The JSON text with control characters written as `\u....`.
pub fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // Outside of strings JSON has printable characters only.
        if c == '\n' || printable(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// A text of at most this number of characters; `…` marks the cut.
pub fn short(text: &str, most: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= most {
        return text;
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// The first names of a list, and how many more there are.
pub fn names(all: &[String], most: usize) -> String {
    let mut text = all
        .iter()
        .take(most)
        .map(|name| plain(name))
        .collect::<Vec<_>>()
        .join(", ");
    if all.len() > most {
        text.push_str(&format!(" and {} more", all.len() - most));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_change_units_where_the_printed_number_would() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (1_250, "1.2 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (34_500_000, "34.5 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn counts_have_separated_thousands() {
        assert_eq!(
            [0, 12, 999, 1000, 1234567].map(count),
            ["0", "12", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn durations_never_print_sixty_seconds() {
        let cases = [
            (0.0, "0 ms"),
            (0.012, "12 ms"),
            (0.0999, "0.10 s"),
            (0.34, "0.34 s"),
            (0.999, "1.0 s"),
            (59.99, "60.0 s"),
            (125.0, "2 min 05 s"),
            (3599.7, "60 min 00 s"),
            (12_000.0, "3 h 20 min"),
        ];
        for (number, text) in cases {
            assert_eq!(seconds(number), text);
        }
    }

    #[test]
    fn values_keep_their_decimals_and_name_what_is_not_finite() {
        assert_eq!(value(43.126, decimals(43.126)), "43.13");
        assert_eq!(value(0.8, decimals(0.8)), "0.800");
        assert_eq!(value(0.000_123, decimals(0.000_123)), "0.000123");
        assert_eq!(decimals_of([40.0, 50.0, 1e28, f64::NAN].into_iter()), 2);
        assert_eq!(
            [1.866, -0.351, -0.001].map(|difference| signed(difference, 2)),
            ["+1.87", "−0.35", "0.00"]
        );
        assert_eq!(value(f64::NAN, 2), "not finite");
        assert_eq!(value(1.5e12, 0), "1.50e12");
    }

    #[test]
    fn dates_have_leap_days_and_ends_of_years() {
        let dates = [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59 UTC"),
            (1_795_355_351, "2026-11-22 13:49 UTC"),
        ];
        for (seconds, text) in dates {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn control_characters_are_replaced_and_long_texts_are_cut() {
        assert_eq!(plain("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
        assert_eq!(plain("a\u{202e}b\u{200b}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(
            message("wrong\nround 9 final\u{1b}[2J"),
            "wrong\n  round 9 final\u{fffd}[2J"
        );
        assert_eq!(message(&"x".repeat(200_000)).chars().count(), 4001);
        let odd = serde_json::json!({ "name": "a\u{202e}b\u{9b}\u{e0041}" });
        let text = escaped(&odd.to_string());
        assert_eq!(text, r#"{"name":"a\u202eb\u009b\udb40\udc41"}"#);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).ok(),
            Some(odd)
        );
        assert_eq!(short("Zürich-Süd", 6), "Züric…");
        assert_eq!(
            names(&["a".into(), "b".into(), "c".into()], 2),
            "a, b and 1 more"
        );
    }

    #[test]
    fn nouns_and_verbs_agree_with_their_counts() {
        let counted = |count| {
            let nouns = ["silo", "entry", "day", "class"];
            nouns.map(|one| plural(count, one)).join(" ") + " " + verb(count, "is", "are")
        };
        assert_eq!(counted(0), "0 silos 0 entries 0 days 0 classes are");
        assert_eq!(counted(1), "1 silo 1 entry 1 day 1 class is");
        assert_eq!(
            counted(1234),
            "1,234 silos 1,234 entries 1,234 days 1,234 classes are"
        );
    }
}
