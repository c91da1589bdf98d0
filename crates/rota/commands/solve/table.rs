//! Reads tables of numbers from CSV files; errors name file, row and column.

use std::fmt;
use std::io;
use std::path::Path;

use formatting::numbers;
use methods::Matrix;
use task::file;

/// Largest absolute number allowed: sums of products stay below the limit of the library, 1e100.
const LARGEST: f64 = 1e45;

/// Largest file in bytes. The numbers take several times as much memory.
const LARGEST_FILE: u64 = 256 << 20;

/// Errors of reading a table.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    /// A file that cannot be read.
    #[error("cannot read {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// A file without rows.
    #[error("{0} has no rows: each row is one line of numbers separated by commas")]
    Empty(String),
    /// A row with too few or too many values.
    #[error("{position}: {what}; every row must have {expected} columns, as row {first}")]
    Ragged {
        /// The first missing or excess column.
        position: CsvPosition,
        /// "missing" or "excess", of the column.
        what: &'static str,
        /// Line of the first row.
        first: u64,
        /// Number of columns of the first row.
        expected: usize,
    },
    /// A value that is not a number, or not allowed here.
    #[error("{position}: {what}")]
    Value {
        /// Position of the value.
        position: CsvPosition,
        /// Found and expected value.
        what: String,
    },
    /// A table that is not square.
    #[error("{file} has {rows} and {columns}: one row and one column per silo are needed")]
    NotSquare {
        /// The file.
        file: String,
        /// `3 rows`.
        rows: String,
        /// `4 columns`.
        columns: String,
    },
    /// A column that does not exist.
    #[error("{file} has no column \"{column}\"; its columns are {columns}")]
    NoColumn {
        /// The file.
        file: String,
        /// The requested column.
        column: String,
        /// The columns of the file.
        columns: String,
    },
}

/// A position in a file: `losses.csv, row 3, column 5`, counted from 1; a row is a line of the file.
#[derive(Debug)]
pub(crate) struct CsvPosition {
    file: String,
    row: u64,
    column: usize,
}

impl fmt::Display for CsvPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}, column {}", self.file, self.row, self.column)
    }
}

/// A table of finite numbers with at least one row and one column.
#[derive(Debug)]
pub(crate) struct NumberTable {
    file: String,
    /// The line in the file of every row.
    lines: Vec<u64>,
    rows: Vec<Vec<f64>>,
}

impl NumberTable {
    /// Reads a table without a header line.
    pub(crate) fn read(path: &Path) -> Result<Self, TableError> {
        let (file, text) = text(path)?;
        Self::numbers(file, None, records(&text))
    }

