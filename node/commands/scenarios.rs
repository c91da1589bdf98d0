//! `rota scenarios`: lists the built-in scenarios.

use std::io::{self, Write};

use rota::simulations::Scenario;
use rota::simulations::scenario::BUILT_IN;

use super::CommandError;

/// Prints a line per scenario.
pub(crate) fn run() -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let width = BUILT_IN
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, _) in BUILT_IN {
        let scenario = Scenario::load(name)?;
        writeln!(out, "{name:width$}  {}", scenario.description)?;
    }
    Ok(())
}
