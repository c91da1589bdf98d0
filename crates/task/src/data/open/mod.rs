//! Opens files of rows: CSV or Parquet, compressed with gzip or not, by their first bytes.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

use super::{DataError, Format, RawFile, Reading, nearest, parquet};
use crate::file;

/// What a file holds.
pub enum FileContent {
    /// Parquet.
    Parquet(Vec<u8>),
    /// Text, in any encoding.
    Text(Vec<u8>),
}

/// First bytes of files that are no tables of text, with what they are and what to do.
const OTHERS: [(&[u8], &str, &str); 13] = [
    (
        b"PK\x03\x04",
        "a spreadsheet or an archive",
        "save the sheet as CSV",
    ),
    (b"PK\x05\x06", "an empty archive", "save the sheet as CSV"),
    (
        b"\xD0\xCF\x11\xE0",
        "an old spreadsheet",
        "save the sheet as CSV",
    ),
    (
        b"BZh",
        "compressed with bzip2",
        "decompress it, or compress it with gzip",
    ),
    (
        b"\xFD7zXZ",
        "compressed with xz",
        "decompress it, or compress it with gzip",
    ),
    (
        b"\x28\xB5\x2F\xFD",
        "compressed with zstd",
        "decompress it, or compress it with gzip",
    ),
    (b"7z\xBC\xAF", "a 7-Zip archive", "unpack it"),
    (b"%PDF", "a PDF", "save the table as CSV"),
    (
        b"SQLite format 3",
        "a database of SQLite",
        "export the table as CSV",
    ),
    (b"$FL2", "a file of SPSS", "export it as CSV"),
    (b"<stata_dta>", "a file of Stata", "export it as CSV"),
    (b"ARROW1", "a file of Arrow", "write it as Parquet or CSV"),
    (b"\x89HDF", "a file of HDF5", "export the table as CSV"),
];

/// Reads a file: Parquet or CSV, whichever its first bytes say, and if they say that it is compressed
/// with gzip, what is inside.
///
/// # Errors
/// [`DataError::File`], [`DataError::Ragged`], [`DataError::OpenQuote`].
pub fn open(path: PathBuf, format: &Format) -> Result<RawFile, DataError> {
    let (content, notes) = content(&path)?;
    let mut file = match content {
        FileContent::Parquet(bytes) => parquet::read(path, bytes)?,
        FileContent::Text(bytes) => {
            let text = format.decode(&path, bytes)?;
            RawFile::of_text(path, &text, format)?
        }
    };
    file.notes.splice(0..0, notes);
    Ok(file)
}

/// Reads a file as [`open`] does, but for sums with noise: no row decides how another one is read
/// ([`RawFile::of_lines`]), and those that cannot be read are put aside. Where the format has the names of the
/// columns, the first bytes may be those of a row: then the name of the file says what it is.
///
/// # Errors
/// What is wrong with the file, whatever rows it has: [`DataError::File`], [`DataError::TwoColumns`],
/// [`DataError::OpenQuote`].
pub fn open_row_by_row(path: PathBuf, format: &Format) -> Result<RawFile, DataError> {
    let (content, notes) = match &format.columns {
        None => told(&path, Reading::RowByRow)?,
        Some(_) => (by_name(&path)?, Vec::new()),
    };
    let mut file = match content {
        FileContent::Parquet(bytes) => parquet::read_row_by_row(path, bytes)?,
        FileContent::Text(bytes) => RawFile::of_lines(path, &bytes, format)?,
    };
    file.notes.splice(0..0, notes);
    Ok(file)
}

/// What a file holds, decompressed; and notes where its name says something else.
///
/// # Errors
/// [`DataError::File`].
pub fn content(path: &Path) -> Result<(FileContent, Vec<String>), DataError> {
    told(path, Reading::Whole)
}

/// What the name of a file says that it holds, decompressed.
fn by_name(path: &Path) -> Result<FileContent, DataError> {
    let mut bytes = read(path)?;
    if ends(path, ".gz") {
        bytes = unpacked(path, &bytes)?;
    }
    Ok(match is_named_parquet(path) {
        true => FileContent::Parquet(bytes),
        false => FileContent::Text(bytes),
    })
}

fn is_named_parquet(path: &Path) -> bool {
    let ending = [".parquet", ".parq", ".pq"];
    ending.iter().any(|end| ends(path, end))
}

