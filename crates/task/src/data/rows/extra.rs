//! Columns of a file beside features and target: the part that a row belongs to, its time, its group and its
//! subgroup.

use std::collections::BTreeMap;

use methods::learner::Split;

use crate::data::{DataError, Format, RawFile, RawRow, SplitConfig, date};
use crate::schema::{FileLayout, LocalNames};

/// Places of the extra columns in a file.
pub(super) struct ExtraColumns<'a> {
    file: &'a RawFile,
    format: &'a Format,
    /// The part of all its rows.
    given: Option<Split>,
    part: Option<usize>,
    time: Option<usize>,
    group: Option<usize>,
}

/// Extra facts about one row.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) part: Option<Split>,
    pub(super) time: Option<f64>,
    pub(super) subgroup: Option<String>,
    /// Content of its cell. It is compared with those of other rows.
    pub(super) group: Option<String>,
}

/// The groups of rows, by what the cells hold, and the numbers that take their place.
#[derive(Default)]
pub(super) struct Groups {
    /// By silo.
    silos: BTreeMap<usize, BTreeMap<String, u32>>,
    /// Of all silos.
    all: BTreeMap<String, usize>,
}

impl Groups {
    /// The number of a group in the silo at this place, from 0.
    pub(super) fn within(&mut self, silo: usize, group: &str) -> u32 {
        let own = self.silos.entry(silo).or_default();
        let next = own.len() as u32;
        *own.entry(group.to_owned()).or_insert(next)
    }

    /// The number of a group among all, from 0.
    pub(super) fn number(&mut self, group: &str) -> usize {
        let next = self.all.len();
        *self.all.entry(group.to_owned()).or_insert(next)
    }
}

impl<'a> ExtraColumns<'a> {
    /// Finds the columns that `split` names, by their names in the file; `given` is the part of the whole
    /// file.
    ///
    /// # Errors
    /// [`DataError::NoColumn`]; [`DataError::Config`] where file and column both give the part.
    pub(super) fn new(
        split: &SplitConfig,
        given: Option<Split>,
        file: &'a RawFile,
        format: &'a Format,
        names: &LocalNames,
    ) -> Result<Self, DataError> {
        if given.is_some() && split.column.is_some() {
            return Err(DataError::Config(format!(
                "{}: `part` of the file and `column` of `split` exclude each other: both say to \
                 which part the rows belong",
                file.path.display()
            )));
        }
        let place = |column: &Option<String>| {
            let local = column.as_ref().map(|name| names.column(name));
            local.map(|name| file.place(name)).transpose()
        };
        Ok(Self {
            part: place(&split.column)?,
            time: place(&split.time)?,
            group: place(&split.group)?,
            file,
            format,
            given,
        })
    }

    /// Returns what is said of a row.
    ///
    /// # Errors
    /// [`DataError::Cell`]: no part, no time, no group.
    pub(super) fn read(
        &self,
        row: &RawRow<'_>,
        layout: &FileLayout<'_>,
    ) -> Result<Extra, DataError> {
        let cell = |place: usize| row.cells.get(place).unwrap_or_default();
        let wrong = |place: usize, expected: &str| DataError::Cell {
            path: self.file.path.clone(),
            at: row.at,
            column: self.file.header[place].clone(),
            text: cell(place).to_owned(),
            expected: expected.to_owned(),
        };
        let part = |place: usize| {
            part(cell(place)).ok_or_else(|| wrong(place, "train, validation or test is needed"))
        };
        let time = |place: usize| {
            let text = cell(place);
            let time = self.format.number(text).or_else(|| date(text));
            time.ok_or_else(|| {
                wrong(
                    place,
                    "a number or a date such as 2024-05-31 or 2024-05-31 14:30 is needed",
                )
            })
        };
        let group = |place: usize| {
            if layout.is_missing(row, place) {
                Err(wrong(
                    place,
                    "the group of the row is needed (`split.group`), so that rows of one group are not in two \
                 parts",
                ))
            } else {
                Ok(cell(place).to_owned())
            }
        };
        Ok(Extra {
            group: self.group.map(group).transpose()?,
            part: self.part.map(part).transpose()?.or(self.given),
            time: self.time.map(time).transpose()?,
            subgroup: layout.subgroup(row),
        })
    }
}

/// The part that a cell names.
fn part(text: &str) -> Option<Split> {
    match text.to_ascii_lowercase().as_str() {
        "train" => Some(Split::Train),
        "validation" => Some(Split::Validation),
        "test" => Some(Split::Test),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_in_any_case() {
        assert_eq!(part("Train"), Some(Split::Train));
        assert_eq!(part("test"), Some(Split::Test));
        assert_eq!(part("dev"), None);
    }
}
