//! Replacements of agreed columns that a file does not have: nothing in it tells their mean, so the agreed
//! values are used.

use std::collections::BTreeMap;
use std::path::Path;

use super::feature::EncodedCells;
use super::{ColumnType, LocalNames, Quantity, Schema};
use crate::data::DataError;

/// The numbers of the columns that a file does not have.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    cells: BTreeMap<String, EncodedCells>,
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
            let mut cells = EncodedCells::default();
            let said = match &feature.kind {
                ColumnType::Category(levels) => {
                    let count = levels.all().len();
                    cells.share(count, 1.0 / count as f64);
                    "no level in particular".to_owned()
                }
                ColumnType::Date(days) => days.stand_in(&mut cells),
                ColumnType::Number(quantity) | ColumnType::Integer(quantity) => {
                    let found = middle(quantity, schema.usual.get(name));
                    cells.number(found.map(|(middle, _)| middle));
                    match found {
                        Some((middle, of)) => format!("{middle}, the middle of {of}"),
                        // The silo's own scale calls it average; another one has nothing to put in.
                        None => "average".to_owned(),
                    }
                }
            };
            all.said.push(format!(
                "it has no column {name:?}: every row counts there as {said}"
            ));
            all.cells.insert(name.to_owned(), cells);
        }
        Ok(all)
    }

    /// The numbers of a column of this agreed name.
    pub(super) fn of_column(&self, name: &str) -> Option<&EncodedCells> {
        self.cells.get(name)
    }

    /// Returns what stands in for them, in sentences without a full stop.
    pub(super) fn said(&self) -> &[String] {
        &self.said
    }
}

/// The middle of what is agreed about the numbers of a column, and what that is.
fn middle(quantity: &Quantity, usual: Option<&[f64; 2]>) -> Option<(f64, &'static str)> {
    let usual = usual.map(|usual| (*usual, "the usual values of the drafter's table"));
    let range = quantity.range.map(|range| (range, "the agreed range"));
    let ([low, high], of) = usual.or(range)?;
    Some((f64::midpoint(low, high), of))
}
