//! Numbers whose written form means something: codes of a catalogue, such as `250.0` and `250.00`.

use std::collections::BTreeMap;

use crate::data::Format;

/// Codes as which the numbers of a column are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenForm {
    /// Evidence for it, in a phrase.
    pub(super) why: String,
    /// True if they are whole numbers that any program could have written.
    pub(super) whole: bool,
}

/// A number as it is written, without its sign.
struct WrittenCell<'a> {
    text: &'a str,
    whole: String,
    /// The digits behind the decimal mark, if there is one.
    part: Option<String>,
    rows: usize,
}

impl WrittenCell<'_> {
    fn is_negative(&self) -> bool {
        self.text.starts_with(['-', '\u{2212}'])
    }

    /// The digits behind the decimal mark, without zeros at their end.
    fn decimals(&self) -> &str {
        let part = self.part.as_deref().unwrap_or_default();
        part.trim_end_matches('0')
    }
}

/// Part of the rows of a column, one in so many, that have to show it: one odd cell is a slip of the hand.
const SHARE: usize = 100;

/// Returns what the written form of the numbers of one file tells, by its different cells with their rows. A program
/// writes the numbers of a column in one way: in the shortest form, with a fixed number of decimals, or with a
/// fixed number of digits. Cells that are no plain numbers do not count.
pub(super) fn written_form(cells: &BTreeMap<&str, usize>, format: &Format) -> Option<WrittenForm> {
    let mut all = Vec::new();
    for (text, rows) in cells {
        let Some(plain) = format.pointed(text) else {
            continue;
        };
        let digits = plain.trim_start_matches('-');
        if !digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            continue;
        }
        let (whole, part) = match digits.split_once('.') {
            Some((whole, part)) => (whole, Some(part.to_owned())),
            None => (digits, None),
        };
        all.push(WrittenCell {
            text,
            whole: whole.to_owned(),
            part,
            rows: *rows,
        });
    }
    let rows: usize = all.iter().map(|cell| cell.rows).sum();
    // Measurements hardly repeat, codes do.
    if all.len() < 2 || 2 * all.len() > rows {
        return None;
    }
    let enough = |count: usize| count >= 2 && SHARE * count >= rows;
    let found = zero_ahead(&all, &enough)
        .or_else(|| twice(&all, &enough))
        .or_else(|| decimals(&all, &enough));
    let found = found.map(|why| WrittenForm { why, whole: false });
    found.or_else(|| catalogue(&all, rows))
}