    /// Reads a table with a header line of column names.
    pub(crate) fn read_named(path: &Path) -> Result<(Vec<String>, Self), TableError> {
        let (file, text) = text(path)?;
        let mut records = records(&text);
        let Some((line, names)) = records.next() else {
            return Err(TableError::Empty(file));
        };
        let names: Vec<String> = names.iter().map(numbers::plain).collect();
        let wrong = |column: usize, what: String| {
            let file = file.clone();
            let position = CsvPosition {
                file,
                row: line,
                column: column + 1,
            };
            Err(TableError::Value { position, what })
        };
        if let Some(column) = names.iter().position(String::is_empty) {
            return wrong(column, "this column has no name".into());
        }
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return wrong(0, "the first line must be the names of the columns".into());
        }
        if let Some(column) = (0..names.len()).find(|&c| names[..c].contains(&names[c])) {
            return wrong(
                column,
                format!("another column is also named \"{}\"", names[column]),
            );
        }
        let head = Some((line, names.len()));
        Ok((names, Self::numbers(file, head, records)?))
    }

    /// `first`: line and number of columns of the header, if there is one.
    fn numbers(
        file: String,
        mut first: Option<(u64, usize)>,
        records: impl Iterator<Item = (u64, csv::StringRecord)>,
    ) -> Result<Self, TableError> {
        let (mut lines, mut rows) = (Vec::new(), Vec::new());
        for (line, record) in records {
            let position = |column: usize| CsvPosition {
                file: file.clone(),
                row: line,
                column: column + 1,
            };
            let mut row = Vec::with_capacity(record.len());
            for (column, text) in record.iter().enumerate() {
                let value = number(text).map_err(|mut what| {
                    if first.is_none() && text.parse::<f64>().is_err() {
                        what += "; a header line is not allowed";
                    }
                    let position = position(column);
                    TableError::Value { position, what }
                })?;
                row.push(value);
            }
            let (first, expected) = *first.get_or_insert((line, row.len()));
            if row.len() != expected {
                let short = row.len() < expected;
                return Err(TableError::Ragged {
                    position: position(row.len().min(expected)),
                    what: if short {
                        "a value is missing"
                    } else {
                        "this value is one too many"
                    },
                    first,
                    expected,
                });
            }
            lines.push(line);
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(TableError::Empty(file));
        }
        Ok(Self { file, lines, rows })
    }

    /// The name of the file for messages.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// The numbers.
    pub(crate) fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.rows[0].len()
    }

    /// `3 rows`.
    pub(crate) fn height(&self) -> String {
        numbers::plural(self.rows.len(), "row")
    }

    /// `4 columns`.
    pub(crate) fn width(&self) -> String {
        numbers::plural(self.columns(), "column")
    }

    /// Refuses a table that is not square.
    pub(crate) fn square(self) -> Result<Self, TableError> {
        if self.rows.len() == self.columns() {
            Ok(self)
        } else {
            Err(TableError::NotSquare {
                rows: self.height(),
                columns: self.width(),
                file: self.file,
            })
        }
    }

    /// The numbers as a matrix.
    pub(crate) fn matrix(&self) -> Matrix {
        Matrix::from_rows(&self.rows).expect("all rows are of one length")
    }

    /// An error about the value in that row and column, counted from 0.
    pub(crate) fn wrong(&self, row: usize, column: usize, what: impl Into<String>) -> TableError {
        let position = CsvPosition {
            file: self.file.clone(),
            row: self.lines[row],
            column: column + 1,
        };
        let what = what.into();
        TableError::Value { position, what }
    }

    /// The line in the file of a row, counted from 0.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }
}

/// The name of a file for messages, and its text; `-` is standard input.
fn text(path: &Path) -> Result<(String, String), TableError> {
    let standard = path == Path::new("-");
    let file = if standard {
        "standard input".to_owned()
    } else {
        numbers::plain(&path.to_string_lossy())
    };
    let text = if standard {
        file::read_text_from(io::stdin().lock(), LARGEST_FILE)
    } else {
        file::read_text(path, LARGEST_FILE)
    };
    match text {
        Ok(text) => Ok((file, text)),
        Err(reason) => Err(TableError::Unreadable { file, reason }),
    }
}

/// The records of a text with their line numbers; empty lines are skipped.
fn records(text: &str) -> impl Iterator<Item = (u64, csv::StringRecord)> {
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    reader.into_records().map(|record| {
        let record = record.expect("UTF-8 in memory, and rows of any length");
        let line = record.position().map_or(0, |start| {
            // A record's position is where the empty lines before it begin.
            let ahead = text.as_bytes()[start.byte() as usize..].iter();
            let empty = ahead.take_while(|byte| matches!(byte, b'\r' | b'\n'));
            start.line() + empty.filter(|byte| **byte == b'\n').count() as u64
        });
        (line, record)
    })
}

/// Parses a finite number, or describes what was found instead.
fn number(text: &str) -> Result<f64, String> {
    if text.is_empty() {
        return Err("a number is missing".to_owned());
    }
    let shown = numbers::short(text, 24);
    let hint = if text.contains([';', '\t', ' ']) {
        ": separate numbers by commas"
    } else {
        ""
    };
    match text.parse::<f64>() {
        Err(_) => Err(format!("\"{shown}\" is not a number{hint}")),
        Ok(value) if !value.is_finite() => Err(format!("{shown} is not a finite number")),
        Ok(value) if value.abs() > LARGEST => Err(format!("{shown} is beyond {LARGEST:e}")),
        Ok(value) => Ok(value),
    }
}
