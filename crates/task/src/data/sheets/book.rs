//! The parts of a spreadsheet, which is a zip archive of XML: what is decoded is counted, so that no small file fills
//! the memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::DeflateDecoder;
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart};
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::data::DataError;
use crate::data::open::limits::too_large;

/// Reads the XML of a part.
pub(super) type Xml<'a> = Reader<Box<dyn BufRead + 'a>>;

/// A spreadsheet in memory, compressed as in its file.
pub(super) struct Book<'a> {
    pub(super) path: &'a Path,
    archive: ZipSliceArchive<&'a [u8]>,
    parts: Vec<BookPart>,
    /// Bytes that may still be decoded, and bytes that its cells may still take.
    decoded: Cell<u64>,
    cells: Cell<u64>,
}

struct BookPart {
    name: String,
    method: CompressionMethod,
    at: ZipArchiveEntryWayfinder,
}

impl<'a> Book<'a> {
    /// An archive whose parts may have `limit` bytes in all.
    ///
    /// # Errors
    /// [`DataError::File`]: it is damaged.
    pub(super) fn open(path: &'a Path, bytes: &'a [u8], limit: u64) -> Result<Self, DataError> {
        let failed = |error: rawzip::Error| damaged(path, &error.to_string());
        let archive = ZipArchive::from_slice(bytes).map_err(failed)?;
        let mut parts = Vec::new();
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().map_err(failed)? {
            parts.push(BookPart {
                name: String::from_utf8_lossy(entry.file_path().as_bytes()).replace('\\', "/"),
                method: entry.compression_method(),
                at: entry.wayfinder(),
            });
        }
        Ok(Self {
            path,
            archive,
            parts,
            decoded: Cell::new(limit),
            cells: Cell::new(limit),
        })
    }

    /// Names of all parts.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.name.as_str())
    }

    /// A part by its name, whose case does not matter.
    ///
    /// # Errors
    /// [`DataError::File`]: it is damaged.
    pub(super) fn part(&self, name: &str) -> Result<Option<Box<dyn BufRead + '_>>, DataError> {
        let name = name.trim_start_matches('/');
        let found = self
            .parts
            .iter()
            .find(|part| part.name.eq_ignore_ascii_case(name));
        let Some(part) = found else {
            return Ok(None);
        };
        let content = self.archive.get_entry(part.at);
        let content = content.map_err(|error| self.damaged(&error.to_string()))?;
        let data = content.data();
        let decoded: Box<dyn Read + '_> = match part.method {
            CompressionMethod::STORE => Box::new(content.verifying_reader(data)),
            CompressionMethod::DEFLATE => {
                Box::new(content.verifying_reader(DeflateDecoder::new(data)))
            }
            other => {
                let method = other.as_u16();
                return Err(self.damaged(&format!("its parts are compressed by method {method}")));
            }
        };
        let counted = CountedBytes {
            decoded,
            left: &self.decoded,
        };
        Ok(Some(Box::new(BufReader::new(counted))))
    }

    /// The XML of a part.
    ///
    /// # Errors
    /// [`DataError::File`]: it is damaged.
    pub(super) fn xml(&self, name: &str) -> Result<Option<Xml<'_>>, DataError> {
        let part = self.part(name)?;
        Ok(part.map(|part| {
            let mut xml = Reader::from_reader(part);
            xml.config_mut().expand_empty_elements = true;
            xml
        }))
    }

    /// Looks at parts that are read again later: what it decodes is not counted.
    pub(super) fn glance<T>(&self, look: impl FnOnce() -> T) -> T {
        let left = self.decoded.get();
        let seen = look();
        self.decoded.set(left);
        seen
    }

    /// Takes room for a row of cells.
    ///
    /// # Errors
    /// [`DataError::File`]: there is none left.
    pub(super) fn take(&self, cells: &[String]) -> Result<(), DataError> {
        let bytes: usize = cells.iter().map(|cell| cell.len() + 4).sum();
        let left = self.cells.get().checked_sub(bytes as u64);
        self.cells.set(left.ok_or_else(|| too_large(self.path))?);
        Ok(())
    }

    /// That a part cannot be read.
    pub(super) fn failed(&self, error: impl Into<quick_xml::Error>) -> DataError {
        match error.into() {
            quick_xml::Error::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                too_large(self.path)
            }
            error => self.damaged(&error.to_string()),
        }
    }

    /// That the file is damaged.
    pub(super) fn damaged(&self, why: &str) -> DataError {
        damaged(self.path, why)
    }

    /// An attribute by its name without a prefix.
    ///
    /// # Errors
    /// [`DataError::File`]: it is damaged.
    pub(super) fn attribute<'e>(
        &self,
        element: &'e BytesStart<'_>,
        name: &str,
    ) -> Result<Option<Cow<'e, str>>, DataError> {
        for attribute in element.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| self.failed(error))?;
            if attribute.key.local_name().into_inner() == name {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let value = value.map_err(|error| self.failed(error))?;
                return Ok(Some(Cow::Owned(value.into_owned())));
            }
        }
        Ok(None)
    }

    /// The letters that a reference in a text stands for, such as `&amp;`.
    ///
    /// # Errors
    /// [`DataError::File`]: it is damaged.
    pub(super) fn letters(&self, reference: &BytesRef<'_>) -> Result<String, DataError> {
        let letter = reference.resolve_char_ref();
        if let Some(letter) = letter.map_err(|error| self.failed(error))? {
            return Ok(letter.to_string());
        }
        let known = resolve_predefined_entity(reference);
        known.map(str::to_owned).ok_or_else(|| {
            let name: &str = reference;
            self.damaged(&format!("it has an unknown reference &{name};"))
        })
    }
}

fn damaged(path: &Path, why: &str) -> DataError {
    DataError::File {
        path: path.to_owned(),
        reason: format!("the spreadsheet is damaged: {why}"),
        hint: ": open it in a spreadsheet program and save it again, or as CSV".into(),
    }
}

/// Counts what is decoded, and refuses more than is left.
struct CountedBytes<'a> {
    decoded: Box<dyn Read + 'a>,
    left: &'a Cell<u64>,
}

impl Read for CountedBytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.decoded.read(into)?;
        let left = self.left.get().checked_sub(count as u64);
        self.left.set(left.ok_or(io::ErrorKind::FileTooLarge)?);
        Ok(count)
    }
}
