//! Values and columns that a schema speaks of.

use crate::schema::{LocalNames, Schema};

/// The values that a schema agrees on by name.
pub fn agreed_values(schema: &Schema) -> impl Iterator<Item = &str> {
    let levels = schema
        .columns()
        .filter_map(|(_, feature)| feature.kind.levels())
        .flat_map(|levels| &levels.listed);
    let classes = schema.target.classes.iter().flatten();
    let classes = classes.flat_map(|class| class.values());
    levels.chain(classes).map(String::as_str)
}

/// The columns of a file that hold numbers.
pub fn number_columns<'a>(schema: &'a Schema, names: &'a LocalNames) -> Vec<&'a str> {
    let features = schema
        .columns()
        .filter(|(_, feature)| feature.kind.quantity().is_some());
    let features = features.map(|(name, _)| name);
    let target = &schema.target;
    let target = target.name.iter().filter(|_| target.classes.is_none());
    features
        .chain(target)
        .map(|name| names.column(name))
        .collect()
}

/// The columns of a file that are read by a schema.
pub fn read_columns<'a>(schema: &'a Schema, names: &'a LocalNames) -> Vec<&'a str> {
    let all = schema.names().chain(schema.target.name.iter());
    all.map(|name| names.column(name)).collect()
}
