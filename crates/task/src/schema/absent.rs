//! Replacements of agreed columns that a file does not have: nothing in it tells their mean, so the agreed
//! values are used.

use std::collections::BTreeMap;
use std::path::Path;

use super::{ColumnType, Levels, LocalNames, Quantity, Schema};
use crate::data::DataError;

/// The numbers of the columns that a file does not have.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    numbers: BTreeMap<String, Vec<f64>>,
    said: Vec<String>,
}

impl StandIns {
    /// Of the columns that `local` calls absent, in a file with this header.
    ///
    /// # Errors
    /// [`DataError::Config`]: the file has one of them.
    pub(super) fn of(
        schema: &Schema,
        local: &LocalNames,
        path: &Path,
        header: &[String],
    ) -> Result<Self, DataError> {
        let mut all = Self::default();
        for (name, feature) in schema.columns().filter(|(name, _)| local.lacks(name)) {
            let own = local.column(name);
            if header.iter().any(|column| column == own) {
                return Err(DataError::Config(format!(
                    "`absent` names {name:?}, and {} has the column {own:?}: take it out of `absent`",
                    path.display()
                )));
            }
            let (numbers, said) = match &feature.kind {
                ColumnType::Category(levels) => {
                    let (share, count) = share(levels);
                    (vec![share; count - 1], "no level in particular".to_owned())
                }
                ColumnType::Date(days) => match days.range() {
                    Some([low, high]) => {
                        let middle = f64::midpoint(low, high);
                        let said = format!("{}, the middle of the agreed days", days.day(middle));
                        (vec![middle], said)
                    }
                    None => (vec![f64::NAN], "average".to_owned()),
                },
                ColumnType::Number(quantity) | ColumnType::Integer(quantity) => {
                    match middle(quantity, schema.usual.get(name)) {
                        Some((middle, of)) => {
                            (vec![middle], format!("{middle}, the middle of {of}"))
                        }
                        // The silo's own scale calls it average; another one has nothing to put in.
                        None => (vec![f64::NAN], "average".to_owned()),
                    }
                }
            };
            all.said.push(format!(
                "it has no column {name:?}: every row counts there as {said}"
            ));
            all.numbers.insert(name.to_owned(), numbers);
        }
        Ok(all)
    }

    /// The numbers of a column of this agreed name.
    pub(super) fn of_column(&self, name: &str) -> &[f64] {
        self.numbers.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns what stands in for them, in sentences without a full stop.
    pub(super) fn said(&self) -> &[String] {
        &self.said
    }
}

/// The share of every level where none is known, and their number.
fn share(levels: &Levels) -> (f64, usize) {
    let count = levels.all().len();
    (1.0 / count as f64, count)
}

/// The middle of what is agreed about the numbers of a column, and what that is.
fn middle(quantity: &Quantity, usual: Option<&[f64; 2]>) -> Option<(f64, &'static str)> {
    let usual = usual.map(|usual| (*usual, "the usual values of the drafter's table"));
    let range = quantity.range.map(|range| (range, "the agreed range"));
    let ([low, high], of) = usual.or(range)?;
    Some((f64::midpoint(low, high), of))
}
