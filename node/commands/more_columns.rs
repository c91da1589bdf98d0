//! Questions about the columns of tables, answered at a terminal by the options that they name.

use std::fmt::Display;
use std::io;

use crate::cli::Columns;
use crate::prompt::Prompt;

/// Returns the result of `draft` for tables with options about their columns. Where it asks for more of them and
/// somebody can be asked, the person adds some, and it is tried again.
///
/// # Errors
/// That of `draft`.
pub(super) fn with_answers<T, E: Display>(
    columns: &Columns,
    mut ask: Option<&mut Prompt<'_>>,
    mut draft: impl FnMut(&Columns, Option<&mut Prompt<'_>>) -> Result<T, E>,
) -> Result<T, E> {
    let mut columns = columns.clone();
    loop {
        let error = match draft(&columns, ask.as_deref_mut()) {
            Ok(drafted) => return Ok(drafted),
            Err(error) => error,
        };
        let said = error.to_string();
        // Whatever asks names the options that answer it.
        let somebody = ask.as_deref_mut().filter(|_| said.contains(" --"));
        match somebody.map(|ask| added(&mut columns, &said, ask)) {
            Some(Ok(true)) => {}
            _ => return Err(error),
        }
    }
}

/// Returns whether somebody has added options that answer a question.
fn added(columns: &mut Columns, question: &str, ask: &mut Prompt<'_>) -> io::Result<bool> {
    ask.say(question)?;
    loop {
        let line = ask.answer("Options that answer this (empty: none)")?;
        if line.is_empty() {
            return Ok(false);
        }
        match columns.add(&line) {
            Ok(()) => return Ok(true),
            Err(why) => ask.say(&format!("  {why}"))?,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_are_added_at_a_terminal_until_nothing_is_asked() {
        let draft = |columns: &Columns, _: Option<&mut Prompt<'_>>| match &*columns.drop {
            [] => Err("column \"quaternary\": say --drop \"quaternary\""),
            [one] => Err(match &**one {
                "quaternary" => "column \"bay\": say --drop \"bay\"",
                _ => "nothing can be read",
            }),
            both => Ok(both.to_vec()),
        };
        let (none, mut asked) = (Columns::default(), Vec::new());
        let nobody = with_answers(&none, None, draft);
        assert!(nobody.unwrap_err().contains("quaternary"));
        let mut ask = Prompt::scripted("--dorp a\n--drop quaternary\n--drop bay\n", &mut asked);
        let found = with_answers(&none, Some(&mut ask), draft);
        assert_eq!(found.unwrap(), ["quaternary", "bay"]);
        drop(ask);
        // Nothing answers an error that asks nothing, and an empty line is no answer.
        for answers in ["--drop bay\n--drop quaternary\n", "\n"] {
            let mut shown = Vec::new();
            let mut ask = Prompt::scripted(answers, &mut shown);
            assert!(with_answers(&none, Some(&mut ask), draft).is_err());
        }
        let asked = String::from_utf8(asked).unwrap();
        assert!(asked.contains("unexpected argument '--dorp'"), "{asked}");
    }
}
