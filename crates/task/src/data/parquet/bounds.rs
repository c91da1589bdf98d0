//! Bounds what a Parquet file makes its reader allocate, before anything of it is decoded.
//!
//! A few bytes can stand for a lot: a page says itself how large it becomes, brotli and gzip give more than it says,
//! a dictionary says how many values it has, and a run of equal values takes two bytes. The first three are read
//! here, without decoding; rows are counted while they are read ([`PageBudget`]).

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

/// Memory that any file may take, in bytes.
const MOST: u64 = 1 << 30;
/// Bytes of memory for each byte of a file, where that is more: a table of many rows with few levels is packed
/// to a few bits a cell.
const EACH: u64 = 64;
/// Bytes of a value of a dictionary beside its text.
const VALUE: u64 = 40;
/// Bytes of a row beside its cells, and of a cell beside its text, in lists that grow.
const ROW: u64 = 16;
const CELL: u64 = 8;
/// First bytes of a frame of LZ4, whose size nobody looks at.
const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4D, 0x18];
/// Most that LZ4 makes of one byte.
const LZ4_RATIO: u64 = 255;
/// Deepest structure in a structure.
const DEPTH: usize = 16;

/// Returns what a file of so many bytes may take in memory.
pub(super) fn most(bytes: usize) -> u64 {
    MOST.max(EACH.saturating_mul(bytes as u64))
}

/// Counts what the rows of a file take in memory.
pub(super) struct PageBudget {
    most: u64,
    left: u64,
}

impl PageBudget {
    /// Of at most so many bytes.
    pub(super) fn new(most: u64) -> Self {
        Self { most, left: most }
    }

    /// Takes what a row of these texts needs.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn take(&mut self, cells: usize, text: usize) -> Result<(), String> {
        let needs = ROW + CELL * cells as u64 + text as u64;
        let left = self.left.checked_sub(needs);
        self.left = left.ok_or_else(|| too_much(self.most))?;
        Ok(())
    }
}

fn too_much(most: u64) -> String {
    format!(
        "it takes more than {} MiB in memory when decoded, the most that a Parquet file of its size may take: write \
         it again with the columns and rows that are needed",
        most >> 20
    )
}

/// Checks the pages of the columns that are read.
///
/// # Errors
/// They would take more than `most` bytes at once, or give more than they say.
pub(super) fn check_pages(
    bytes: &[u8],
    metadata: &ParquetMetaData,
    is_read: impl Fn(&str) -> bool,
    most: u64,
) -> Result<(), String> {
    for group in metadata.row_groups() {
        let mut takes = 0;
        for column in group.columns() {
            let name = column.column_path().parts().first();
            if name.is_some_and(|name| is_read(name)) {
                takes += column_takes(bytes, column, most)?;
            }
            if takes > most {
                return Err(too_much(most));
            }
        }
    }
    Ok(())
}

/// The bytes that a column of a row group takes at once: its dictionary and its largest page.
fn column_takes(bytes: &[u8], column: &ColumnChunkMetaData, most: u64) -> Result<u64, String> {
    let damaged = || {
        format!(
            "its column {} is damaged: copy or write the file again",
            column.column_path()
        )
    };
    let start = column
        .dictionary_page_offset()
        .unwrap_or(column.data_page_offset());
    let rest = usize::try_from(start)
        .ok()
        .and_then(|start| bytes.get(start..));
    let size = usize::try_from(column.compressed_size()).ok();
    let mut rest = rest
        .zip(size)
        .and_then(|(rest, size)| rest.get(..size))
        .ok_or_else(damaged)?;
    let (mut dictionary, mut largest) = (0, 0);
    while !rest.is_empty() {
        let mut compact = Compact(rest);
        let page = ParquetPage::read(&mut compact).ok_or_else(damaged)?;
        let (data, behind) = compact
            .0
            .split_at_checked(page.packed)
            .ok_or_else(damaged)?;
        rest = behind;
        match page.values {
            // Every value of a dictionary takes a byte at least, but for texts without a length.
            Some(values) if values > page.size.max(1) => return Err(damaged()),
            Some(values) => dictionary = page.size.saturating_add(VALUE.saturating_mul(values)),
            None => largest = page.size.max(largest),
        }
        if dictionary.saturating_add(largest) > most {
            return Err(too_much(most));
        }
        let data = data.get(page.levels..).ok_or_else(damaged)?;
        let says = page
            .size
            .checked_sub(page.levels as u64)
            .ok_or_else(damaged)?;
        if page.is_packed && gives_more(column.compression(), data, says, most) {
            return Err(damaged());
        }
    }
    Ok(dictionary + largest)
}

/// Returns whether compressed bytes of a page give more than the page says, where the reader does not look at that.
fn gives_more(codec: Compression, data: &[u8], says: u64, most: u64) -> bool {
    let more = |reader: &mut dyn Read| {
        let given = io::copy(&mut reader.take(says + 1), &mut io::sink());
        // The reader refuses damaged data.
        given.is_ok_and(|given| given > says)
    };
    match codec {
        Compression::GZIP(_) => more(&mut MultiGzDecoder::new(data)),
        Compression::BROTLI(_) => more(&mut brotli_decompressor::Decompressor::new(data, 1 << 12)),
        Compression::LZ4 => {
            data.starts_with(&LZ4_FRAME) && LZ4_RATIO * data.len() as u64 > most.max(says)
        }
        _ => false,
    }
}

