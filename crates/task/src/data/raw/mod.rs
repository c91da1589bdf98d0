//! Files as they are: cells of text with the names of their columns.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::{DataError, Format, RowPlace};
use crate::counted::verb;

mod cell;
mod end;
mod gather;
mod lexer;
mod lines;
mod origin;
mod rows;
mod shape;
mod window;

use lexer::{OpenQuote, Quote};

pub(crate) use cell::composed;
pub(super) use cell::is_blank;
pub(super) use gather::Gathering;
pub use gather::Wanted;
pub(super) use lexer::CsvRecord;
pub(super) use origin::Origin;
pub use rows::{RawRow, RawRows};
pub(super) use shape::HEAD;
pub use shape::separator;
pub(crate) use shape::tidied;
pub(super) use window::TextWindow;

/// One file.
pub struct RawFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Names of the columns.
    pub header: Vec<String>,
    /// Rows of the file below the header.
    pub rows: RawRows,
    /// Remarks on text that is left out, or read otherwise than it stands in the file; sentences without a full
    /// stop.
    pub notes: Vec<String>,
    /// Columns that the file has and that are left out, each with what it holds.
    pub left_out: Vec<(String, String)>,
    /// Faults of rows that were put aside, where rows are read one by one.
    pub unreadable: Vec<DataError>,
}

impl RawFile {
    /// A file with these columns, the names of which are tidied.
    ///
    /// # Errors
    /// [`DataError::File`]: no column; [`DataError::TwoColumns`].
    pub fn new(
        path: PathBuf,
        names: &[String],
        rows: RawRows,
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
            left_out: Vec::new(),
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
            let cell = |row: RawRow<'_>| row.cells.get(*at).unwrap_or_default().is_empty();
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
        let kept = (0..self.header.len()).map(|at| !left.contains(&at));
        self.keep_columns(&kept.collect::<Vec<_>>());
    }

    /// Leaves out the columns that are not `kept`.
    fn keep_columns(&mut self, kept: &[bool]) {
        self.rows.keep_columns(kept);
        let mut kept = kept.iter();
        self.header.retain(|_| kept.next() != Some(&false));
    }

    /// Leaves the labels of the rows out, which pandas, R and others write before the first column, or with its
    /// index behind the last: a first column without a name, or one with the name that such a column is given
    /// when it is read again, and whole numbers in it.
    pub(super) fn leave_row_labels_out(&mut self) {
        let last = self.header.len().saturating_sub(1);
        if last == 0 {
            return;
        }
        let whole = |at: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.cells.get(at));
            cells.all(|cell| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let labels = |at: &usize| {
            let name = self.header[*at].as_str();
            (*at == 0 && name.is_empty()) || (LABELS.contains(&name) && whole(*at))
        };
        let Some(at) = [0, last].into_iter().find(labels) else {
            return;
        };
        let name = self.header[at].clone();
        self.notes.push(match name.as_str() {
            "" => "the first column has no name and is left out: it has the labels of the rows, as pandas and R \
                   write them; if it is to be read, give it a name"
                .into(),
            name => format!(
                "the column {name:?} is left out: it has the numbers of the rows, as pandas and R write them; if it \
                 is to be read, give it another name"
            ),
        });
        self.left_out.push((name, "the labels of the rows".into()));
        let kept = (0..=last).map(|place| place != at);
        self.keep_columns(&kept.collect::<Vec<_>>());
    }

    /// Returns whether the file has a column, be it one that is left out.
    pub fn has(&self, column: &str) -> bool {
        let left_out = self.left_out.iter().map(|(name, _)| name);
        self.header
            .iter()
            .chain(left_out)
            .any(|name| name == column)
    }

    /// The position of a column.
    ///
    /// # Errors
    /// [`DataError::NoColumn`], [`DataError::Unread`].
    pub fn place(&self, column: &str) -> Result<usize, DataError> {
        // Names of columns are composed where they are read.
        let column = &*composed(column);
        if let Some((_, what)) = self.left_out.iter().find(|(name, _)| name == column) {
            return Err(DataError::Unread {
                path: self.path.clone(),
                column: column.to_owned(),
                what: what.clone(),
            });
        }
        let found = self.header.iter().position(|name| name == column);
        found.ok_or_else(|| DataError::NoColumn {
            path: self.path.clone(),
            column: column.to_owned(),
            columns: self.header.clone(),
            renamed: false,
        })
    }

    /// Writes its numbers as another format does, and every missing value as an empty cell.
    ///
    /// # Errors
    /// [`DataError::File`]: more text than can be told apart.
    pub fn rewritten(&mut self, from: &Format, to: &Format) -> Result<(), DataError> {
        if from.writes_as(to) {
            return Ok(());
        }
        self.rows = self.rows.rewritten(&self.path, |text| {
            if from.is_missing(text) {
                return Cow::Borrowed(if to.is_missing(text) { text } else { "" });
            }
            match from.pointed(text) {
                Some(plain) => plain.replacen('.', &to.decimal.to_string(), 1).into(),
                None => Cow::Borrowed(text),
            }
        })?;
        Ok(())
    }

    /// The rows of CSV text.
    ///
    /// # Errors
    /// [`DataError::OpenQuote`], [`DataError::Ragged`], [`DataError::TwoColumns`]; an empty file.
    pub fn of_text(path: PathBuf, text: &str, format: &Format) -> Result<Self, DataError> {
        Self::of_window(path, TextWindow::whole(text), format, None)
    }
}

/// Names of columns with the labels of rows: of pandas, whose index was written and read again, of pandas in Parquet,
/// of readr and of R.
const LABELS: [&str; 5] = [
    "Unnamed: 0",
    "Unnamed: 0.1",
    "__index_level_0__",
    "...1",
    "X.1",
];

/// A quotation mark without a proper end, in a file.
fn open_quote(path: &Path, open: OpenQuote) -> DataError {
    DataError::OpenQuote {
        path: path.into(),
        line: open.line,
        cell: open.cell,
        what: match open.why {
            Quote::Open => "is never closed".into(),
            Quote::More => "is followed by text where it is closed".into(),
        },
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

/// Returns true if a cell over several lines holds a line that looks like a row, as it does where a mark is
/// forgotten and the next one is many lines below.
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
