//! Values of cells, written as text.

use crate::data::date::{moment_text, time_text};

/// Form in which the format of a cell shows its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownCell {
    /// A number as it is.
    Plain,
    /// A hundredfold, with a sign of per cent.
    Percent,
    /// A whole number with zeros before it, up to so many digits.
    Padded(usize),
    /// A date, a time of day, or both.
    Moment { day: bool, time: bool },
    /// Hours, minutes and seconds that may be more than a day has.
    Elapsed,
}

impl ShownCell {
    /// Of a format that every program knows by its number.
    pub(super) fn built_in(number: u32) -> Self {
        match number {
            9 | 10 => Self::Percent,
            14..=17 | 27..=31 | 36 | 50..=54 | 57 | 58 => Self::Moment {
                day: true,
                time: false,
            },
            18..=21 | 32..=35 | 45 | 47 | 55 | 56 => Self::Moment {
                day: false,
                time: true,
            },
            22 => Self::Moment {
                day: true,
                time: true,
            },
            46 => Self::Elapsed,
            _ => Self::Plain,
        }
    }

    /// Of a format that is written out, such as `yyyy-mm-dd;@`.
    pub(super) fn written(code: &str) -> Self {
        let mut letters = String::new();
        let mut rest = code.chars();
        while let Some(letter) = rest.next() {
            match letter {
                '"' => rest
                    .by_ref()
                    .take_while(|letter| *letter != '"')
                    .for_each(drop),
                '\\' | '_' | '*' => drop(rest.next()),
                '[' => {
                    let inside: String =
                        rest.by_ref().take_while(|letter| *letter != ']').collect();
                    let inside = inside.to_ascii_lowercase();
                    let time = inside
                        .bytes()
                        .all(|byte| matches!(byte, b'h' | b'm' | b's'));
                    if time && !inside.is_empty() {
                        return Self::Elapsed;
                    }
                }
                // Of several formats the first is that of positive numbers.
                ';' => break,
                letter => letters.extend(letter.to_lowercase()),
            }
        }
        if letters.contains("general") {
            return Self::Plain;
        }
        let has = |of: &[char]| letters.contains(of);
        if has(&['d', 'y', 'h', 's', 'm']) {
            let time = has(&['h', 's']);
            let day = has(&['d', 'y']) || !time;
            return Self::Moment { day, time };
        }
        let zeros = letters.len() > 1 && letters.bytes().all(|byte| byte == b'0');
        match letters.contains('%') {
            true => Self::Percent,
            false if zeros => Self::Padded(letters.len()),
            false => Self::Plain,
        }
    }

    /// A number as text; a decimal mark is a point. `since_1904` says from which year days are counted.
    pub(super) fn text(self, value: f64, since_1904: bool) -> String {
        let known = (0.0..2_958_466.0).contains(&value);
        match self {
            Self::Padded(digits) if value.fract() == 0.0 && value >= 0.0 => {
                format!("{value:0digits$}")
            }
            Self::Elapsed if known => elapsed(value),
            Self::Moment { day, time } if known => moment(value, day, time, since_1904),
            _ => value.to_string(),
        }
    }
}

/// Milliseconds of a day.
const DAY: f64 = 86_400_000.0;

/// A date, from the days since the end of 1899, or since the begin of 1904.
fn moment(value: f64, day: bool, time: bool, since_1904: bool) -> String {
    let whole = value.fract() == 0.0;
    let millis = (value * DAY).round() as i64;
    if !day && value < 1.0 {
        return time_text(millis, 1000);
    }
    // Spreadsheets count a 29 of February in 1900, which there was not.
    let before = match since_1904 {
        true => 24_107,
        false if value < 60.0 => 25_568,
        false => 25_569,
    };
    let text = moment_text(millis - before * DAY as i64, 1000);
    match whole && !time {
        true => text[..text.len() - " 00:00:00".len()].to_owned(),
        false => text,
    }
}

