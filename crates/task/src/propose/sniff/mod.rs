//! Finds out how a text file is written: encoding, separator, decimal mark, mark of thousands.

use std::path::{Path, PathBuf};

use crate::data::{
    Charset, ColumnMarks, DataError, FileContent, Format, RawFile, by_zero_bytes, content,
    missing_notes, mojibake, notation_notes, open, separator,
};

mod encoding;
mod marks;

/// Lines that are looked at.
const LINES: usize = 200;

/// Statements of the user about the format of the files, where they could be read in two ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The mark before decimals.
    pub decimal: Option<char>,
    /// The mark between thousands.
    pub thousands: Option<char>,
    /// The encoding of files that are no UTF-8.
    pub encoding: Option<Charset>,
    /// The sheet of spreadsheets; the first where none is named.
    pub sheet: Option<String>,
}

/// Returns how every file is written, and its rows: as the first file writes its numbers.
///
/// # Errors
/// [`DataError`]: one cannot be read, is no table of text, or has numbers that can be read in two ways.
pub(super) fn all(
    files: &[PathBuf],
    given: &Marks,
) -> Result<(Vec<Format>, Vec<RawFile>), DataError> {
    let (mut formats, mut raw): (Vec<Format>, Vec<RawFile>) = (Vec::new(), Vec::new());
    for path in files {
        let (format, mut file) = read(path, given)?;
        if let Some(first) = formats.first() {
            file.rewritten(&format, first)?;
        }
        formats.push(format);
        raw.push(file);
    }
    Ok((formats, raw))
}

/// Returns how a file is written, and its rows.
///
/// # Errors
/// [`DataError`]: it cannot be read, is no table of text, or has numbers that can be read in two ways.
pub(super) fn read(path: &Path, given: &Marks) -> Result<(Format, RawFile), DataError> {
    let mut format = Format::default();
    let (content, notes) = content(path)?;
    let bytes = match content {
        FileContent::Text(bytes) => bytes,
        FileContent::Sheet(_) => {
            // Its numbers are numbers, whatever marks the program shows.
            format.decimal = given.decimal.unwrap_or(format.decimal);
            format.thousands = given.thousands;
            format.sheet = given.sheet.clone();
            format.check()?;
            let file = open(path.to_owned(), &format)?;
            return Ok((format, file));
        }
        FileContent::Parquet(_) => {
            let file = open(path.to_owned(), &format)?;
            return Ok((format, file));
        }
    };
    let mut example = None;
    if let Some(encoding) = by_zero_bytes(&bytes) {
        format.encoding = encoding.name().to_ascii_lowercase();
    } else if std::str::from_utf8(&bytes).is_err() {
        (format.encoding, example) = match (bytes.as_slice(), given.encoding) {
            ([0xFF, 0xFE, ..], _) => ("utf-16le".into(), None),
            ([0xFE, 0xFF, ..], _) => ("utf-16be".into(), None),
            (_, Some(given)) => (given.label(), None),
            (bytes, None) => encoding::found(path, bytes)?,
        };
    }
    let text = format.decode(path, bytes)?;
    let lines = text
        .split(['\n', '\r'])
        .filter(|line| !line.trim().is_empty());
    let head: Vec<&str> = lines.take(LINES).collect();
    format.delimiter = separator(&text).unwrap_or_else(|| delimiter(&head));
    let mut file = RawFile::of_text(path.to_owned(), &text, &format)?;
    let (decimal, thousands, note) = marks::found(&file, &format, given)?;
    (format.decimal, format.thousands) = (decimal, thousands);
    format.check()?;
    file.notes.splice(0..0, notes);
    let example = example.map_or(String::new(), |word| format!(", such as {word:?}"));
    let encoding = (format.encoding != Format::default().encoding)
        .then(|| format!("its text is {}{example}", format.encoding));
    file.notes.extend(note.into_iter().chain(encoding));
    Ok((format, file))
}

/// The character that cuts most lines into the same number of cells, at least two. Titles and comments
/// have none.
fn delimiter(lines: &[&str]) -> char {
    let score = |delimiter: char| {
        let counts: Vec<usize> = lines
            .iter()
            .map(|line| outside_quotes(line, delimiter))
            .filter(|count| *count > 0)
            .collect();
        let same = |own: usize| counts.iter().filter(|&&count| count == own).count();
        // The number of lines that agree counts first, then that of cells.
        counts.iter().map(|&count| (same(count), count)).max()
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

/// Returns what differs from an ordinary CSV file.
pub(super) fn notes(format: &Format) -> Vec<String> {
    let ordinary = Format::default();
    let mut notes = Vec::new();
    if format.delimiter != ordinary.delimiter {
        notes.push(format!("cells are separated by {:?}", format.delimiter));
    }
    if format.decimal != ordinary.decimal {
        notes.push("numbers have a decimal comma".into());
    }
    if let Some(mark) = format.thousands {
        notes.push(format!("numbers have {mark:?} between thousands"));
    }
    notes
}

/// Returns whether two files separate cells and write numbers in the same way.
fn same_marks(one: &Format, other: &Format) -> bool {
    one.delimiter == other.delimiter && one.writes_as(other)
}

/// Returns remarks on the files: on text that is left out or read otherwise than it stands there. `marks` has
/// the known texts of a column.
///
/// # Errors
/// [`DataError::Mixed`]: the numbers of a column are written in two ways.
pub(super) fn file_notes(
    formats: &[Format],
    raw: &[RawFile],
    marks: impl Fn(&str) -> ColumnMarks,
) -> Result<Vec<String>, DataError> {
    let first = formats.first();
    // Differences from another file are questions.
    let odd = mojibake(raw).into_iter().filter(|odd| !odd.elsewhere);
    let mut notes: Vec<String> = odd.map(|odd| odd.to_string()).collect();
    for (format, file) in formats.iter().zip(raw) {
        let path = file.path.display();
        let mut own = file.notes.clone();
        if first.is_some_and(|first| !same_marks(first, format)) {
            let written = self::notes(format);
            own.push(match written.as_slice() {
                [] => "it is written with commas between cells and decimal points".into(),
                some => some.join(", "),
            });
        }
        // Its rows are written as those of the first file.
        let format = first.unwrap_or(format);
        let columns: Vec<&str> = file.header.iter().map(String::as_str).collect();
        let marks: Vec<ColumnMarks> = columns.iter().map(|name| marks(name)).collect();
        let numbers = columns.iter().copied().filter(|name| {
            let place = file.place(name).unwrap_or(usize::MAX);
            let cells = file.rows.iter().filter_map(|row| row.cells.get(place));
            let mut present = cells.filter(|text| !format.is_missing(text));
            present.all(|text| format.number(text).is_some())
        });
        let numbers: Vec<&str> = numbers.collect();
        own.extend(notation_notes(file, &numbers, format, &marks)?);
        own.extend(missing_notes(file, &columns, format, &marks));
        notes.extend(own.iter().map(|note| format!("{path}: {note}")));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests;
