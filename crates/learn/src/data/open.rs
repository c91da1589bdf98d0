//! Opens files of rows: CSV, CSV compressed with gzip, or Parquet, by the end of their names.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::{DataError, Format, RawFile, nearest, parquet};
use crate::file;

/// Reads a file: Parquet if its name ends with `.parquet`, otherwise CSV, compressed if the
/// name ends with `.gz`.
///
/// # Errors
/// [`DataError::File`], [`DataError::Ragged`].
pub(crate) fn open(path: PathBuf, format: &Format) -> Result<RawFile, DataError> {
    let bytes = bytes(&path)?;
    if is_parquet(&path) {
        return parquet::read(path, bytes);
    }
    let text = format.decode(&path, bytes)?;
    RawFile::of_text(path, &text, format)
}

/// The bytes of a file, decompressed if its name ends with `.gz`.
///
/// # Errors
/// [`DataError::File`].
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    let failed = |reason: String, hint: String| DataError::File {
        path: path.to_owned(),
        reason,
        hint,
    };
    let bytes =
        file::read(path, file::DATA).map_err(|error| failed(error.to_string(), neighbour(path)))?;
    let sheet = [".xlsx", ".xls", ".ods"].iter().any(|end| ends(path, end));
    if sheet || bytes.starts_with(b"PK\x03\x04") {
        return Err(failed(
            "it is a spreadsheet or an archive".into(),
            ": save the sheet as CSV".into(),
        ));
    }
    let failed = |reason| failed(reason, String::new());
    match ends(path, ".gz") {
        true => decompressed(&bytes).map_err(failed),
        false => Ok(bytes),
    }
}

/// "Did you mean …?" with a file of the same folder, for one that is not there.
fn neighbour(path: &Path) -> String {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if path.exists() {
        return String::new();
    }
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else {
        return String::new();
    };
    let there = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut there: Vec<String> = there
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    there.sort_unstable();
    nearest(&name, there.iter().map(String::as_str))
}

/// Whether a file is read as Parquet.
pub(crate) fn is_parquet(path: &Path) -> bool {
    ends(path, ".parquet")
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
