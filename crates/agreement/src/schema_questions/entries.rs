//! Keys of TOML in an order for readers.

use serde::Serialize;
use toml::{Table, Value};

/// The keys of schemas and questions, in the order in which they are written; others follow.
const ORDER: [&str; 24] = [
    "reason",
    "kind",
    "rows",
    "columns",
    "probabilities",
    "width",
    "min-rows",
    "only",
    "subgroup",
    "usual",
    "name",
    "type",
    "unit",
    "range",
    "censored",
    "since",
    "until",
    "levels",
    "other",
    "missing",
    "classes",
    "positive",
    "rule",
    "mask",
];

/// The keys of a table with their values.
///
/// # Errors
/// A value that TOML cannot express.
pub(super) fn entries(table: &impl Serialize) -> Result<Vec<(String, Value)>, String> {
    let table = Table::try_from(table).map_err(|error| error.to_string())?;
    let mut entries: Vec<(String, Value)> = table.into_iter().collect();
    let place = |key: &str| ORDER.iter().position(|known| *known == key);
    entries.sort_by_key(|(key, _)| place(key).unwrap_or(ORDER.len()));
    Ok(entries)
}

/// Writes each key with its value in a line. The keys are bare ones.
pub(super) fn push(text: &mut String, entries: &[(String, Value)]) {
    for (key, value) in entries {
        *text += &format!("{key} = {value}\n");
    }
}
