//! `rota init`: looks at data and writes a scenario for them.

use std::fs;
use std::io::{self, BufWriter, Write};

use rota::init;
use rota::learn::propose::Wishes;

use super::CommandError;
use crate::cli::Init;

/// Writes the scenario, and prints what was found.
pub(crate) fn run(options: &Init) -> Result<(), CommandError> {
    let wishes = Wishes {
        target: options.target.clone(),
        positive: options.positive.clone(),
        silo_column: options.silo_column.clone(),
        drop: options.drop.clone(),
        numbers: options.number.clone(),
        categories: options.category.clone(),
    };
    let file = &options.out;
    if file.exists() && !options.force {
        return Err(CommandError::Exists(file.clone()));
    }
    let draft = init::draft(&options.data, &wishes, file)?;
    fs::write(file, &draft.text).map_err(|reason| CommandError::Write {
        path: file.clone(),
        reason,
    })?;
    let mut out = BufWriter::new(io::stdout().lock());
    for line in init::findings(&draft) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "written: {}. Read it, then:", file.display())?;
    writeln!(out, "  rota simulate {}", file.display())?;
    Ok(out.flush()?)
}
