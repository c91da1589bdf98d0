//! Rows of Parquet files, as text cells like those of CSV.

use std::path::PathBuf;

use bytes::Bytes;
use csv::StringRecord;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::{DataError, Place, RawFile, RawRow};

/// Reads a file that is in memory.
///
/// # Errors
/// [`DataError::File`]: it is no Parquet file, or has a column that is no number or text.
pub(super) fn read(path: PathBuf, bytes: Vec<u8>) -> Result<RawFile, DataError> {
    rows(bytes)
        .map_err(|reason| DataError::File {
            path: path.clone(),
            reason,
            hint: String::new(),
        })
        .map(|(header, rows)| RawFile {
            path: path.clone(),
            header,
            rows,
        })
}

fn rows(bytes: Vec<u8>) -> Result<(Vec<String>, Vec<RawRow>), String> {
    let text = |error: ParquetError| error.to_string();
    let reader = SerializedFileReader::new(Bytes::from(bytes));
    let reader = reader.map_err(|error| format!("it is not a Parquet file ({error})"))?;
    let schema = reader.metadata().file_metadata().schema();
    let columns = schema.get_fields().iter();
    let header: Vec<String> = columns.map(|column| column.name().to_owned()).collect();
    let mut rows = Vec::new();
    for (nth, row) in reader.get_row_iter(None).map_err(text)?.enumerate() {
        let row = row.map_err(text)?;
        let mut cells = StringRecord::new();
        for (name, field) in row.get_column_iter() {
            let cell = cell(field);
            cells.push_field(&cell.ok_or_else(|| {
                format!("column {name:?} holds values that are neither numbers, texts nor dates")
            })?);
        }
        let at = Place::Row(nth as u64 + 1);
        rows.push(RawRow { at, cells });
    }
    Ok((header, rows))
}

/// A value as a CSV file would write it; nothing where it is null.
fn cell(field: &Field) -> Option<String> {
    Some(match field {
        Field::Null => String::new(),
        Field::Str(text) => text.trim().to_owned(),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).ok()?.trim().to_owned(),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => return None,
        // Numbers, truth values, dates and times.
        other => other.to_string(),
    })
}
