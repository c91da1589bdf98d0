//! Files as they are: cells of text with the names of their columns.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::{DataError, Format, RowPlace};
use crate::counted::verb;

mod cell;
mod end;
mod lexer;
mod lines;
mod shape;

use lexer::{CsvRecord, LONG, Lexer, OpenQuote, Quote};

pub(crate) use cell::composed;
pub use shape::separator;
pub(crate) use shape::tidied;

/// One file.
pub struct RawFile {
    /// Where the file is.
    pub path: PathBuf,
    /// Names of the columns.
    pub header: Vec<String>,
    /// Rows of the file below the header.
    pub rows: Vec<RawRow>,
    /// What is read otherwise than it stands in the file, or left out; sentences without a full stop.
    pub notes: Vec<String>,
    /// What is wrong with rows that were put aside, where rows are read one by one.
    pub unreadable: Vec<DataError>,
}

/// One row, with as many cells as there are columns.
pub struct RawRow {
    /// Where the row stands.
    pub at: RowPlace,
    /// Cells of the row, in the order of the header.
    pub cells: StringRecord,
}

impl RawFile {
    /// A file with these columns, the names of which are tidied.
    ///
    /// # Errors
    /// [`DataError::File`]: no column; [`DataError::TwoColumns`].
    pub fn new(
        path: PathBuf,
        names: &[String],
        rows: Vec<RawRow>,
        mut notes: Vec<String>,
    ) -> Result<Self, DataError> {
        let (header, note) = tidied(names);
        notes.extend(note);
        if header.iter().all(String::is_empty) {
            return Err(DataError::File {
                path,
                reason: "it is empty".into(),
                hint: ": a table with a line of column names is expected".into(),
            });
        }
        let twice = (1..header.len())
            .find(|&at| !header[at].is_empty() && header[..at].contains(&header[at]));
        if let Some(twice) = twice {
            let column = header[twice].clone();
            return Err(DataError::TwoColumns { path, column });
        }
        let mut file = Self {
            path,
            header,
            rows,
            notes,
            unreadable: Vec::new(),
        };
        file.leave_empty_columns_out();
        let nameless = file.header.iter().filter(|name| name.is_empty()).count();
        if nameless > 1 {
            return Err(DataError::TwoColumns {
                path: file.path,
                column: String::new(),
            });
        }
        Ok(file)
    }

    /// Leaves columns out that have neither a name nor a value.
    fn leave_empty_columns_out(&mut self) {
        let empty = |at: &usize| {
            let cell = |row: &RawRow| row.cells.get(*at).unwrap_or_default().is_empty();
            self.header[*at].is_empty() && self.rows.iter().all(cell)
        };
        let left: Vec<usize> = (0..self.header.len()).filter(empty).collect();
        if left.is_empty() {
            return;
        }
        let last = left.len() == self.header.len() - left[0];
        self.notes.push(format!(
            "{} without a name and without a value {} left out{}",
            match left.len() {
                1 => "a column".to_owned(),
                several => format!("{several} columns"),
            },
            verb(left.len(), "are"),
            if last {
                ", at the end of every line"
            } else {
                ""
            }
        ));
        let keep = |at: &usize| !left.contains(at);
        for row in &mut self.rows {
            let cells = row.cells.iter().enumerate();
            row.cells = cells
                .filter(|(at, _)| keep(at))
                .map(|(_, cell)| cell)
                .collect();
        }
        let header = std::mem::take(&mut self.header).into_iter().enumerate();
        self.header = header
            .filter(|(at, _)| keep(at))
            .map(|(_, name)| name)
            .collect();
    }

    /// The position of a column.
    ///
    /// # Errors
    /// [`DataError::NoColumn`].
    pub fn place(&self, column: &str) -> Result<usize, DataError> {
        let found = self.header.iter().position(|name| name == column);
        found.ok_or_else(|| DataError::NoColumn {
            path: self.path.clone(),
            column: column.to_owned(),
            columns: self.header.clone(),
            renamed: false,
        })
    }

    /// Writes its numbers as another format does, and every missing value as an empty cell.
    pub fn rewritten(&mut self, from: &Format, to: &Format) {
        if from.writes_as(to) {
            return;
        }
        let cell = |text: &str| {
            if from.is_missing(text) {
                let text = if to.is_missing(text) { text } else { "" };
                return text.to_owned();
            }
            match from.pointed(text) {
                Some(plain) => plain.replacen('.', &to.decimal.to_string(), 1),
                None => text.to_owned(),
            }
        };
        for row in &mut self.rows {
            row.cells = row.cells.iter().map(cell).collect();
        }
    }

