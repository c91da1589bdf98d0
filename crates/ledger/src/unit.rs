//! What a ledger counts: rows, or persons.

use std::fmt;
use std::str::FromStr;

use protocol::protocol;
use serde::{Deserialize, Serialize};

/// A text that names no unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a unit, `row` or `person:` and the name of a column, found {0:?}")]
pub struct UnitError(pub String);

/// How the column of a person begins in text.
const PERSON: &str = "person:";

/// What is protected as one: a row, or all rows of a person. Written `row`, or `person:` and the name of
/// the column that says whose row it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SourceUnit {
    /// A row.
    Row,
    /// All rows with the same value in this column.
    Person(String),
}

impl fmt::Display for SourceUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row => f.write_str("row"),
            Self::Person(column) => write!(f, "{PERSON}{column}"),
        }
    }
}

impl FromStr for SourceUnit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.strip_prefix(PERSON) {
            Some(column) if !column.trim().is_empty() => Ok(Self::Person(column.to_owned())),
            None if text == "row" => Ok(Self::Row),
            _ => Err(UnitError(text.to_owned())),
        }
    }
}

impl From<&parameters::Unit> for SourceUnit {
    /// The unit that an agreement protects.
    fn from(agreed: &parameters::Unit) -> Self {
        match agreed {
            parameters::Unit::Row => Self::Row,
            parameters::Unit::Person(column) => Self::Person(column.clone()),
        }
    }
}

impl TryFrom<String> for SourceUnit {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<SourceUnit> for String {
    fn from(unit: SourceUnit) -> Self {
        unit.to_string()
    }
}
