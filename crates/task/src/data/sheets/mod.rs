//! Reads sheets of spreadsheet programs, `.xlsx` and `.ods`, as tables of text like those of CSV.
//!
//! Dates become ISO texts, numbers are written in full and with the decimal mark of the format, and what a formula
//! could not compute is missing. All that is decoded is counted before it takes memory.

mod book;
mod ods;
mod values;
mod xlsx;

use std::fmt::Write;
use std::path::Path;

use csv::StringRecord;

use self::book::Book;
use self::xlsx::Workbook;
use super::raw::{CsvRecord, Gathering, HEAD, Origin, is_blank};
use super::{DataError, Format, RawFile, Wanted, composed, nearest};
use crate::counted::{counted, verb};
use crate::file;

/// Most columns of a sheet, and most rows.
const COLUMNS: usize = 1 << 14;
const ROWS: usize = 1 << 20;

/// A sheet of a file.
struct SheetName {
    name: String,
    /// The part of the file that holds it.
    part: String,
    hidden: bool,
}

/// A row of a sheet.
#[derive(Default)]
struct SheetRow {
    /// Its number, from 1.
    at: u64,
    cells: Vec<String>,
    /// `true` for each cell that is a number, as far as there are any.
    numbers: Vec<bool>,
}

/// Receiver of the rows of a sheet.
type Sink<'s> = &'s mut dyn FnMut(&SheetRow) -> Result<(), DataError>;

impl SheetRow {
    /// Begins the next row.
    fn begin(&mut self) {
        self.cells.clear();
        self.numbers.clear();
    }

    fn put(&mut self, place: usize, text: String) {
        if place >= self.cells.len() {
            self.cells.resize(place + 1, String::new());
        }
        self.cells[place] = text;
        self.numbers.truncate(self.cells.len());
        if let Some(number) = self.numbers.get_mut(place) {
            *number = false;
        }
    }

    fn put_number(&mut self, place: usize, text: String) {
        self.put(place, text);
        self.numbers.resize(self.cells.len(), false);
        self.numbers[place] = true;
    }

    fn is_filled(&self) -> bool {
        self.cells.iter().any(|cell| !cell.is_empty())
    }
}

/// Peculiarities of the cells of a sheet that a person should know.
#[derive(Default)]
struct Peculiar {
    /// Formulas that have failed.
    errors: usize,
    /// Formulas whose values are not in the file.
    uncomputed: usize,
    percent: usize,
    /// Rows that are hidden.
    hidden: usize,
}

impl Peculiar {
    fn notes(&self) -> Vec<String> {
        let cells = |count: usize| counted(count, "cell");
        let mut notes = Vec::new();
        if self.errors > 0 {
            notes.push(format!(
                "{} {} an error of a formula, such as #N/A: read as missing",
                cells(self.errors),
                verb(self.errors, "hold")
            ));
        }
        if self.uncomputed > 0 {
            notes.push(format!(
                "{} {} a formula whose value is not in the file: read as missing; open the file in a spreadsheet \
                 program and save it",
                cells(self.uncomputed),
                verb(self.uncomputed, "hold")
            ));
        }
        if self.percent > 0 {
            notes.push(format!(
                "{} {} shown as per cent: 12 % is read as 0.12, as it is stored",
                cells(self.percent),
                verb(self.percent, "are")
            ));
        }
        if self.hidden > 0 {
            notes.push(format!(
                "{} {} hidden in the sheet and read like the others",
                counted(self.hidden, "row"),
                verb(self.hidden, "are")
            ));
        }
        notes
    }
}

/// A number of columns or rows within what sheets have.
fn at_most(book: &Book<'_>, place: usize, limit: usize, what: &str) -> Result<(), DataError> {
    match place < limit {
        true => Ok(()),
        false => Err(book.damaged(&format!("it has more than {limit} {what}"))),
    }
}

