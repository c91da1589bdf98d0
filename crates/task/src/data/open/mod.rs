//! Opens files of rows: CSV, Parquet or a spreadsheet, compressed with gzip or not, by their first bytes.

use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use super::raw::TextWindow;
use super::{DataError, Format, RawFile, Reading, Wanted, nearest, parquet, sheets};
use crate::file;

mod gzip;
mod kind;
pub(super) mod limits;

use gzip::{GZIP, Gunzip, GzipRefused};
use kind::FileKind;
use limits::SPLIT;

/// Content of a file.
pub enum FileContent {
    /// Parquet.
    Parquet(Vec<u8>),
    /// A spreadsheet.
    Sheet(Vec<u8>),
    /// Text, in any encoding.
    Text(Vec<u8>),
}

/// Bytes that are looked at to find out what a file holds.
const HEAD: usize = 1 << 16;
/// Bytes of text that are decoded at once.
const BLOCK: usize = 1 << 18;

/// Reads a file: Parquet, a spreadsheet or CSV, whichever its first bytes say, and if they say that it is compressed
/// with gzip, what is inside.
///
/// # Errors
/// [`DataError::File`], [`DataError::Ragged`], [`DataError::OpenQuote`].
pub fn open(path: PathBuf, format: &Format) -> Result<RawFile, DataError> {
    open_columns(path, format, None)
}

