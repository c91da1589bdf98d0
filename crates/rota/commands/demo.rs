//! `rota federation demo`: writes the files of a federation on this machine.

use std::io::{self, BufWriter, Write};

use lab::demo::{self, DemoOptions as Wanted};
use simulations::Scenario;

use super::CommandError;
use crate::cli::{MakeDemo, data_folder};

/// The scenario of a demo that names none.
const DEFAULT: &str = "diabetes";

/// Writes the files, and prints how to start the silos.
pub(crate) fn run(demo: &MakeDemo) -> Result<(), CommandError> {
    let name = demo.scenario.as_deref().unwrap_or(DEFAULT);
    let scenario = Scenario::load(name)?.with(&demo.overrides())?;
    let wanted = Wanted {
        folder: demo.folder.clone(),
        transport: demo.transport.into(),
        base_port: demo.base_port,
        data: data_folder(demo.data.as_deref()),
    };
    let (id, members) = demo::demo(&wanted, &scenario)?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "federation {id:#}")?;
    writeln!(out, "Start each silo in a terminal of its own:")?;
    for member in &members {
        writeln!(out, "  rota run --config {}", member.config.display())?;
    }
    Ok(out.flush()?)
}
