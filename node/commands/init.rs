//! `rota init`: looks at data and writes a scenario for them.

use std::io::{self, BufWriter, Write};

use task::propose::Wishes;

use super::more_columns::with_answers;
use super::{NodeCommandError, vacant, write};
use crate::cli::Init;
use crate::draft::{Protection, draft, findings};
use crate::prompt::Prompt;

/// Writes the scenario, and prints what was found.
pub(super) fn run(options: &Init) -> Result<(), NodeCommandError> {
    let protection = options.protection.wanted().unwrap_or(Protection::Clear);
    let file = &options.out;
    vacant(file, options.force)?;
    let mut ask = Prompt::at_terminal();
    let draft = with_answers(&options.columns, ask.as_mut(), |columns, ask| {
        let wishes = Wishes {
            silo_column: options.silo_column.clone(),
            pretend_silos: options.pretend_silos,
            ..columns.wishes()
        };
        draft(&options.data, &wishes, file, &protection, ask)
    })?;
    write(file, &draft.text)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for line in findings(&draft) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "written: {}. Read it, then:", file.display())?;
    writeln!(out, "  rota simulate {}", file.display())?;
    Ok(out.flush()?)
}
