//! Rows of Parquet files, as text cells like those of CSV.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use csv::StringRecord;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

use super::{DataError, RawFile, RawRow, RowPlace, composed};

/// Reads a file that is in memory. Columns of lists, of structures and of bytes that are no text are
/// left out with a note.
///
/// # Errors
/// [`DataError::File`]: it is no Parquet file; [`DataError::TwoColumns`].
pub(super) fn read(path: PathBuf, bytes: Vec<u8>) -> Result<RawFile, DataError> {
    let table = rows(&path, bytes, Unprintable::LeavesColumnOut)?;
    RawFile::new(path, &table.0, table.1, table.2)
}

/// Reads a file as [`read`] does, but every row by itself: bytes that are no text are read as
/// [`NO_TEXT`], and their column stays.
///
/// # Errors
/// As those of [`read`].
pub(super) fn read_row_by_row(path: PathBuf, bytes: Vec<u8>) -> Result<RawFile, DataError> {
    let (mut header, mut rows, notes) = rows(&path, bytes, Unprintable::IsMarked)?;
    // A column without a name is not read: whether it holds anything is told by its rows.
    let named: Vec<bool> = header.iter().map(|name| !name.trim().is_empty()).collect();
    for row in rows.iter_mut().filter(|_| named.contains(&false)) {
        let cells = row.cells.iter().zip(&named);
        row.cells = cells
            .filter(|(_, named)| **named)
            .map(|(cell, _)| cell)
            .collect();
    }
    header.retain(|name| !name.trim().is_empty());
    RawFile::new(path, &header, rows, notes)
}

/// Stands for bytes that are no text: no number, no date, and hardly an agreed value.
const NO_TEXT: &str = "\u{FFFD}";

/// What becomes of bytes that are no text.
#[derive(Clone, Copy, PartialEq)]
enum Unprintable {
    /// The column is left out.
    LeavesColumnOut,
    /// The cell is [`NO_TEXT`].
    IsMarked,
}

/// How the values of a column are written.
#[derive(Clone, Copy)]
enum ParquetKind {
    /// As the values are.
    Value,
    /// Nanoseconds since 1970.
    Nanoseconds,
}

type ParquetRows = (Vec<String>, Vec<RawRow>, Vec<String>);

fn rows(path: &Path, bytes: Vec<u8>, unprintable: Unprintable) -> Result<ParquetRows, DataError> {
    let read = read_rows(bytes, unprintable);
    read.map_err(|reason| DataError::File {
        path: path.into(),
        reason,
        hint: String::new(),
    })
}

