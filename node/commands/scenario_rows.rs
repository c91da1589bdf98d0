//! Answers of a person at a terminal about the rows of a scenario, before anything is learned from them.

use serde::Serialize;
use task::data::{RowsConfig, RowsFile};
use task::questions::{AskedAt, RowQuestion};
use task::{Source, TaskConfig};

use super::NodeCommandError;
use crate::prompt::Prompt;
use crate::row_answers::SaidOfRows;

/// Asks about the rows of files of a task, which takes the answers, and says what to write for them into the scenario's
/// file.
///
/// # Errors
/// [`NodeCommandError`]: a column says whose a row is, or the terminal was closed.
pub fn ask_about_scenario(
    questions: &[RowQuestion],
    task: &mut TaskConfig,
    file: &str,
    ask: &mut Prompt<'_>,
) -> Result<(), NodeCommandError> {
    let source = match task {
        TaskConfig::Table(table) => table.data.as_mut(),
        _ => None,
    };
    let Some(Source::Rows(rows)) = source else {
        return Err(NodeCommandError::Usage(
            "the scenario names no files whose rows could be asked about".into(),
        ));
    };
    let before = rows.clone();
    for question in questions {
        match SaidOfRows::asked(question, "The scenario", ask)? {
            SaidOfRows::Missing(value) => {
                let column = &question.column;
                let files = rows.files.iter_mut();
                for file in files.filter(|file| !file.names.absent.contains(column)) {
                    let marks = file.names.missing.entry(column.clone()).or_default();
                    marks.push(value.to_string());
                }
            }
            SaidOfRows::Right => rows.answers.answer(question),
            SaidOfRows::Whose => {
                let what = question.at(AskedAt::Scenario);
                return Err(NodeCommandError::Usage(format!("nothing was run. {what}")));
            }
        }
    }
    ask.say(&format!("To be asked no more, write into {file}"))?;
    for line in lines(&before, rows) {
        ask.say(&format!("  {line}"))?;
    }
    Ok(())
}

/// Returns what was answered since `before`, as it stands in the file.
fn lines(before: &RowsConfig, now: &RowsConfig) -> Vec<String> {
    let mut lines = Vec::new();
    if now.answers != before.answers {
        let answers = inline(&now.answers);
        lines.push(format!("below [task.table.data.rows]: answers = {answers}"));
    }
    let files = before.files.iter().zip(&now.files);
    let changed = files.filter(|(before, now)| before.names != now.names);
    let changed: Vec<&RowsFile> = changed.map(|(_, now)| now).collect();
    let names = |file: &RowsFile| format!("names = {}", inline(&file.names));
    match changed.as_slice() {
        [first, _, ..] if changed.iter().all(|file| file.names == first.names) => {
            lines.push(format!(
                "in each of its {} `files`: {}",
                changed.len(),
                names(first)
            ));
        }
        some => lines.extend(some.iter().map(|file| {
            let path = file.path.display();
            format!("in `files`, beside the path {path}: {}", names(file))
        })),
    }
    lines
}

/// A table of TOML in one line.
fn inline(table: &impl Serialize) -> String {
    let table = toml::Value::try_from(table).expect("texts are TOML");
    table.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use task::questions::RowDoubt;

    use super::*;

    const FILES: &str = "[task.table]\nmodel = 'logistic'\n[task.table.data.rows]\n\
                         files = [{ path = 'a.csv' }, { path = 'b.csv' }]\n";

    fn read(text: &str) -> TaskConfig {
        let scenario: toml::Table = text.parse().unwrap();
        scenario["task"].clone().try_into().unwrap()
    }

    fn question(column: &str, doubt: RowDoubt) -> RowQuestion {
        RowQuestion {
            column: column.into(),
            doubt,
            what: format!("column {column:?}: something is odd"),
        }
    }

    /// Returns what the task is after these answers, and what was shown; or why there is none.
    fn said(questions: &[RowQuestion], answers: &str) -> Result<(TaskConfig, String), String> {
        let mut task = read(FILES);
        let mut shown = Vec::new();
        let mut ask = Prompt::scripted(answers, &mut shown);
        let found = ask_about_scenario(questions, &mut task, "s.toml", &mut ask);
        drop(ask);
        found.map_err(|error| error.to_string())?;
        Ok((task, String::from_utf8(shown).unwrap()))
    }

    #[test]
    fn answers_about_a_scenario_are_used_and_can_be_pasted() {
        let lab = || question("lab \"1\"", RowDoubt::StandIn(7777.0));
        let bed = question("bed", RowDoubt::Identifier);
        let (measured, shown) = said(&[lab(), bed], "measured\nlearn\n").unwrap();
        let (_, answers) = shown.split_once("[task.table.data.rows]: ").unwrap();
        let pasted = format!("{FILES}{answers}");
        assert_eq!(measured, read(&pasted), "{shown}");
        let (missing, shown) = said(&[lab()], "perhaps\nmissing\n").unwrap();
        let (_, names) = shown.split_once("in each of its 2 `files`: ").unwrap();
        let pasted = FILES.replace("' }", &format!("', {} }}", names.trim()));
        assert_eq!(missing, read(&pasted), "{shown}");
    }

    #[test]
    fn a_column_of_persons_ends_a_simulation() {
        let dossier = [question("dossier", RowDoubt::Identifier)];
        let why = said(&dossier, "person\n").unwrap_err();
        assert!(
            why.contains("nothing was run") && why.contains("`group = \"dossier\"` in `split`"),
            "{why}"
        );
        // A terminal that closes has answered nothing.
        assert!(said(&dossier, "").is_err());
    }
}