/// Reads a file as [`open`] does. Cells of columns that are not wanted take no memory, and are empty.
///
/// # Errors
/// As those of [`open`].
pub fn open_columns(
    path: PathBuf,
    format: &Format,
    wanted: Wanted<'_>,
) -> Result<RawFile, DataError> {
    let (mut source, kind, notes) = told(&path, Reading::Whole)?;
    let mut file = match kind {
        FileKind::Parquet => parquet::read(path.clone(), all(&path, source)?)?,
        FileKind::Sheet => {
            let bytes = all(&path, source)?;
            sheets::read(&path, &bytes, format, wanted)?
        }
        FileKind::Text => {
            let mut decoder = format.decoder(&source.head);
            let mut block = vec![0; BLOCK];
            let window = TextWindow::parts(|text| {
                let count = fill(&mut source, &mut block).map_err(|error| failed(&path, &error))?;
                let last = count < block.len();
                decoder.decode(&path, &block[..count], last, text)?;
                Ok(!last)
            });
            RawFile::of_window(path.clone(), window, format, wanted)?
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
/// Faults of the file, whatever rows it has: [`DataError::File`], [`DataError::TwoColumns`],
/// [`DataError::OpenQuote`].
pub fn open_row_by_row(path: PathBuf, format: &Format) -> Result<RawFile, DataError> {
    let (content, notes) = match &format.columns {
        None => content_by(&path, Reading::RowByRow)?,
        Some(_) => (by_name(&path)?, Vec::new()),
    };
    let mut file = match content {
        FileContent::Parquet(bytes) => parquet::read_row_by_row(path, bytes)?,
        FileContent::Sheet(bytes) => sheets::read_row_by_row(&path, &bytes, format)?,
        FileContent::Text(bytes) => RawFile::of_lines(path, &bytes, format)?,
    };
    file.notes.splice(0..0, notes);
    Ok(file)
}

/// Returns what a file holds, decompressed; and notes where its name says something else.
///
/// # Errors
/// [`DataError::File`].
pub fn content(path: &Path) -> Result<(FileContent, Vec<String>), DataError> {
    content_by(path, Reading::Whole)
}

fn content_by(path: &Path, reading: Reading) -> Result<(FileContent, Vec<String>), DataError> {
    let (source, kind, notes) = told(path, reading)?;
    Ok((kind.with(all(path, source)?), notes))
}

/// Returns what the name of a file says that it holds, decompressed.
fn by_name(path: &Path) -> Result<FileContent, DataError> {
    let source = match ends(path, ".gz") {
        true => FileSource::unpacked(path)?,
        false => FileSource::plain(path)?,
    };
    Ok(FileKind::by_name(path).with(all(path, source)?))
}

/// The content of a file, what it is by its first bytes, and notes.
fn told(path: &Path, reading: Reading) -> Result<(FileSource, FileKind, Vec<String>), DataError> {
    let (source, compressed) = FileSource::open(path)?;
    let mut notes = Vec::new();
    if ends(path, ".gz") && !compressed {
        notes
            .push("its name ends in .gz, and it is not compressed: it is read as it is".to_owned());
    }
    let kind = FileKind::told(path, &source.head, reading)?;
    Ok((source, kind, notes))
}

/// The bytes of a file, decompressed if they are compressed with gzip.
///
/// # Errors
/// [`DataError::File`].
pub fn bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    all(path, FileSource::open(path)?.0)
}

/// A file that is read once, decompressed.
struct FileSource {
    /// Its first bytes, which come again when it is read.
    head: Vec<u8>,
    rest: Chain<Cursor<Vec<u8>>, Box<dyn Read>>,
    /// Bytes that it is expected to have, at least.
    size: u64,
}

impl FileSource {
    /// A file, and whether it is compressed.
    fn open(path: &Path) -> Result<(Self, bool), DataError> {
        let plain = Self::plain(path)?;
        match plain.head.starts_with(GZIP) {
            true => Ok((Self::unpacked(path)?, true)),
            false => Ok((plain, false)),
        }
    }

    /// A file as it is.
    fn plain(path: &Path) -> Result<Self, DataError> {
        let (file, size) = opened(path)?;
        Self::of(path, Box::new(file), size)
    }

    /// Returns what is inside of a file that is compressed.
    fn unpacked(path: &Path) -> Result<Self, DataError> {
        let (file, size) = opened(path)?;
        let inside = Gunzip::new(BufReader::with_capacity(HEAD, file), file::DATA);
        Self::of(path, Box::new(inside), size)
    }

    fn of(path: &Path, mut rest: Box<dyn Read>, size: u64) -> Result<Self, DataError> {
        let mut head = vec![0; HEAD];
        let count = fill(&mut rest, &mut head).map_err(|error| failed(path, &error))?;
        head.truncate(count);
        Ok(Self {
            rest: Cursor::new(head.clone()).chain(rest),
            head,
            size,
        })
    }
}

impl Read for FileSource {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.rest.read(into)
    }
}

/// A file of at most the size of a data file, and its size.
fn opened(path: &Path) -> Result<(io::Take<File>, u64), DataError> {
    let (file, size) = file::open(path, file::DATA).map_err(|error| failed(path, &error))?;
    // One that grows is cut where it was large enough.
    Ok((file.take(file::DATA), size))
}

/// Reads until the bytes are full or the source ends.
fn fill(source: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match source.read(&mut bytes[count..])? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

/// All bytes of a source.
fn all(path: &Path, mut source: FileSource) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::with_capacity(source.size as usize);
    let read = source.read_to_end(&mut bytes);
    read.map_err(|error| failed(path, &error))?;
    Ok(bytes)
}

/// A file that cannot be read, for a reason of the system or one found in it.
fn failed(path: &Path, error: &io::Error) -> DataError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let (reason, hint) = match (inner, error.kind()) {
        (Some(GzipRefused { reason, hint }), _) => (reason.clone(), hint.clone()),
        (None, io::ErrorKind::FileTooLarge) => (error.to_string(), SPLIT.to_owned()),
        (None, _) => (error.to_string(), neighbour(path)),
    };
    DataError::File {
        path: path.to_owned(),
        reason,
        hint,
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

/// Returns whether the name of the file ends so, in any case.
fn ends(path: &Path, end: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.to_ascii_lowercase().ends_with(end)
}

#[cfg(test)]
mod tests;