fn read_rows(bytes: Vec<u8>, unprintable: Unprintable) -> Result<ParquetRows, String> {
    let text = |error: ParquetError| error.to_string();
    let reader = SerializedFileReader::new(Bytes::from(bytes));
    let reader = reader.map_err(|error| format!("it is not a Parquet file ({error})"))?;
    let schema = reader.metadata().file_metadata().schema();
    let mut notes = Vec::new();
    let (mut header, mut kinds, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    for column in schema.get_fields() {
        let name = column.name().to_owned();
        match kind(column) {
            Ok(kind) => {
                header.push(name);
                kinds.push(kind);
                fields.push(Arc::clone(column));
            }
            Err(what) => notes.push(format!("the column {name:?} holds {what} and is left out")),
        }
    }
    if fields.is_empty() {
        return Err("it has no column of numbers, texts or dates".into());
    }
    let projection = Type::group_type_builder(schema.name())
        .with_fields(fields)
        .build();
    let projection = projection.map_err(text)?;
    let mut rows = Vec::new();
    // Columns of bytes that are no text, found on the way.
    let mut bytes = vec![false; header.len()];
    for (nth, row) in reader
        .get_row_iter(Some(projection))
        .map_err(text)?
        .enumerate()
    {
        let row = row.map_err(text)?;
        let mut cells = StringRecord::new();
        for (at, (_, field)) in row.get_column_iter().enumerate() {
            let cell = cell(field, kinds[at]);
            match (cell, unprintable) {
                (Some(cell), _) => cells.push_field(&cell),
                (None, Unprintable::IsMarked) => cells.push_field(NO_TEXT),
                (None, Unprintable::LeavesColumnOut) => {
                    bytes[at] = true;
                    cells.push_field("");
                }
            }
        }
        let at = RowPlace::Row(nth as u64 + 1);
        rows.push(RawRow { at, cells });
    }
    let kept = |at: &usize| !bytes[*at];
    if bytes.contains(&true) {
        for row in &mut rows {
            let cells = row.cells.iter().enumerate();
            row.cells = cells
                .filter(|(at, _)| kept(at))
                .map(|(_, cell)| cell)
                .collect();
        }
        for (_, name) in header.iter().enumerate().filter(|(at, _)| !kept(at)) {
            notes.push(format!(
                "the column {name:?} holds bytes that are no text and is left out"
            ));
        }
        let named = header.into_iter().enumerate();
        header = named
            .filter(|(at, _)| kept(at))
            .map(|(_, name)| name)
            .collect();
    }
    Ok((header, rows, notes))
}

/// How a column is read, or what it holds that cannot be.
fn kind(column: &Type) -> Result<ParquetKind, &'static str> {
    let info = column.get_basic_info();
    let list = info.has_repetition() && info.repetition() == parquet::basic::Repetition::REPEATED;
    if list
        || matches!(
            info.logical_type_ref(),
            Some(LogicalType::List | LogicalType::Map)
        )
    {
        return Err("lists");
    }
    if column.is_group() {
        return Err("structures");
    }
    match info.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS => {
            Ok(ParquetKind::Nanoseconds)
        }
        Some(LogicalType::Bson) => Err("documents"),
        _ => Ok(ParquetKind::Value),
    }
}

/// A value as a CSV file would write it; nothing where it is null, `None` for bytes that are no text.
fn cell(field: &Field, kind: ParquetKind) -> Option<String> {
    Some(match field {
        Field::Null => String::new(),
        Field::Str(text) => composed(text.trim()).into_owned(),
        Field::Bytes(bytes) => {
            let text = std::str::from_utf8(bytes.data()).ok()?;
            composed(text.trim()).into_owned()
        }
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => return None,
        // Digits in full, and no exponent.
        Field::Float(value) => value.to_string(),
        Field::Double(value) => value.to_string(),
        Field::Float16(value) => value.to_f32().to_string(),
        Field::Long(value) if matches!(kind, ParquetKind::Nanoseconds) => {
            moment(*value, 1_000_000_000)
        }
        Field::Date(days) => date(i64::from(*days)),
        Field::TimestampMillis(value) => moment(*value, 1000),
        Field::TimestampMicros(value) => moment(*value, 1_000_000),
        Field::TimeMillis(value) => time(i64::from(*value), 1000),
        Field::TimeMicros(value) => time(*value, 1_000_000),
        // Whole numbers, truth values, numbers with fixed decimals.
        other => other.to_string(),
    })
}

/// A date, from the days since 1970.
fn date(days: i64) -> String {
    // Years begin in March, so that the day of a leap year is the last; four centuries repeat.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year + 400 * era, month + 3),
        _ => (year + 400 * era + 1, month - 9),
    };
    format!("{year:04}-{month:02}-{day:02}")
}

/// A date with its time of day, from parts of a second since 1970.
fn moment(value: i64, second: i64) -> String {
    let day = 86_400 * second;
    let time = time(value.rem_euclid(day), second);
    format!("{} {time}", date(value.div_euclid(day)))
}

/// A time of day, from parts of a second since midnight.
fn time(value: i64, second: i64) -> String {
    let (seconds, part) = (value / second, value % second);
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    let text = format!("{hour:02}:{minute:02}:{:02}", seconds % 60);
    if part == 0 {
        return text;
    }
    let digits = second.ilog10() as usize;
    let part = format!("{part:0digits$}");
    format!("{text}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests;
