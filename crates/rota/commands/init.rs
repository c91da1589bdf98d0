//! `rota init`: looks at data and writes a scenario for them.

use std::io::{self, BufWriter, Write};

use lab::init;
use task::propose::Wishes;

use super::{CommandError, vacant, write};
use crate::cli::Init;

/// Writes the scenario, and prints what was found.
pub(crate) fn run(options: &Init) -> Result<(), CommandError> {
    let wishes = Wishes {
        silo_column: options.silo_column.clone(),
        pretend_silos: options.pretend_silos,
        ..options.columns.wishes()
    };
    let file = &options.out;
    vacant(file, options.force)?;
    let draft = init::draft(&options.data, &wishes, file)?;
    write(file, &draft.text)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for line in init::findings(&draft) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "written: {}. Read it, then:", file.display())?;
    writeln!(out, "  rota simulate {}", file.display())?;
    Ok(out.flush()?)
}
