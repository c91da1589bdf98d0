//! Columns that a schema speaks of.

use crate::schema::{LocalNames, ReadCells, Schema};

/// The columns of a file that hold numbers.
pub fn number_columns<'a>(schema: &'a Schema, names: &'a LocalNames) -> Vec<&'a str> {
    let features = schema
        .columns()
        .filter(|(_, feature)| match feature.kind.cells() {
            ReadCells::Numbers { .. } => true,
            ReadCells::Days(_) | ReadCells::Levels(_) => false,
        });
    let features = features.map(|(name, _)| name);
    let target = &schema.target;
    let target = target.name.iter().filter(|_| target.classes.is_none());
    features
        .chain(target)
        .filter(|name| !names.lacks(name))
        .map(|name| names.column(name))
        .collect()
}

/// The columns of a file that are read by a schema.
pub fn read_columns<'a>(schema: &'a Schema, names: &'a LocalNames) -> Vec<&'a str> {
    let all = schema.names().chain(schema.target.name.iter());
    all.filter(|name| !names.lacks(name))
        .map(|name| names.column(name))
        .collect()
}
