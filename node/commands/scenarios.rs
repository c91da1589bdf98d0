//! `rota scenarios`: what is built in.

use std::io::{self, Write};

use rota::simulations::Scenario;
use rota::simulations::scenario::BUILT_IN;

use super::CommandError;

/// Lists the built-in scenarios, a line each.
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
