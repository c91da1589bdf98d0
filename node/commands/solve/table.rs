//! Files of numbers: comma-separated, one row a line. What is not is refused with its place.

use std::fmt;
use std::io;
use std::path::Path;

use rota::learn::file;
use rota::methods::Matrix;
use rota::report::numbers;

/// Largest absolute number that is taken: products of two, added up over a row of any length, stay
/// below what the library takes (1e100).
const LARGEST: f64 = 1e45;

/// Most bytes of a file. Its numbers take several times as much memory.
const LARGEST_FILE: u64 = 256 << 20;

/// Why a file is not the table of numbers it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    /// It cannot be read.
    #[error("cannot read {file}: {reason}")]
    Unreadable {
        /// Its name.
        file: String,
        /// What the system says.
        reason: io::Error,
    },
    /// There is nothing in it.
    #[error("{0} has no rows: one line of numbers, separated by commas, is a row")]
    Empty(String),
    /// A value is missing, or there is one too many.
    #[error(
        "{place}: {what}; every row must have as many columns as row {first}, which has {expected}"
    )]
    Ragged {
        /// The first column that is missing, or too many.
        place: Place,
        /// Which of the two.
        what: &'static str,
        /// The line of the first row.
        first: u64,
        /// Its columns.
        expected: usize,
    },
    /// A value is no number, or not one that can be here.
    #[error("{place}: {what}")]
    Value {
        /// Where.
        place: Place,
        /// What is there and what should be.
        what: String,
    },
    /// As many rows as columns are needed.
    #[error("{file} has {rows} and {columns}: one row and one column per silo are needed")]
    NotSquare {
        /// Its name.
        file: String,
        /// `3 rows`.
        rows: String,
        /// `4 columns`.
        columns: String,
    },
    /// A column is asked for that is not there.
    #[error("{file} has no column \"{column}\"; its columns are {columns}")]
    NoColumn {
        /// Its name.
        file: String,
        /// What was asked for.
        column: String,
        /// What is there.
        columns: String,
    },
}

/// A place in a file: `losses.csv, row 3, column 5`, counted from 1; a row is a line of the file.
#[derive(Debug)]
pub(crate) struct Place {
    file: String,
    row: u64,
    column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}, column {}", self.file, self.row, self.column)
    }
}

/// At least one row, at least one column, finite numbers.
#[derive(Debug)]
pub(crate) struct Table {
    file: String,
    /// The line of every row in the file.
    lines: Vec<u64>,
    rows: Vec<Vec<f64>>,
}

impl Table {
    /// Numbers alone.
    pub(crate) fn read(path: &Path) -> Result<Self, TableError> {
        let (file, text) = text(path)?;
        Self::numbers(file, None, records(&text))
    }

    /// Column names, then numbers.
    pub(crate) fn read_named(path: &Path) -> Result<(Vec<String>, Self), TableError> {
        let (file, text) = text(path)?;
        let mut records = records(&text);
        let Some((line, names)) = records.next() else {
            return Err(TableError::Empty(file));
        };
        let names: Vec<String> = names.iter().map(numbers::plain).collect();
        let wrong = |column: usize, what: String| {
            let file = file.clone();
            let place = Place {
                file,
                row: line,
                column: column + 1,
            };
            Err(TableError::Value { place, what })
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
                format!("another column is called \"{}\" as well", names[column]),
            );
        }
        let head = Some((line, names.len()));
        Ok((names, Self::numbers(file, head, records)?))
    }

    /// `first`: the line and the columns of the header, if there is one.
    fn numbers(
        file: String,
        mut first: Option<(u64, usize)>,
        records: impl Iterator<Item = (u64, csv::StringRecord)>,
    ) -> Result<Self, TableError> {
        let (mut lines, mut rows) = (Vec::new(), Vec::new());
        for (line, record) in records {
            let place = |column: usize| Place {
                file: file.clone(),
                row: line,
                column: column + 1,
            };
            let mut row = Vec::with_capacity(record.len());
            for (column, text) in record.iter().enumerate() {
                let value = number(text).map_err(|mut what| {
                    if first.is_none() && text.parse::<f64>().is_err() {
                        what += "; there must be no header line";
                    }
                    let place = place(column);
                    TableError::Value { place, what }
                })?;
                row.push(value);
            }
            let (first, expected) = *first.get_or_insert((line, row.len()));
            if row.len() != expected {
                let short = row.len() < expected;
                return Err(TableError::Ragged {
                    place: place(row.len().min(expected)),
                    what: if short {
                        "there is nothing here"
                    } else {
                        "this is one too many"
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

    /// The name of the file, for people.
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

    /// Refuses anything but as many rows as columns.
    pub(crate) fn square(self) -> Result<Self, TableError> {
        match self.rows.len() == self.columns() {
            true => Ok(self),
            false => Err(TableError::NotSquare {
                rows: self.height(),
                columns: self.width(),
                file: self.file,
            }),
        }
    }

    /// The numbers as a matrix.
    pub(crate) fn matrix(&self) -> Matrix {
        Matrix::from_rows(&self.rows).expect("all rows are of one length")
    }

    /// What is wrong with the value in that row and column, counted from 0.
    pub(crate) fn wrong(&self, row: usize, column: usize, what: impl Into<String>) -> TableError {
        let place = Place {
            file: self.file.clone(),
            row: self.lines[row],
            column: column + 1,
        };
        let what = what.into();
        TableError::Value { place, what }
    }

    /// The line of a row, counted from 0, in the file.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }
}

/// The file's name for people, and what is in it; `-` is standard input.
fn text(path: &Path) -> Result<(String, String), TableError> {
    let standard = path == Path::new("-");
    let file = match standard {
        true => "standard input".to_owned(),
        false => numbers::plain(&path.to_string_lossy()),
    };
    let text = match standard {
        true => file::read_text_from(io::stdin().lock(), LARGEST_FILE),
        false => file::read_text(path, LARGEST_FILE),
    };
    match text {
        Ok(text) => Ok((file, text)),
        Err(reason) => Err(TableError::Unreadable { file, reason }),
    }
}

/// The records of a text with the lines they stand on; empty lines are none.
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

/// A finite number, or what is there instead.
fn number(text: &str) -> Result<f64, String> {
    if text.is_empty() {
        return Err("a number is missing".to_owned());
    }
    let shown = numbers::short(text, 24);
    let hint = match text.contains([';', '\t', ' ']) {
        true => ": separate numbers by commas",
        false => "",
    };
    match text.parse::<f64>() {
        Err(_) => Err(format!("\"{shown}\" is not a number{hint}")),
        Ok(value) if !value.is_finite() => Err(format!("{shown} is not a finite number")),
        Ok(value) if value.abs() > LARGEST => Err(format!("{shown} is beyond {LARGEST:e}")),
        Ok(value) => Ok(value),
    }
}
