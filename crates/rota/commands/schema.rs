//! `rota schema`: the JSON Schema of a TOML file.

use std::io::{self, Write};

use super::CommandError;
use crate::cli::PrintSchema;

/// Prints the schema.
pub(crate) fn run(schema: &PrintSchema) -> Result<(), CommandError> {
    let document = schema.file.document().schema();
    let mut out = io::stdout().lock();
    Ok(writeln!(out, "{document:#}")?)
}
