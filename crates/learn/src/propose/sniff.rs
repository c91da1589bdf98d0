//! Finds out how a text file is written: encoding, separator, decimal mark.

use std::path::Path;

use crate::data::{DataError, Format, RawFile, bytes, is_parquet, open};

/// Lines that are looked at.
const LINES: usize = 200;

/// How a file is written, and its rows.
///
/// # Errors
/// [`DataError`]: it cannot be read, or is no table of text.
pub(super) fn read(path: &Path) -> Result<(Format, RawFile), DataError> {
    let mut format = Format::default();
    if is_parquet(path) {
        let file = open(path.to_owned(), &format)?;
        return Ok((format, file));
    }
    let bytes = bytes(path)?;
    if std::str::from_utf8(&bytes).is_err() {
        format.encoding = match bytes.as_slice() {
            [0xFF, 0xFE, ..] => "utf-16le",
            [0xFE, 0xFF, ..] => "utf-16be",
            _ => "windows-1252",
        }
        .into();
    }
    let text = format.decode(path, bytes)?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let head: Vec<&str> = lines.take(LINES).collect();
    format.delimiter = delimiter(&head);
    if let Ok(sample) = RawFile::of_text(path.to_owned(), &head.join("\n"), &format) {
        format.decimal = decimal(&sample);
    }
    let file = RawFile::of_text(path.to_owned(), &text, &format)?;
    Ok((format, file))
}

/// The character that cuts the lines into the same number of cells, at least two; most often.
fn delimiter(lines: &[&str]) -> char {
    let score = |delimiter: char| {
        let counts: Vec<usize> = lines
            .iter()
            .map(|line| outside_quotes(line, delimiter))
            .collect();
        let first = counts.first().copied().unwrap_or(0);
        let same = counts.iter().filter(|&&count| count == first).count();
        // How many lines agree, then how many cells.
        (first > 0).then_some((same, first))
    };
    let candidates = [',', ';', '\t', '|'];
    let best = candidates
        .into_iter()
        .filter_map(|delimiter| Some((score(delimiter)?, delimiter)))
        .max_by(|a, b| a.0.cmp(&b.0));
    best.map_or(',', |(_, delimiter)| delimiter)
}

fn outside_quotes(line: &str, delimiter: char) -> usize {
    let (mut quoted, mut count) = (false, 0);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            letter if letter == delimiter && !quoted => count += 1,
            _ => {}
        }
    }
    count
}

/// A comma where cells such as `3,5` are more than cells such as `3.5`.
fn decimal(sample: &RawFile) -> char {
    let cells = || sample.rows.iter().flat_map(|row| row.cells.iter());
    let like = |text: &str, mark: char| {
        text.split_once(mark).is_some_and(|(whole, part)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits(whole.trim_start_matches('-')) && digits(part)
        })
    };
    let commas = cells().filter(|text| like(text, ',')).count();
    let points = cells().filter(|text| like(text, '.')).count();
    if commas > points { ',' } else { '.' }
}

/// What differs from an ordinary CSV file.
pub(super) fn notes(format: &Format) -> Vec<String> {
    let ordinary = Format::default();
    let mut notes = Vec::new();
    if format.delimiter != ordinary.delimiter {
        notes.push(format!("cells are separated by {:?}", format.delimiter));
    }
    if format.decimal != ordinary.decimal {
        notes.push("numbers have a decimal comma".into());
    }
    if format.encoding != ordinary.encoding {
        notes.push(format!("the text is {} (a guess)", format.encoding));
    }
    notes
}
