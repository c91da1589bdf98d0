//! `rota federation new` and `show`: makes an agreement, and says it in words.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use rota::agreement::Agreement;
use rota::federation;
use rota::init;
use rota::institution::SetupError;
use rota::simulations::Scenario;

use super::{CommandError, vacant, write};
use crate::cli::NewFederation;

/// Writes a new agreement, and says what it is.
pub(crate) fn new(options: &NewFederation) -> Result<(), CommandError> {
    let mut scenario = Scenario::load(&options.scenario)?;
    if let Some(name) = &options.name {
        scenario.name.clone_from(name);
    }
    let file = &options.out;
    vacant(file, options.force)?;
    let agreement = init::agreement(&scenario, &options.members)?;
    let text = agreement.to_toml().map_err(CommandError::Toml)?;
    write(file, &text)?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "written: {}", file.display())?;
    writeln!(out, "federation {:#}", agreement.epoch.federation)?;
    writeln!(
        out,
        "Give every member this file. Each reads it with `rota federation show {}`, compares the id \
         with the others, and names the file in its silo.toml.",
        file.display()
    )?;
    Ok(out.flush()?)
}

/// Prints an agreement in words.
pub(crate) fn show(file: &Path) -> Result<(), CommandError> {
    let agreement = Agreement::load(file).map_err(SetupError::from)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for line in federation::words(&agreement) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
