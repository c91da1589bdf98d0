//! Split by an agreed date, from which on rows are held out: the part of a row, or of all rows of a group,
//! depends on its own time, and on no other row.

use methods::learner::Split;

use super::{Parts, SplitConfig, Units};
use crate::data::{DataError, Table, date};

/// From when on rows are held out, in the unit of the times of rows.
pub(super) struct Dates {
    validation: f64,
    test: f64,
}

/// The time that a text names: a number, or a date.
fn moment(text: &str) -> Option<f64> {
    let number = text.parse().ok().filter(|time: &f64| time.is_finite());
    number.or_else(|| date(text))
}

impl SplitConfig {
    /// The agreed dates, if there are any.
    ///
    /// # Errors
    /// [`DataError::Config`]: a text that is no time, or keys that do not go with them.
    pub(super) fn dates(&self) -> Result<Option<Dates>, DataError> {
        let wrong = |what: &str| Err(DataError::Config(format!("`split`: {what}")));
        let read = |key: &str, text: &Option<String>| -> Result<Option<f64>, DataError> {
            let Some(text) = text else { return Ok(None) };
            let none = || {
                DataError::Config(format!(
                    "`split`: `{key}` is {text:?}, and must be a number or a date such as \"2024-05-31\", as \
                     the column `time` holds them"
                ))
            };
            moment(text).ok_or_else(none).map(Some)
        };
        let test = read("test-from", &self.test_from)?;
        let validation = read("validation-from", &self.validation_from)?;
        match (test, validation) {
            (None, None) => Ok(None),
            (None, Some(_)) => {
                wrong("`validation-from` is for rows before `test-from`: write both")
            }
            _ if self.time.is_none() => {
                wrong("`test-from` needs `time`, the column that holds the time of each row")
            }
            _ if self.column.is_some() => wrong(
                "`test-from` and `column` exclude each other: both say which rows are test rows. Leave out \
                 one of them",
            ),
            _ if self.validation > 0.0 => wrong(
                "`validation` is a fraction, and with `test-from` rows are held out by their dates: write \
                 `validation-from` in its place",
            ),
            (Some(test), Some(validation)) if validation >= test => {
                wrong("`validation-from` must be before `test-from`")
            }
            (Some(test), validation) => Ok(Some(Dates {
                validation: validation.unwrap_or(test),
                test,
            })),
        }
    }
}

impl Dates {
    /// Units that begin at or after a date are held out from it on; of the others no row is trained on, or
    /// chosen with, that goes on into the time after it.
    pub(super) fn parts(&self, table: &Table, units: &Units) -> Parts {
        let begins = |unit: &Vec<usize>| {
            let times = unit.iter().map(|&row| table.times[row]);
            times.fold(f64::INFINITY, f64::min)
        };
        let part = |unit: &Vec<usize>| match begins(unit) {
            time if time >= self.test => Split::Test,
            time if time >= self.validation => Split::Validation,
            _ => Split::Train,
        };
        let mut parts = Parts::of(units, part);
        let over = |row: usize, date: f64| {
            let (time, end) = (table.times[row], table.times[row] + table.span);
            time < date && end <= date
        };
        parts.train.retain(|&row| over(row, self.validation));
        parts.validation.retain(|&row| over(row, self.test));
        parts
    }
}