/// What the first bytes of a file say that it holds, and with the whole of it all others.
fn told(path: &Path, reading: Reading) -> Result<(FileContent, Vec<String>), DataError> {
    let bytes = bytes(path)?;
    let mut notes = Vec::new();
    if ends(path, ".gz") && !gzip_at_first(path) {
        notes
            .push("its name ends in .gz, and it is not compressed: it is read as it is".to_owned());
    }
    if bytes.starts_with(b"PAR1") || is_named_parquet(path) {
        return Ok((FileContent::Parquet(bytes), notes));
    }
    let failed = |what: &str, hint: &str| {
        Err(DataError::File {
            path: path.to_owned(),
            reason: format!("it is {what}"),
            hint: format!(": {hint}"),
        })
    };
    if let Some((_, what, hint)) = OTHERS.iter().find(|(first, ..)| bytes.starts_with(first)) {
        return failed(what, hint);
    }
    let sheets = [".xlsx", ".xls", ".xlsm", ".ods", ".numbers"];
    let sheet = reading == Reading::Whole && sheets.iter().any(|end| ends(path, end));
    if sheet && !bytes.iter().all(|byte| byte.is_ascii()) {
        return failed("a spreadsheet or an archive", "save the sheet as CSV");
    }
    let head = bytes[..bytes.len().min(200)].to_ascii_lowercase();
    let head = head.trim_ascii_start();
    if [&b"<!doctype html"[..], b"<html", b"<table"]
        .iter()
        .any(|first| head.starts_with(first))
    {
        return failed(
            "a web page",
            "was a page saved in place of the file? Save the table as CSV",
        );
    }
    if head.starts_with(b"<?xml") {
        return failed("XML", "save the table as CSV");
    }
    if head.starts_with(b"{\"") || head.starts_with(b"[{") {
        return failed("JSON", "write the table as CSV");
    }
    Ok((FileContent::Text(bytes), notes))
}

/// The bytes of a file, decompressed if they are compressed with gzip.
///
/// # Errors
/// [`DataError::File`].
pub fn bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    let bytes = read(path)?;
    if bytes.starts_with(GZIP) {
        unpacked(path, &bytes)
    } else {
        Ok(bytes)
    }
}

/// The bytes of a file as they are.
fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    file::read(path, file::DATA).map_err(|error| DataError::File {
        path: path.to_owned(),
        reason: error.to_string(),
        hint: match error.kind() {
            std::io::ErrorKind::FileTooLarge => SPLIT.to_owned(),
            _ => neighbour(path),
        },
    })
}

/// The content of a file with this gzip content.
fn unpacked(path: &Path, bytes: &[u8]) -> Result<Vec<u8>, DataError> {
    decompressed(bytes, file::DATA).map_err(|(reason, hint)| DataError::File {
        path: path.to_owned(),
        reason,
        hint,
    })
}

/// The first bytes of a gzip file.
const GZIP: &[u8] = &[0x1F, 0x8B];

/// What to do with a file that is too large.
const SPLIT: &str = ": leave out the columns that are not needed, or split it into several files of one \
                     silo, which may have up to that size each";

/// Whether a file is compressed. It has been read before.
fn gzip_at_first(path: &Path) -> bool {
    let mut first = [0; 2];
    let file = std::fs::File::open(path);
    file.and_then(|mut file| file.read_exact(&mut first))
        .is_ok()
        && first == GZIP
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

/// Whether the name of the file ends so, in any case.
fn ends(path: &Path, end: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.to_ascii_lowercase().ends_with(end)
}

/// The content of a gzip file, no more than `limit`, or the reason and a hint. A file may have several
/// parts; zero bytes behind the last, as tapes have them, mean nothing.
fn decompressed(mut bytes: &[u8], limit: u64) -> Result<Vec<u8>, (String, String)> {
    let mut content = Vec::new();
    let wrong = |reason: String| (reason, String::new());
    while !bytes.is_empty() {
        if !bytes.starts_with(GZIP) {
            if bytes.iter().all(|byte| *byte == 0) {
                break;
            }
            return Err((
                format!(
                    "{} bytes follow its gzip content that are none",
                    bytes.len()
                ),
                ": was the file put together from others? Compress it again".into(),
            ));
        }
        let mut decoder = GzDecoder::new(bytes);
        let left = (limit + 1).saturating_sub(content.len() as u64);
        let read = decoder.by_ref().take(left).read_to_end(&mut content);
        if let Err(error) = read {
            return Err(match error.kind() {
                std::io::ErrorKind::UnexpectedEof => (
                    "it breaks off: its gzip content is not complete".into(),
                    ": copy it again".into(),
                ),
                _ => wrong(format!("its gzip content is damaged: {error}")),
            });
        }
        if content.len() as u64 > limit {
            let most = match limit >> 20 {
                0 => format!("{limit} bytes"),
                mebibytes => format!("{mebibytes} MiB"),
            };
            return Err((
                format!(
                    "it has more than {most} when decompressed, the most that such a file may have"
                ),
                SPLIT.into(),
            ));
        }
        bytes = decoder.into_inner();
    }
    Ok(content)
}

#[cfg(test)]
mod tests;