/// Reads the sheet that the format names, or the first, as a table: titles above the names of the columns are left
/// out, and said.
///
/// # Errors
/// [`DataError`]: no spreadsheet, no such sheet, a damaged file, too much in it; what a table of text may have.
pub(super) fn read(
    path: &Path,
    bytes: &[u8],
    format: &Format,
    wanted: Wanted<'_>,
) -> Result<RawFile, DataError> {
    read_within(path, bytes, format, wanted, file::DATA)
}

fn read_within(
    path: &Path,
    bytes: &[u8],
    format: &Format,
    wanted: Wanted<'_>,
    limit: u64,
) -> Result<RawFile, DataError> {
    let book = Book::open(path, bytes, limit)?;
    let (mut head, mut filled) = (Vec::new(), 0);
    let mut table = None;
    let notes = rows(&book, format, &mut |row| {
        let record = record(row, format.decimal);
        if let Some(table) = &mut table {
            return Gathering::add(table, record);
        }
        head.push(record);
        filled += 1;
        if filled == HEAD {
            let head = std::mem::take(&mut head);
            table = Some(Gathering::begin(
                path.into(),
                head,
                Origin::Sheet,
                format,
                wanted,
            )?);
        }
        Ok(())
    })?;
    let table = match table {
        Some(table) => table,
        None => Gathering::begin(path.into(), head, Origin::Sheet, format, wanted)?,
    };
    let mut file = table.finish(true)?;
    file.notes.splice(0..0, notes);
    Ok(file)
}

/// A row as a record, without the empty cells at its end.
fn record(row: &SheetRow, decimal: char) -> CsvRecord {
    let end = row.cells.iter().rposition(|cell| !cell.is_empty());
    let cells = row.cells[..end.map_or(0, |last| last + 1)]
        .iter()
        .enumerate();
    let mut record = StringRecord::new();
    for (place, cell) in cells {
        let number = decimal != '.' && row.numbers.get(place) == Some(&true);
        match number {
            true => record.push_field(&cell.replacen('.', &decimal.to_string(), 1)),
            false => record.push_field(&composed(cell.trim_matches(is_blank))),
        }
    }
    CsvRecord {
        line: row.at,
        start: 0,
        cells: record,
        long: None,
    }
}

/// Reads a sheet as [`read`] does, but every row by itself, as those of text are: its first row has the names.
///
/// # Errors
/// As those of [`read`], and of [`RawFile::of_lines`].
pub(super) fn read_row_by_row(
    path: &Path,
    bytes: &[u8],
    format: &Format,
) -> Result<RawFile, DataError> {
    let book = Book::open(path, bytes, file::DATA)?;
    let format = Format {
        encoding: "utf-8".into(),
        ..format.clone()
    };
    let (mut text, mut line) = (String::new(), 1);
    let notes = rows(&book, &format, &mut |row| {
        while line < row.at {
            text.push('\n');
            line += 1;
        }
        for (place, cell) in record(row, format.decimal).cells.iter().enumerate() {
            if place > 0 {
                text.push(format.delimiter);
            }
            let cell = cell.replace(['\n', '\r'], " ").replace('"', "\"\"");
            write!(text, "\"{cell}\"").expect("a String takes everything");
        }
        Ok(())
    })?;
    let mut file = RawFile::of_lines(path.into(), text.as_bytes(), &format)?;
    file.notes.splice(0..0, notes);
    Ok(file)
}

/// Gives the filled rows of the sheet that the format names, or of the first; and notes.
fn rows(book: &Book<'_>, format: &Format, sink: Sink<'_>) -> Result<Vec<String>, DataError> {
    let mut peculiar = Peculiar::default();
    let mut before = 0;
    let mut sink = |row: &SheetRow| {
        at_most(book, row.at.saturating_sub(1) as usize, ROWS, "rows")?;
        if row.at <= before {
            return Err(book.damaged(&format!("row {} comes after row {before}", row.at)));
        }
        before = row.at;
        sink(row)
    };
    let workbook = match xlsx::main_part(book)? {
        Some(main) => Some(Workbook::read(book, &main)?),
        None => None,
    };
    let mut notes;
    if let Some(workbook) = workbook {
        let names: Vec<(&str, bool)> = workbook
            .sheets
            .iter()
            .map(|sheet| (sheet.name.as_str(), sheet.hidden))
            .collect();
        let (at, note) = chosen(book, &names, format.sheet.as_deref())?;
        notes = note;
        workbook.rows(book, &workbook.sheets[at], &mut peculiar, &mut sink)?;
    } else if book.names().any(|name| name == ods::CONTENT) && is_spreadsheet(book)? {
        let names = book.glance(|| ods::names(book))?;
        let names: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), false)).collect();
        let (at, note) = chosen(book, &names, format.sheet.as_deref())?;
        notes = note;
        ods::rows(book, at, &mut peculiar, &mut sink)?;
    } else {
        return Err(other(book));
    }
    notes.extend(peculiar.notes());
    Ok(notes)
}

