//! Questions about the columns of tables, answered at a terminal by the options that they name.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use super::asking::answer;
use crate::cli::Columns;

/// What `draft` makes of tables with options about their columns. Where it asks for more of them and somebody is
/// at a terminal, the person adds some, and it is tried again.
///
/// # Errors
/// That of `draft`.
pub(super) fn with_answers<T, E: Display>(
    columns: &Columns,
    mut draft: impl FnMut(&Columns) -> Result<T, E>,
) -> Result<T, E> {
    let mut columns = columns.clone();
    loop {
        let error = match draft(&columns) {
            Ok(drafted) => return Ok(drafted),
            Err(error) => error,
        };
        // Whatever asks names the options that answer it.
        let asks = error.to_string().contains(" --");
        if !asks || !io::stdin().is_terminal() {
            return Err(error);
        }
        match added(&mut columns, &error) {
            Ok(true) => {}
            Ok(false) | Err(_) => return Err(error),
        }
    }
}

/// Whether somebody has added options that answer a question.
fn added(columns: &mut Columns, question: &impl Display) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    writeln!(out, "{question}")?;
    loop {
        let line = answer(&mut out, "Options that answer this (empty: none): ")?;
        if line.is_empty() {
            return Ok(false);
        }
        match columns.add(&line) {
            Ok(()) => return Ok(true),
            Err(why) => writeln!(out, "  {why}")?,
        }
    }
}
