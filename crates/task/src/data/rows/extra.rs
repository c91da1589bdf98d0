//! What a file says of a row beside features and target: the part that it belongs to, its time, its group
//! and its subgroup.

use std::collections::BTreeMap;

use methods::learner::Split;

use crate::data::{DataError, Format, RawFile, RawRow, SplitConfig};
use crate::schema::{FileLayout, LocalNames};

/// Where a file says it.
pub(super) struct ExtraColumns<'a> {
    file: &'a RawFile,
    format: &'a Format,
    /// The part of all its rows.
    given: Option<Split>,
    part: Option<usize>,
    time: Option<usize>,
    group: Option<usize>,
}

/// What is said of one row.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) part: Option<Split>,
    pub(super) time: Option<f64>,
    pub(super) subgroup: Option<String>,
    /// What its cell holds. It is compared with those of other rows, and kept as a number.
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
    pub(super) fn within(&mut self, silo: usize, group: String) -> u32 {
        let own = self.silos.entry(silo).or_default();
        let next = own.len() as u32;
        *own.entry(group).or_insert(next)
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

    /// What is said of a row.
    ///
    /// # Errors
    /// [`DataError::Cell`]: no part, no time, no group.
    pub(super) fn read(&self, row: &RawRow, layout: &FileLayout<'_>) -> Result<Extra, DataError> {
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
            if self.format.is_missing(cell(place)) {
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

/// Days from the first of January 1970 to a date, with or without a time of day.
fn date(text: &str) -> Option<f64> {
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    let mut numbers = day.splitn(3, '-').map(str::parse::<i64>);
    let mut next = || numbers.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(0..=9999).contains(&year) || !(1..=last).contains(&day) {
        return None;
    }
    // Years begin in March, so that the day of a leap year is the last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = before + (153 * month + 2) / 5 + day - 719_469;
    let Some(time) = time else {
        return Some(days as f64);
    };
    let mut parts = time
        .trim_end_matches('Z')
        .splitn(3, ':')
        .map(str::parse::<f64>);
    let hour = parts
        .next()?
        .ok()
        .filter(|hour| (0.0..24.0).contains(hour))?;
    let mut sixty = || match parts.next() {
        None => Some(0.0),
        Some(value) => value.ok().filter(|value| (0.0..60.0).contains(value)),
    };
    let (minute, second) = (sixty()?, sixty()?);
    Some(days as f64 + (hour + (minute + second / 60.0) / 60.0) / 24.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        let known = [
            ("1970-01-01", 0.0),
            ("2000-02-29", 11_016.0),
            ("2024-12-31", 20_088.0),
            ("1969-12-31T18:00", -0.25),
            ("2024-12-31 12:30:36Z", 20_088.521_25),
        ];
        for (text, days) in known {
            let found = date(text).unwrap_or(f64::NAN);
            assert!((found - days).abs() < 1e-9, "{text}: {found}");
        }
        for text in [
            "",
            "2023-02-29",
            "31.12.2024",
            "2024-13-01",
            "2024-01-01 25:00",
            "2024-01",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn parts_are_named_in_any_case() {
        assert_eq!(part("Train"), Some(Split::Train));
        assert_eq!(part("test"), Some(Split::Test));
        assert_eq!(part("dev"), None);
    }
}
