//! Questions about a table that a person answers at a terminal.

use std::io;
use std::path::PathBuf;

use task::data::DataError;
use task::propose::{SchemaProposal, Wishes, propose};
use task::questions::{RowDoubt, RowQuestion};

use super::compose::ComposeError;
use crate::prompt::Prompt;
use crate::row_answers::is_missing;

/// Returns the proposal for these files, once a person has answered what only a person can. The answers become wishes.
///
/// # Errors
/// [`ComposeError`]: files that cannot be read, or questions that nobody can be asked.
pub(super) fn proposed(
    files: &[PathBuf],
    wishes: &mut Wishes,
    mut ask: Option<&mut Prompt<'_>>,
) -> Result<SchemaProposal, ComposeError> {
    loop {
        let open = match propose(files, wishes) {
            Err(DataError::Unanswered(open)) => open,
            other => return Ok(other?),
        };
        match ask.as_deref_mut() {
            Some(ask) if !open.questions.is_empty() => {
                for question in &open.questions {
                    answer(question, wishes, ask)?;
                }
            }
            _ => return Err(DataError::Unanswered(open).into()),
        }
    }
}

/// Asks a question, and adds the answer to the wishes.
fn answer(question: &RowQuestion, wishes: &mut Wishes, ask: &mut Prompt<'_>) -> io::Result<()> {
    let (column, what) = (&question.column, &question.what);
    match question.doubt {
        RowDoubt::StandIn(value) => match is_missing(what, ask)? {
            true => wishes.missing.push(format!("{column}={value}")),
            false => wishes.keep.push((column.clone(), value.to_string())),
        },
        RowDoubt::Identifier => {
            let asked = format!(
                "{what}. Does it say whose a row is (`group`), is it to be left out (`drop`), or is it something to \
                 learn from (`number`, `category`)?"
            );
            let name = column.clone();
            match ask.one_of(&asked, &["group", "drop", "number", "category"])? {
                0 if wishes.group.is_none() => wishes.group = Some(name),
                0 | 1 => wishes.drop.push(name),
                2 => wishes.numbers.push(name),
                _ => wishes.categories.push(name),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fmt::Write;

    use super::*;

    #[test]
    fn at_a_terminal_every_question_is_asked_and_its_answer_counts() {
        let mut text = String::from("dossier,lab,age,outcome\n");
        for row in 0..300_usize {
            let person = row * 7919 % 50;
            let lab = if row % 60 == 9 { 999 } else { row * 31 % 40 };
            let (age, coin) = (
                20 + row * 17 % 61,
                ["no", "yes"][((person * 40_503) >> 5) % 2],
            );
            writeln!(text, "{},{lab},{age},{coin}", 4_000_000 + 7_177 * person).unwrap();
        }
        let file = std::env::temp_dir().join(format!("rota-asked-{}.csv", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let files = [file];
        let wanted = Wishes {
            target: Some("outcome".into()),
            alone: true,
            ..Wishes::default()
        };
        let mut nobody = wanted.clone();
        let why = proposed(&files, &mut nobody, None).unwrap_err().to_string();
        assert!(
            why.contains("--group \"dossier\"") && why.contains("--keep \"lab=999\""),
            "{why}"
        );
        let (mut output, mut wishes) = (Vec::new(), wanted);
        let mut ask = Prompt::scripted("perhaps\ngroup\nmissing\n", &mut output);
        let proposal = proposed(&files, &mut wishes, Some(&mut ask)).unwrap();
        drop(ask);
        assert_eq!(proposal.group.unwrap().0, "dossier");
        assert_eq!(proposal.missing["lab"], ["999"]);
        assert_eq!(
            (wishes.group.as_deref(), &*wishes.missing),
            (Some("dossier"), &["lab=999".to_owned()][..])
        );
        let said = String::from_utf8(output).unwrap();
        assert!(
            said.contains("one of group, drop, number, category is needed"),
            "{said}"
        );
    }
}
