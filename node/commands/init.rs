//! `rota init`: looks at data and writes a scenario for them.

use std::io::{self, BufWriter, IsTerminal, Write};

use task::propose::Wishes;

use super::more_columns::with_answers;
use super::{NodeCommandError, vacant, write};
use crate::cli::Init;
use crate::draft::{Prompt, Protection, draft, findings};

/// Writes the scenario, and prints what was found.
pub(super) fn run(options: &Init) -> Result<(), NodeCommandError> {
    let protection = options.protection.wanted().unwrap_or(Protection::Clear);
    let file = &options.out;
    vacant(file, options.force)?;
    let asks = io::stdin().is_terminal();
    let draft = with_answers(&options.columns, |columns| {
        let wishes = Wishes {
            silo_column: options.silo_column.clone(),
            pretend_silos: options.pretend_silos,
            ..columns.wishes()
        };
        let (mut input, mut output) = (io::stdin().lock(), io::stderr().lock());
        let mut ask = Prompt {
            input: &mut input,
            output: &mut output,
        };
        let ask = asks.then_some(&mut ask);
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