/// `038.9` and `007`.
fn zero_ahead(all: &[WrittenCell<'_>], enough: &dyn Fn(usize) -> bool) -> Option<String> {
    let padded = || {
        all.iter()
            .filter(|cell| cell.whole.len() > 1 && cell.whole.starts_with('0'))
    };
    let first = padded().next()?;
    let rows = padded().map(|cell| cell.rows).sum();
    enough(rows).then(|| format!("{:?} begins with a zero", first.text))
}

/// `250.0` and `250.00`.
fn twice(all: &[WrittenCell<'_>], enough: &dyn Fn(usize) -> bool) -> Option<String> {
    let mut same: BTreeMap<(&str, &str, bool), Vec<&WrittenCell<'_>>> = BTreeMap::new();
    for cell in all {
        let whole = cell.whole.trim_start_matches('0');
        let key = (whole, cell.decimals(), cell.is_negative());
        same.entry(key).or_default().push(cell);
    }
    let decimals = |cell: &WrittenCell<'_>| cell.part.as_deref().map_or(0, str::len);
    let groups = same.values().filter(|group| {
        let first = decimals(group[0]);
        group.iter().any(|cell| decimals(cell) != first)
    });
    let groups: Vec<_> = groups.collect();
    // The rarer spelling of each counts.
    let rare =
        |group: &&Vec<&WrittenCell<'_>>| group.iter().map(|cell| cell.rows).min().unwrap_or(0);
    let rows: usize = groups.iter().map(rare).sum();
    let first = groups.first().filter(|_| enough(rows))?;
    Some(format!(
        "{:?} and {:?} are the same number",
        first[0].text, first[1].text
    ))
}

/// `250.00` beside `401.9`.
fn decimals(all: &[WrittenCell<'_>], enough: &dyn Fn(usize) -> bool) -> Option<String> {
    let parts = || {
        all.iter()
            .filter_map(|cell| Some((cell, cell.part.as_deref()?)))
    };
    let most = parts().map(|(_, part)| part.len()).max()?;
    let digits = |cell: &WrittenCell<'_>| {
        let all = format!("{}{}", cell.whole, cell.part.as_deref().unwrap_or_default());
        all.trim_start_matches('0').len()
    };
    let significant = parts().map(|(cell, _)| digits(cell)).max()?;
    if parts().all(|(cell, _)| [0, significant].contains(&digits(cell))) {
        return None;
    }
    // No program writes these zeros, unless it writes as many decimals or digits everywhere.
    let long = |part: &str| part.ends_with('0') && part.len() > 1;
    let zeros: usize = parts()
        .filter(|(_, part)| long(part))
        .map(|(cell, _)| cell.rows)
        .sum();
    let short = parts().find(|(_, part)| part.len() < most)?.0;
    let long = parts().find(|(_, part)| long(part))?.0;
    enough(zeros).then(|| {
        format!(
            "{:?} has zeros behind the point, and {:?} has fewer",
            long.text, short.text
        )
    })
}

/// Few different numbers of one width and far between: `250.1`, `401.9`, `428`; `99.04`, `88.72`, `45.13`; of
/// whole ones eight at least, or five long ones: `470`, `871`. Measured numbers have several widths, come close to each other, or are
/// rounded.
fn catalogue(all: &[WrittenCell<'_>], rows: usize) -> Option<WrittenForm> {
    let mut widths: BTreeMap<usize, usize> = BTreeMap::new();
    let unsigned = || all.iter().filter(|cell| !cell.is_negative());
    unsigned().for_each(|cell| *widths.entry(cell.whole.len()).or_default() += cell.rows);
    let (&width, &own) = widths.iter().max_by_key(|(_, rows)| **rows)?;
    let cells = || unsigned().filter(move |cell| cell.whole.len() == width);
    let most = cells().map(|cell| cell.decimals().len()).max()?;
    let whole = most == 0;
    let (fewest, digits) = match (whole, width) {
        (true, ..5) => (8, 3),
        (true, 5..) => (5, 3),
        (false, _) => (3, 4),
    };
    // Some lose the zeros before them, and no catalogue has more than two decimals.
    if 10 * own < 6 * rows || width < 2 || width + most < digits || most > 2 {
        return None;
    }
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    for cell in cells() {
        let place = format!("{}{:0<most$}", cell.whole, cell.decimals());
        *places.entry(place.parse().ok()?).or_default() += cell.rows;
    }
    let rounded = places.iter().filter(|(place, _)| place.is_multiple_of(5));
    let rounded: usize = rounded.map(|(_, rows)| rows).sum();
    if places.len() < fewest || own < 5 * places.len() || 10 * rounded > 7 * own {
        return None;
    }
    let (first, last) = (places.keys().next()?, places.keys().next_back()?);
    let steps = places.keys().zip(places.keys().skip(1));
    let step = steps.fold(0, |step, (one, next)| divisor(step, next - one));
    let between = (last - first) / step.max(1) + 1;
    (20 * (places.len() as u64) < between).then(|| {
        let why = format!(
            "its cells are {} numbers of one width, from {:?} to {:?}, with many rows each",
            places.len(),
            cells().next().map_or("", |cell| cell.text),
            cells().next_back().map_or("", |cell| cell.text)
        );
        WrittenForm { why, whole }
    })
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is told of these cells, each in twelve rows.
    fn of(cells: &[&str]) -> Option<String> {
        let cells = cells.iter().map(|cell| (*cell, 12)).collect();
        written_form(&cells, &Format::default()).map(|form| form.why)
    }

    #[test]
    fn codes_are_recognised_by_what_no_program_writes_of_numbers() {
        for (cells, part) in [
            (
                &["250.0", "250.00", "250.01", "401.9"][..],
                "\"250.0\" and \"250.00\" are the same",
            ),
            (&["1.1", "1.10", "1.2"], "\"1.1\" and \"1.10\""),
            (&["250", "250.0", "401"], "\"250\" and \"250.0\""),
            (&["8.30", "8.3", "9.45"], "are the same number"),
            (&["250.00", "250.01", "401.9"], "\"250.00\" has zeros"),
            (&["2.10", "2.11", "2.9"], "has zeros behind the point"),
            (&["038.9", "250.1", "401.9"], "\"038.9\" begins with a zero"),
            (&["007", "012", "115"], "\"007\" begins with a zero"),
            (&["0800", "8001", "3012"], "begins with a zero"),
            (
                &["250.1", "401.9", "428.0", "414.2"],
                "4 numbers of one width",
            ),
            (&["99.04", "88.72", "45.13", "39.95"], "of one width"),
            (&["99.04", "88.7", "45.13", "38.93"], "of one width"),
            (&["401.9", "428", "272.4", "585.6"], "of one width"),
            (&["12.41", "57.03", "83.9"], "3 numbers of one width"),
            (&["99.04", "88.7", "45.13", "3.31", "96.71"], "4 numbers of"),
            (
                &[
                    "73211009",
                    "38341003",
                    "22298006",
                    "13645005",
                    "195967001",
                    "44054006",
                ],
                "5 numbers of one width",
            ),
            (
                &[
                    "470", "871", "291", "392", "683", "194", "313", "247", "189",
                ],
                "9 numbers of one width",
            ),
            (
                &[
                    "99213", "99284", "71046", "80053", "36415", "93001", "70553", "45378",
                ],
                "from \"36415\" to \"99284\"",
            ),
        ] {
            let found = of(cells);
            assert!(
                found.as_ref().is_some_and(|found| found.contains(part)),
                "{cells:?}: {found:?}"
            );
        }
        let german = Format {
            decimal: ',',
            ..Format::default()
        };
        let cells = [("250,0", 12), ("250,00", 12)].into_iter().collect();
        assert!(written_form(&cells, &german).is_some());
    }

    #[test]
    fn numbers_as_programs_write_them_tell_nothing() {
        for cells in [
            &["1", "2", "10"][..],
            &["1.0", "2.0", "10.0"],
            &["1.0", "2.5", "10.25"],
            &["0.5", "0.25", "0"],
            &["1.50", "2.25", "10.00"],
            &["1.50", "2", "3.25"],
            &["0.0100", "1.50", "12.5", "120"],
            &["1e5", "2.50e-3", "1.5"],
            &["36.5", "36.6", "37.1", "38.0", "39.9"],
            &["70.0", "72.5", "75.0", "77.5"],
            &["110.0", "120.0", "130.0", "185.0"],
            &["101.0", "250.0", "317.0"],
            &["36.5", "37.25", "38.75", "41.1"],
            &[
                "100", "150", "225", "350", "400", "650", "700", "850", "137",
            ],
            &[
                "1961", "1974", "1980", "1983", "1988", "1995", "2003", "2011",
            ],
            &["150", "163", "168", "171", "174", "180", "185", "191"],
            &["12.5", "25.0", "37.5", "50.0", "62.5"],
            &["13.73189", "58.6", "11.24", "20.77812"],
            &["52345", "52350", "52400", "53000", "61000"],
            &["10.25", "20.5", "30.75", "61.5"],
            &["-1.5", "1.5"],
            &["+1", "1"],
            &["a", "b"],
        ] {
            assert_eq!(of(cells), None, "{cells:?}");
        }
        // Measurements of many rows, of which one was typed with a zero more.
        let mut cells: BTreeMap<&str, usize> = BTreeMap::new();
        cells.extend([("7.1", 300), ("7.2", 300), ("7.30", 1), ("7.3", 200)]);
        assert_eq!(written_form(&cells, &Format::default()), None);
        let single = [("7.1", 1), ("7.10", 1), ("7.2", 1)].into_iter().collect();
        assert_eq!(written_form(&single, &Format::default()), None);
    }
}