/// The place of the named sheet, or of the first that is not hidden; what to say of the others.
fn chosen(
    book: &Book<'_>,
    sheets: &[(&str, bool)],
    named: Option<&str>,
) -> Result<(usize, Vec<String>), DataError> {
    let quoted = |names: &mut dyn Iterator<Item = &str>| {
        names
            .map(|name| format!("{name:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut names = sheets.iter().map(|(name, _)| *name);
    let failed = |reason: String, hint: String| DataError::File {
        path: book.path.to_owned(),
        reason,
        hint,
    };
    if let Some(wanted) = named {
        let at = sheets
            .iter()
            .position(|(name, _)| name.trim() == wanted.trim());
        let at = at.ok_or_else(|| {
            let near = nearest(wanted, sheets.iter().map(|(name, _)| *name));
            let hint = format!("; its sheets are {}{near}", quoted(&mut names));
            failed(format!("it has no sheet {wanted:?}"), hint)
        })?;
        return Ok((at, Vec::new()));
    }
    let first = sheets.iter().position(|(_, hidden)| !hidden).unwrap_or(0);
    let Some((name, _)) = sheets.get(first) else {
        return Err(failed("it has no sheet with cells".into(), String::new()));
    };
    let others = sheets.iter().enumerate().filter(|(at, _)| *at != first);
    let others = quoted(&mut others.map(|(_, (name, _))| *name));
    let note = format!(
        "its first sheet, {name:?}, is read, and not {others}: another one with --sheet, or `sheet` in `format`"
    );
    Ok((
        first,
        if sheets.len() > 1 {
            vec![note]
        } else {
            Vec::new()
        },
    ))
}

/// Returns whether a document of OpenDocument is a spreadsheet without a password.
fn is_spreadsheet(book: &Book<'_>) -> Result<bool, DataError> {
    let text = |name| -> Result<String, DataError> {
        let mut text = String::new();
        if let Some(mut part) = book.part(name)? {
            let read = std::io::Read::read_to_string(&mut part, &mut text);
            read.map_err(|error| book.failed(error))?;
        }
        Ok(text)
    };
    if text("META-INF/manifest.xml")?.contains("encryption-data") {
        return Err(DataError::File {
            path: book.path.to_owned(),
            reason: "it is a spreadsheet with a password".into(),
            hint: ": save it without one".into(),
        });
    }
    let kind = text("mimetype")?;
    Ok(kind.is_empty() || kind.contains("spreadsheet"))
}

/// Returns what an archive is that is no spreadsheet.
fn other(book: &Book<'_>) -> DataError {
    let has = |part: &str| book.names().any(|name| name.contains(part));
    let (what, hint) = if has("xl/workbook.bin") {
        ("a binary spreadsheet (.xlsb)", "save it as .xlsx or CSV")
    } else if has(".iwa") {
        ("a document of Numbers", "export the sheet as CSV or .xlsx")
    } else if has("word/") || has("ppt/") || has(ods::CONTENT) {
        (
            "a document without sheets",
            "copy the table into a spreadsheet and save that",
        )
    } else {
        ("an archive", "unpack it and name the table in it")
    };
    DataError::File {
        path: book.path.to_owned(),
        reason: format!("it is {what}"),
        hint: format!(": {hint}"),
    }
}

#[cfg(test)]
mod tests;
