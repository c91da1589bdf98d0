//! `rota schema`: the JSON Schema of a TOML file.

use std::io::{self, Write};

use super::CommandError;
use crate::cli::Schema;

/// Prints the schema.
pub(crate) fn run(schema: &Schema) -> Result<(), CommandError> {
    let document = schema.file.document().schema();
    let mut out = io::stdout().lock();
    Ok(writeln!(out, "{document:#}")?)
}
