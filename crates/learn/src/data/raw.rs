//! Files as they are: cells of text with the names of their columns, from CSV (also compressed with
//! gzip) or Parquet.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::{DataError, Format};
use crate::file;

/// One file.
pub(crate) struct RawFile {
    pub(crate) path: PathBuf,
    /// Names of the columns.
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<RawRow>,
}

/// One row, with as many cells as there are columns.
pub(crate) struct RawRow {
    pub(crate) at: Place,
    pub(crate) cells: StringRecord,
}

/// Where a row is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The line of a text file, from 1.
    Line(u64),
    /// The row of a table, from 1.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "line {line}"),
            Self::Row(row) => write!(formatter, "row {row}"),
        }
    }
}

impl RawFile {
    /// Reads a file: Parquet if its name ends with `.parquet`, otherwise CSV, compressed if the
    /// name ends with `.gz`.
    ///
    /// # Errors
    /// [`DataError::File`], [`DataError::Ragged`].
    pub(crate) fn read(path: PathBuf, format: &Format) -> Result<Self, DataError> {
        let bytes = Self::bytes(&path)?;
        if ends(&path, ".parquet") {
            return super::parquet::read(path, bytes);
        }
        let text = format.decode(&path, bytes)?;
        Self::of_text(path, &text, format)
    }

    /// The bytes of a file, decompressed if its name ends with `.gz`.
    ///
    /// # Errors
    /// [`DataError::File`].
    pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, DataError> {
        let failed = |reason: String| DataError::File {
            path: path.to_owned(),
            reason,
            hint: String::new(),
        };
        let bytes = file::read(path, file::DATA).map_err(|error| failed(error.to_string()))?;
        match ends(path, ".gz") {
            true => decompressed(&bytes).map_err(failed),
            false => Ok(bytes),
        }
    }

    /// The position of a column.
    ///
    /// # Errors
    /// [`DataError::NoColumn`].
    pub(crate) fn place(&self, column: &str) -> Result<usize, DataError> {
        let found = self.header.iter().position(|name| name == column);
        found.ok_or_else(|| DataError::NoColumn {
            path: self.path.clone(),
            column: column.to_owned(),
            columns: self.header.clone(),
        })
    }

    /// The rows of CSV text.
    pub(crate) fn of_text(path: PathBuf, text: &str, format: &Format) -> Result<Self, DataError> {
        let unreadable = |path: &Path, error: csv::Error| DataError::File {
            path: path.to_owned(),
            reason: error.to_string(),
            hint: String::new(),
        };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(format.columns.is_none())
            .delimiter(format.delimiter as u8)
            .trim(csv::Trim::All)
            .flexible(true)
            .from_reader(text.as_bytes());
        let header: Vec<String> = match &format.columns {
            Some(names) if !names.is_empty() => names.clone(),
            given => {
                let first = reader.headers().map_err(|error| unreadable(&path, error))?;
                match given {
                    None => first.iter().map(String::from).collect(),
                    // Without column names, `headers` still looks at the first row.
                    Some(_) => (1..=first.len()).map(|at| at.to_string()).collect(),
                }
            }
        };
        let mut rows = Vec::new();
        for record in reader.records() {
            let cells = record.map_err(|error| unreadable(&path, error))?;
            let line = cells.position().map_or(0, |start| {
                // A record's position is where the empty lines before it begin.
                let ahead = text.as_bytes()[start.byte() as usize..].iter();
                let empty = ahead.take_while(|byte| matches!(byte, b'\r' | b'\n'));
                start.line() + empty.filter(|byte| **byte == b'\n').count() as u64
            });
            if cells.len() != header.len() {
                let (got, expected) = (cells.len(), header.len());
                return Err(DataError::Ragged {
                    path,
                    line,
                    got,
                    expected,
                });
            }
            let at = Place::Line(line);
            rows.push(RawRow { at, cells });
        }
        Ok(Self { path, header, rows })
    }
}

/// Whether the name of the file ends so, in any case.
fn ends(path: &Path, end: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.to_ascii_lowercase().ends_with(end)
}

/// The content of a gzip file, no more than any file may have.
fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let reader = flate2::read::MultiGzDecoder::new(bytes);
    let read = reader.take(file::DATA + 1).read_to_end(&mut content);
    read.map_err(|error| format!("it is not a gzip file: {error}"))?;
    match content.len() as u64 > file::DATA {
        true => Err(format!(
            "it has more than {} MiB when decompressed, the most that such a file may have",
            file::DATA >> 20
        )),
        false => Ok(content),
    }
}
