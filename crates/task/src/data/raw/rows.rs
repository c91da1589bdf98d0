//! The rows of a file, all cells in one text: a table of many numbers takes little more memory than its digits.

use std::borrow::Cow;
use std::path::Path;

use super::{DataError, RowPlace};
use crate::data::open::limits::too_large;

/// Rows of cells. Only the cells of columns that are kept take memory.
#[derive(Debug, Clone, Default)]
pub struct RawRows {
    text: String,
    /// End of every kept cell in the text.
    ends: Vec<u32>,
    rows: Vec<RowStart>,
    /// The place of every column among the kept ones, [`NONE`] of one that is not kept.
    slots: Vec<u32>,
    /// `true` if rows are named by their lines, and not by their numbers.
    lines: bool,
}

/// A column that is not kept.
const NONE: u32 = u32::MAX;

/// Beginning of a row.
#[derive(Debug, Clone, Copy)]
struct RowStart {
    /// Its line or number.
    at: u32,
    /// Its first cell among all.
    cell: u32,
}

/// One row, with as many cells as there are columns.
#[derive(Debug, Clone, Copy)]
pub struct RawRow<'a> {
    /// Place of the row.
    pub at: RowPlace,
    /// Cells of the row, in the order of the header.
    pub cells: RowCells<'a>,
}

/// The cells of a row. One that the file does not have, or that is not kept, is empty.
#[derive(Debug, Clone, Copy)]
pub struct RowCells<'a> {
    text: &'a str,
    /// Beginning of the first cell.
    start: usize,
    ends: &'a [u32],
    slots: &'a [u32],
}

impl<'a> RowCells<'a> {
    /// The cell of a column, if there is such a column.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&'a str> {
        let slot = *self.slots.get(place)? as usize;
        let Some(&end) = self.ends.get(slot) else {
            return Some("");
        };
        let start = match slot {
            0 => self.start,
            _ => self.ends[slot - 1] as usize,
        };
        Some(&self.text[start..end as usize])
    }

    /// All cells, one for each column.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> + Clone + use<'a> {
        let cells = *self;
        (0..self.slots.len()).map(move |place| cells.get(place).unwrap_or_default())
    }
}

impl RawRows {
    /// No rows yet, of columns of which some are kept. Rows are told by their lines, or else by their numbers.
    pub(in crate::data) fn new(kept: &[bool], lines: bool) -> Self {
        let mut next = 0;
        let slots = kept.iter().map(|kept| {
            if !kept {
                return NONE;
            }
            next += 1;
            next - 1
        });
        Self {
            slots: slots.collect(),
            lines,
            ..Self::default()
        }
    }

    /// Adds a row, the cells of which are in the order of the columns; there may be fewer.
    ///
    /// # Errors
    /// [`DataError::File`]: more text than can be told apart.
    pub(in crate::data) fn push<'t>(
        &mut self,
        path: &Path,
        at: u64,
        cells: impl Iterator<Item = &'t str>,
    ) -> Result<(), DataError> {
        let large = || too_large(path);
        self.rows.push(RowStart {
            at: u32::try_from(at).map_err(|_| large())?,
            cell: u32::try_from(self.ends.len()).map_err(|_| large())?,
        });
        for (cell, slot) in cells.zip(&self.slots) {
            if *slot != NONE {
                self.text.push_str(cell);
                self.ends
                    .push(u32::try_from(self.text.len()).map_err(|_| large())?);
            }
        }
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, index: usize) -> RawRow<'_> {
        let RowStart { at, cell } = self.rows[index];
        let first = cell as usize;
        let end = self.rows.get(index + 1);
        let end = end.map_or(self.ends.len(), |next| next.cell as usize);
        let start = match first {
            0 => 0,
            _ => self.ends[first - 1] as usize,
        };
        RawRow {
            at: match self.lines {
                true => RowPlace::Line(at.into()),
                false => RowPlace::Row(at.into()),
            },
            cells: RowCells {
                text: &self.text,
                start,
                ends: &self.ends[first..end],
                slots: &self.slots,
            },
        }
    }

    /// All rows, in their order.
    pub fn iter(&self) -> RowsIter<'_> {
        RowsIter {
            rows: self,
            next: 0,
        }
    }

    /// Leaves out the columns that are not `kept`; their cells stay in memory.
    pub(in crate::data) fn keep_columns(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.slots.retain(|_| *kept.next().unwrap_or(&true));
    }

    /// Bytes that the rows take.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.text.capacity() + 4 * self.ends.capacity() + 8 * self.rows.capacity()
    }

    /// Gives back what was taken for rows that never came.
    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.rows.shrink_to_fit();
    }

    /// The rows with every cell written anew.
    ///
    /// # Errors
    /// [`DataError::File`]: more text than can be told apart.
    pub(super) fn rewritten<'t>(
        &'t self,
        path: &Path,
        cell: impl Fn(&'t str) -> Cow<'t, str>,
    ) -> Result<Self, DataError> {
        let kept: Vec<bool> = self.slots.iter().map(|&slot| slot != NONE).collect();
        let mut rows = Self::new(&kept, self.lines);
        let mut cells: Vec<Cow<'t, str>> = Vec::new();
        for row in self.iter() {
            cells.clear();
            cells.extend(row.cells.iter().map(&cell));
            let at = match row.at {
                RowPlace::Line(at) | RowPlace::Row(at) => at,
            };
            rows.push(path, at, cells.iter().map(AsRef::as_ref))?;
        }
        Ok(rows)
    }
}

impl<'a> IntoIterator for &'a RawRows {
    type Item = RawRow<'a>;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        self.iter()
    }
}

/// The rows of a file, one after the other.
#[derive(Debug, Clone)]
pub struct RowsIter<'a> {
    rows: &'a RawRows,
    next: usize,
}

impl<'a> Iterator for RowsIter<'a> {
    type Item = RawRow<'a>;

    fn next(&mut self) -> Option<RawRow<'a>> {
        let row = (self.next < self.rows.len()).then(|| self.rows.row(self.next))?;
        self.next += 1;
        Some(row)
    }
}