fn elapsed(value: f64) -> String {
    let seconds = (value * 86_400.0).round() as i64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// A date and time as ISO 8601 writes it, with a space between them.
pub(super) fn iso(text: &str) -> String {
    match text.split_once('T') {
        Some((day, time)) if !day.is_empty() => {
            let time = match time.split_once('.') {
                Some((whole, part)) if part.bytes().all(|byte| byte == b'0') => whole,
                _ => time,
            };
            format!("{day} {time}")
        }
        _ => text.to_owned(),
    }
}

/// A duration as ISO 8601 writes it, `PT14H30M00S`, in hours, minutes and seconds.
pub(super) fn duration(text: &str) -> Option<String> {
    let mut seconds = 0.0;
    let mut number = String::new();
    for letter in text.strip_prefix("PT")?.chars() {
        let unit = match letter {
            'H' => 3600.0,
            'M' => 60.0,
            'S' => 1.0,
            letter => {
                number.push(letter);
                continue;
            }
        };
        seconds += unit * number.parse::<f64>().ok()?;
        number.clear();
    }
    number.is_empty().then(|| elapsed(seconds / 86_400.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_say_what_a_number_is() {
        let (date, time, both) = (
            ShownCell::Moment {
                day: true,
                time: false,
            },
            ShownCell::Moment {
                day: false,
                time: true,
            },
            ShownCell::Moment {
                day: true,
                time: true,
            },
        );
        let cases = [
            ("General", ShownCell::Plain),
            ("0.00E+00", ShownCell::Plain),
            ("#,##0.00\\ \"days\"", ShownCell::Plain),
            ("[Red]0.0;[Blue]-0.0", ShownCell::Plain),
            ("_-* #,##0.00_d", ShownCell::Plain),
            ("yyyy-mm-dd", date),
            ("[$-407]d. mmmm yyyy;@", date),
            ("DD.MM.YYYY", date),
            ("mmm", date),
            ("h:mm AM/PM", time),
            ("mm:ss.0", time),
            ("m/d/yy h:mm", both),
            ("[h]:mm:ss", ShownCell::Elapsed),
            ("0.0%", ShownCell::Percent),
            ("00000", ShownCell::Padded(5)),
            ("0", ShownCell::Plain),
        ];
        for (code, shown) in cases {
            assert_eq!(ShownCell::written(code), shown, "{code}");
        }
    }

    #[test]
    fn days_become_dates() {
        let date = ShownCell::built_in(14);
        let both = ShownCell::built_in(22);
        let time = ShownCell::built_in(20);
        let cases = [
            (date, 45_443.0, false, "2024-05-31"),
            (date, 1.0, false, "1900-01-01"),
            (date, 59.0, false, "1900-02-28"),
            (date, 61.0, false, "1900-03-01"),
            (date, 43_981.0, true, "2024-05-31"),
            (date, 45_443.75, false, "2024-05-31 18:00:00"),
            (both, 45_443.0, false, "2024-05-31 00:00:00"),
            (both, 45_443.604_166_666_664, false, "2024-05-31 14:30:00"),
            (time, 0.604_166_666_666_667, false, "14:30:00"),
            (ShownCell::Elapsed, 1.5, false, "36:00:00"),
            (ShownCell::Padded(5), 123.0, false, "00123"),
            (ShownCell::Plain, 0.1, false, "0.1"),
            (ShownCell::Percent, 0.12, false, "0.12"),
            (date, -5.0, false, "-5"),
        ];
        for (shown, value, since_1904, text) in cases {
            assert_eq!(shown.text(value, since_1904), text);
        }
        assert_eq!(iso("2024-05-31T14:30:00.000"), "2024-05-31 14:30:00");
        assert_eq!(iso("2024-05-31"), "2024-05-31");
        assert_eq!(duration("PT14H30M05S").as_deref(), Some("14:30:05"));
        assert_eq!(duration("P1Y"), None);
    }
}