/// Fields of the header of a page.
#[derive(Default)]
struct ParquetPage {
    /// Bytes as they stand in the file.
    packed: usize,
    /// Bytes when decompressed.
    size: u64,
    /// Values, if it is a dictionary.
    values: Option<u64>,
    /// Bytes at the beginning that are never compressed.
    levels: usize,
    /// True if the others are.
    is_packed: bool,
}

impl ParquetPage {
    /// `None` for what is no header.
    fn read(compact: &mut Compact<'_>) -> Option<Self> {
        let mut found = Self {
            is_packed: true,
            ..Self::default()
        };
        let mut negative = false;
        compact.structure(&mut Vec::new(), &mut |path, value| {
            // Fields that are not named here may be any number.
            negative |= value < 0 && matches!(path, [2 | 3] | [7, 1] | [8, 5 | 6]);
            match path {
                [2] => found.size = value as u64,
                [3] => found.packed = value as usize,
                [7, 1] => found.values = Some(value as u64),
                [8, 5 | 6] => found.levels = found.levels.saturating_add(value as usize),
                [8, 7] => found.is_packed = value != 0,
                _ => {}
            }
        })?;
        (!negative).then_some(found)
    }
}

/// Bytes in Thrift's compact protocol.
struct Compact<'a>(&'a [u8]);

impl<'a> Compact<'a> {
    /// Reads a structure, and shows each of its numbers with the numbers of the fields that lead to it. `None` for
    /// what is none, or says that it is longer than it can be.
    fn structure(&mut self, path: &mut Vec<i16>, each: &mut dyn FnMut(&[i16], i64)) -> Option<()> {
        if path.len() >= DEPTH {
            return None;
        }
        let mut field = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.number()?).ok()?,
                more => field.checked_add(more.into())?,
            };
            path.push(field);
            match head & 0xF {
                // The kind of a truth value is its value.
                kind @ 1..=2 => each(path, (kind == 1).into()),
                kind => self.value(kind, path, each)?,
            }
            path.pop();
        }
    }

    fn value(
        &mut self,
        kind: u8,
        path: &mut Vec<i16>,
        each: &mut dyn FnMut(&[i16], i64),
    ) -> Option<()> {
        match kind {
            _ if path.len() > DEPTH => return None,
            1..=3 => {
                self.byte()?;
            }
            4..=6 => each(path, self.number()?),
            7 => {
                self.take(8)?;
            }
            8 => {
                let size = self.size()?;
                self.take(size)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let size = match head >> 4 {
                    0xF => self.size()?,
                    few => few.into(),
                };
                // Every element takes a byte at least.
                if size > self.0.len() {
                    return None;
                }
                // The numbers of lists are nobody's.
                path.push(0);
                (0..size).try_for_each(|_| self.value(head & 0xF, path, &mut |_, _| {}))?;
                path.pop();
            }
            11 => {
                let size = self.size()?;
                if size > self.0.len() {
                    return None;
                }
                if size > 0 {
                    let kinds = self.byte()?;
                    path.push(0);
                    for _ in 0..size {
                        self.value(kinds >> 4, path, &mut |_, _| {})?;
                        self.value(kinds & 0xF, path, &mut |_, _| {})?;
                    }
                    path.pop();
                }
            }
            12 => self.structure(path, each)?,
            _ => return None,
        }
        Some(())
    }

    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.bits()?).ok()
    }

    /// A number with a sign.
    fn number(&mut self) -> Option<i64> {
        let bits = self.bits()?;
        Some((bits >> 1).cast_signed() ^ -((bits & 1).cast_signed()))
    }

    /// A number without a sign, seven bits in each byte.
    fn bits(&mut self) -> Option<u64> {
        let mut bits = 0u64;
        for nth in 0..10 {
            let byte = self.byte()?;
            bits |= u64::from(byte & 0x7F) << (7 * nth);
            if byte < 0x80 {
                return Some(bits);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn headers_that_say_what_cannot_be_are_refused() {
        let read = |bytes: &[u8]| ParquetPage::read(&mut Compact(bytes));
        // A dictionary of 3 values, 20 bytes of 40, and a field that nobody knows.
        let page = read(&[
            0x15, 4, 0x15, 80, 0x15, 40, 0x4C, 0x15, 6, 0x15, 0, 0, 0x28, 1, 9, 0,
        ])
        .unwrap();
        assert_eq!((page.size, page.packed, page.values), (40, 20, Some(3)));
        for wrong in [
            &[0x15, 4, 0x15, 79, 0x15, 40, 0][..],
            &[0x15, 4, 0x15],
            &[0x15, 4, 0x15, 80, 0x15, 40],
            &[0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0, 0],
            &[0x18, 0xFF, 0xFF, 3, 0],
            &[0x1D, 0],
            &[0x1C; 40],
            // Lists of one list, and no end of them.
            &[&[0x19][..], &[0x19; 1 << 20], &[0]].concat(),
            &[
                0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0,
            ],
        ] {
            assert!(read(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_small_file_may_take_what_any_may_and_a_large_one_more() {
        assert_eq!(most(6_461), 1 << 30);
        assert_eq!(most(1 << 30), 1 << 36);
    }
}
