//! Files as they are: cells of text with the names of their columns.

use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::{DataError, Format, Place};

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

impl RawFile {
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
            renamed: false,
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
        if header.iter().all(String::is_empty) {
            return Err(DataError::File {
                path,
                reason: "it is empty".into(),
                hint: ": a table with a line of column names is expected".into(),
            });
        }
        let twice = (1..header.len()).find(|&at| header[..at].contains(&header[at]));
        if let Some(twice) = twice {
            let column = header[twice].clone();
            return Err(DataError::TwoColumns { path, column });
        }
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
                    quoted: cells.iter().any(|cell| cell.contains('\n')),
                });
            }
            let at = Place::Line(line);
            rows.push(RawRow { at, cells });
        }
        Ok(Self { path, header, rows })
    }
}
