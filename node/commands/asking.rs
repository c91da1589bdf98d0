//! Questions to whoever runs a command at a terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use super::NodeCommandError;

/// That somebody can be asked.
///
/// # Errors
/// [`NodeCommandError::Usage`]: nobody can; `otherwise` says what was not done, and what to add.
pub(super) fn at_a_terminal(otherwise: impl FnOnce() -> String) -> Result<(), NodeCommandError> {
    match io::stdin().is_terminal() {
        true => Ok(()),
        false => Err(NodeCommandError::Usage(otherwise())),
    }
}

/// What somebody answers to a question, without the spaces around it.
pub(super) fn answer(out: &mut impl Write, question: &str) -> io::Result<String> {
    write!(out, "{question}")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Whether somebody says yes to a question; anything else is no.
pub(super) fn says_yes(out: &mut impl Write, question: &str) -> io::Result<bool> {
    let answer = answer(out, &format!("{question} [y/N] "))?.to_lowercase();
    Ok(matches!(&*answer, "y" | "yes"))
}
