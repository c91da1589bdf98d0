//! `rota init`: looks at data and writes a scenario for them.

use std::io::{self, BufWriter, Write};

use rota::init;
use rota::learn::propose::Wishes;

use super::{CommandError, vacant, write};
use crate::cli::Init;

/// Writes the scenario, and prints what was found.
pub(crate) fn run(options: &Init) -> Result<(), CommandError> {
    let wishes = Wishes {
        target: options.target.clone(),
        positive: options.positive.clone(),
        silo_column: options.silo_column.clone(),
        pretend_silos: options.pretend_silos,
        drop: options.drop.clone(),
        numbers: options.number.clone(),
        categories: options.category.clone(),
        alone: false,
        marks: options.marks.into(),
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
