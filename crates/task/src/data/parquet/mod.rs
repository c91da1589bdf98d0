//! Rows of Parquet files, as text cells like those of CSV.

mod bounds;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use csv::StringRecord;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

use super::date::{day_text, moment_text, time_text};
use super::{DataError, RawFile, RawRows, composed};
use bounds::{PageBudget, check_pages, most};

/// Reads a file that is in memory. Columns of lists, of structures and of bytes that are no text are
/// left out with a note.
///
/// # Errors
/// [`DataError::File`]: it is no Parquet file; [`DataError::TwoColumns`].
pub(super) fn read(path: PathBuf, bytes: Vec<u8>) -> Result<RawFile, DataError> {
    let table = rows(&path, bytes, Unprintable::LeavesColumnOut)?;
    let mut file = RawFile::new(path, &table.header, table.rows, table.notes)?;
    file.left_out = table.left_out;
    file.leave_row_labels_out();
    Ok(file)
}

/// Reads a file as [`read`] does, but every row by itself: bytes that are no text are read as
/// [`NO_TEXT`], and their column stays.
///
/// # Errors
/// As those of [`read`].
pub(super) fn read_row_by_row(path: PathBuf, bytes: Vec<u8>) -> Result<RawFile, DataError> {
    let mut table = rows(&path, bytes, Unprintable::IsMarked)?;
    // A column without a name is not read: whether it holds anything is told by its rows.
    let named = table.header.iter().map(|name| !name.trim().is_empty());
    table.rows.keep_columns(&named.collect::<Vec<_>>());
    table.header.retain(|name| !name.trim().is_empty());
    RawFile::new(path, &table.header, table.rows, table.notes)
}

/// Stands for bytes that are no text: no number, no date, and hardly an agreed value.
const NO_TEXT: &str = "\u{FFFD}";

/// Treatment of bytes that are no text.
#[derive(Clone, Copy, PartialEq)]
enum Unprintable {
    /// The column is left out.
    LeavesColumnOut,
    /// The cell is [`NO_TEXT`].
    IsMarked,
}

/// Form of the values of a column.
#[derive(Clone, Copy)]
enum ParquetKind {
    /// As the values are.
    Value,
    /// Nanoseconds since 1970.
    Nanoseconds,
}

/// The columns that are read, their rows, and what is said of the others.
struct ParquetTable {
    header: Vec<String>,
    rows: RawRows,
    notes: Vec<String>,
    left_out: Vec<(String, String)>,
}

impl ParquetTable {
    /// Leaves a column out, and says so.
    fn leave_out(&mut self, name: &str, what: &str) {
        self.notes
            .push(format!("the column {name:?} holds {what} and is left out"));
        self.left_out.push((name.to_owned(), what.to_owned()));
    }
}

fn rows(path: &Path, bytes: Vec<u8>, unprintable: Unprintable) -> Result<ParquetTable, DataError> {
    let most = most(bytes.len());
    rows_within(path, bytes, unprintable, most)
}

/// Reads the rows, which may take at most `most` bytes in memory.
fn rows_within(
    path: &Path,
    bytes: Vec<u8>,
    unprintable: Unprintable,
    most: u64,
) -> Result<ParquetTable, DataError> {
    let failed = |reason: String| DataError::File {
        path: path.into(),
        reason,
        hint: String::new(),
    };
    let text = |error: ParquetError| failed(error.to_string());
    let all = Bytes::from(bytes);
    let reader = SerializedFileReader::new(all.clone());
    let reader = reader.map_err(|error| failed(format!("it is not a Parquet file ({error})")))?;
    let schema = reader.metadata().file_metadata().schema();
    let mut table = ParquetTable {
        header: Vec::new(),
        rows: RawRows::default(),
        notes: Vec::new(),
        left_out: Vec::new(),
    };
    let (mut kinds, mut fields) = (Vec::new(), Vec::new());
    for column in schema.get_fields() {
        match kind(column) {
            Ok(kind) => {
                table.header.push(column.name().to_owned());
                kinds.push(kind);
                fields.push(Arc::clone(column));
            }
            Err(what) => table.leave_out(column.name(), what),
        }
    }
    if fields.is_empty() {
        return Err(failed("it has no column of numbers, texts or dates".into()));
    }
    let is_read = |name: &str| table.header.iter().any(|read| read == name);
    check_pages(&all, reader.metadata(), is_read, most).map_err(failed)?;
    let mut budget = PageBudget::new(most);
    let projection = Type::group_type_builder(schema.name())
        .with_fields(fields)
        .build();
    let projection = projection.map_err(text)?;
    table.rows = RawRows::new(&vec![true; table.header.len()], false);
    // Columns of bytes that are no text, found on the way.
    let mut kept = vec![true; table.header.len()];
    let rows = reader.get_row_iter(Some(projection)).map_err(text)?;
    for (nth, row) in rows.enumerate() {
        let row = row.map_err(text)?;
        let mut cells = StringRecord::new();
        for (at, (_, field)) in row.get_column_iter().enumerate() {
            let cell = cell(field, kinds[at]);
            match (cell, unprintable) {
                (Some(cell), _) => cells.push_field(&cell),
                (None, Unprintable::IsMarked) => cells.push_field(NO_TEXT),
                (None, Unprintable::LeavesColumnOut) => {
                    kept[at] = false;
                    cells.push_field("");
                }
            }
        }
        let taken = budget.take(cells.len(), cells.as_slice().len());
        taken.map_err(failed)?;
        table.rows.push(path, nth as u64 + 1, cells.iter())?;
    }
    if kept.contains(&false) {
        table.rows.keep_columns(&kept);
        let header = std::mem::take(&mut table.header);
        for (name, kept) in header.into_iter().zip(kept) {
            match kept {
                true => table.header.push(name),
                false => table.leave_out(&name, "bytes that are no text"),
            }
        }
    }
    Ok(table)
}

/// Returns how a column is read, or what it holds that cannot be.
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
            moment_text(*value, 1_000_000_000)
        }
        Field::Date(days) => day_text(i64::from(*days)),
        Field::TimestampMillis(value) => moment_text(*value, 1000),
        Field::TimestampMicros(value) => moment_text(*value, 1_000_000),
        Field::TimeMillis(value) => time_text(i64::from(*value), 1000),
        Field::TimeMicros(value) => time_text(*value, 1_000_000),
        // Whole numbers, truth values, numbers with fixed decimals.
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests;
