//! `rota scenarios` and `rota experiments`: list what is built in.

use std::io::{self, Write};

use lab::compare::{self, Choices, Experiment};
use simulations::Scenario;
use simulations::scenario::BUILT_IN;

use super::CommandError;

/// Prints a line per scenario.
pub(crate) fn run() -> Result<(), CommandError> {
    let described = |name: &str| Ok(Scenario::load(name)?.description);
    list(BUILT_IN, described)
}

/// Prints a line per experiment.
pub(crate) fn experiments() -> Result<(), CommandError> {
    let described = |name: &str| Ok(Experiment::load(name, &Choices::default())?.description);
    list(compare::BUILT_IN, described)
}

fn list(
    built_in: &[(&str, &str)],
    described: impl Fn(&str) -> Result<String, CommandError>,
) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let width = built_in
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, _) in built_in {
        writeln!(out, "{name:width$}  {}", described(name)?)?;
    }
    Ok(())
}
