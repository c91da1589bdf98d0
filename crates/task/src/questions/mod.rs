//! Questions about rows that only a person can answer, before anybody learns from them, identical at every
//! door: does a number stand for a missing value, and does a column say whose a row is.
//!
//! Both follow from how a column behaves, not from what it is called or from a list of numbers.

mod asked;
mod columns;
mod identifier;
mod profile;
mod stand_in;

use crate::data::DataSet;

pub use self::asked::{AskedAt, RowAnswers, RowDoubt, RowQuestion, Unanswered};
pub(crate) use self::columns::{RowColumn, RowColumns, RowValues};
pub(crate) use self::identifier::{groups_of, identifiers};
pub use self::profile::{ColumnProfile, RowsProfile};
pub(crate) use self::stand_in::stand_ins;

/// Returns what a person has to say about the rows of a data set that were read by a schema, and has not said.
pub fn questions(data: &DataSet, answers: &RowAnswers) -> Vec<RowQuestion> {
    let Some(rows) = RowColumns::of(data) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut odd = |name: &str, column: &RowColumn| {
        let numbers = match column.kind {
            RowValues::Numbers => column.counted(),
            RowValues::Codes | RowValues::Texts => Vec::new(),
        };
        let odd = stand_ins(&numbers).into_iter();
        let odd = odd.filter(|(value, _)| !answers.keeps(name, *value));
        found.extend(odd.map(|odd| RowQuestion::stand_in(name, odd)));
    };
    for (at, name) in rows.names.iter().enumerate() {
        odd(name, &(rows.column)(at));
    }
    for (name, column) in &rows.targets {
        odd(name, column);
    }
    let persons = identifiers(&rows).into_iter();
    found.extend(persons.filter(|question| !answers.learns(&question.column)));
    found
}

#[cfg(test)]
mod tests;