    /// The rows of CSV text.
    ///
    /// # Errors
    /// [`DataError::OpenQuote`], [`DataError::Ragged`], [`DataError::TwoColumns`]; an empty file.
    pub fn of_text(path: PathBuf, text: &str, format: &Format) -> Result<Self, DataError> {
        let mut format = format.clone();
        let mut notes = Vec::new();
        let given = separator(text);
        if let Some(mark) = given {
            if mark != format.delimiter {
                notes.push(format!(
                    "cells are separated by {mark:?}, as its first line says"
                ));
            }
            format.delimiter = mark;
        }
        let mut lexer = Lexer::new(text, format.delimiter);
        if given.is_some() {
            lexer.skip_line();
        }
        let records: Result<Vec<CsvRecord>, _> = lexer.collect();
        let records = records.map_err(|open| open_quote(&path, open))?;
        let named = format.columns.is_none();
        let (records, more) = shape::trimmed(records, named, text);
        notes.extend(more);
        let mut records = records.into_iter();
        let names = names(&mut records, text, &format);
        let width = names.len();
        // Columns without a name behind the last with one need no cells.
        let nameless = names
            .iter()
            .rev()
            .take_while(|name| name.trim().is_empty())
            .count();
        let least = width - nameless;
        let mut rows = Vec::new();
        let mut cut = 0;
        for record in records {
            let at = RowPlace::Line(record.line);
            let cells = cells(record, least..=width, format.delimiter, &path, &mut cut)?;
            rows.push(RawRow { at, cells });
        }
        if cut > 0 {
            notes.push(format!(
                "{cut} of {} rows {} with separators and nothing between them, which are left out",
                rows.len(),
                verb(cut, "end")
            ));
        }
        let mut file = Self::new(path, &names, rows, notes)?;
        if !text.ends_with(['\n', '\r']) {
            file.notes.extend(end::broken_off(&file));
        }
        Ok(file)
    }
}

/// A quotation mark without a proper end, in a file.
fn open_quote(path: &Path, open: OpenQuote) -> DataError {
    DataError::OpenQuote {
        path: path.into(),
        line: open.line,
        cell: open.cell,
        what: match open.why {
            Quote::Open => "is never closed".into(),
            Quote::Long => format!("is not closed within {LONG} lines"),
            Quote::More => "is followed by text where it is closed".into(),
        },
    }
}

/// The names of columns: those that are given, numbers where there are none, or else the first record,
/// which is taken.
fn names(records: &mut std::vec::IntoIter<CsvRecord>, text: &str, format: &Format) -> Vec<String> {
    match &format.columns {
        Some(names) if !names.is_empty() => names.clone(),
        Some(_) => {
            let first = records.as_slice().first();
            let first = first.map_or(0, |record| record.cells.len());
            (1..=first).map(|at| at.to_string()).collect()
        }
        // `Lexer` has found it before, so it is whole.
        None => records
            .next()
            .map(|record| shape::written_names(text, &record, format))
            .unwrap_or_default(),
    }
}

/// The cells of a record, one for every column. There are at least the first number of `widths` and at most
/// the second; `cut` counts records with more, which hold nothing.
///
/// # Errors
/// [`DataError`]: another number of cells, a cell that takes in rows.
fn cells(
    record: CsvRecord,
    widths: RangeInclusive<usize>,
    delimiter: char,
    path: &Path,
    cut: &mut usize,
) -> Result<StringRecord, DataError> {
    let width = *widths.end();
    if let Some(line) = record.long
        && takes_rows_in(&record, width, delimiter)
    {
        return Err(DataError::OpenQuote {
            path: path.into(),
            line,
            cell: 1 + record
                .cells
                .iter()
                .position(|cell| cell.contains(['\n', '\r']))
                .unwrap_or(0),
            what: "takes in lines that look like rows".into(),
        });
    }
    match record.cells.len() {
        // Separators behind the last cell, with nothing between them.
        count if count > width && record.cells.iter().skip(width).all(str::is_empty) => {
            *cut += 1;
            Ok(record.cells.iter().take(width).collect())
        }
        count if count == width => Ok(record.cells),
        count if widths.contains(&count) => {
            let none = std::iter::repeat_n("", width - count);
            Ok(record.cells.iter().chain(none).collect())
        }
        got => Err(DataError::Ragged {
            path: path.into(),
            line: record.line,
            got,
            expected: width,
            quoted: record.long,
        }),
    }
}

/// Whether a cell over several lines holds a line that looks like a row.
fn takes_rows_in(record: &CsvRecord, width: usize, delimiter: char) -> bool {
    let like_a_row = |line: &str| {
        let cells: Vec<&str> = line.split(delimiter).collect();
        // After a comma of a sentence there is a space.
        let sentence = cells
            .iter()
            .skip(1)
            .any(|cell| cell.starts_with(' ') || cell.is_empty());
        width > 1 && cells.len() == width && !sentence
    };
    let mut long = record
        .cells
        .iter()
        .filter(|cell| cell.contains(['\n', '\r']));
    long.any(|cell| cell.split(['\n', '\r']).skip(1).any(like_a_row))
}

#[cfg(test)]
mod tests;
