//! Names that an institution's files have for what is agreed: printed, asked for, and written into `node.toml`.

use std::io;
use std::path::Path;

use crate::cli::OwnNames;
use crate::federation::{own_tables, with_names};
use crate::institution::surveyed;
use agreement::{Agreement, read_configuration};
use task::data::OwnRows;
use task::schema::{LocalNames, OPEN};
use task::survey::Survey;

use super::rows::say;
use super::{NodeCommandError, write};
use crate::prompt::Prompt;

/// An answer for a column that the files do not have, or a text that means a missing value.
const NONE: &str = "-";

/// Asks for what only a person knows of rows that do not fit, and whether that is to be used. `None`: nothing is
/// known, or the person says no.
pub(super) fn asked_for_names(
    agreement: &Agreement,
    rows: &OwnRows,
    folder: &Path,
    ask: &mut Prompt<'_>,
) -> Result<Option<LocalNames>, NodeCommandError> {
    let Ok(survey) = surveyed(agreement, rows, folder) else {
        return Ok(None);
    };
    let found = answered(&survey, ask)?;
    let Some(names) = found.filter(|names| *names != rows.names) else {
        return Ok(None);
    };
    say(&names.written())?;
    Ok(ask
        .says_yes("Read the rows with these names?")?
        .then_some(names))
}

/// The names that would fit, with what somebody answers in place of what is open.
fn answered(survey: &Survey, ask: &mut Prompt<'_>) -> io::Result<Option<LocalNames>> {
    let Some(mut names) = survey.names.clone() else {
        return Ok(None);
    };
    let mut given = OwnNames::default();
    let open = names.columns.iter().filter(|(_, own)| *own == OPEN);
    for (agreed, _) in open {
        let there = survey.unread.join(", ");
        let question = format!(
            "{agreed:?} is agreed. What is it called here ({there}; {NONE} if the files do not have it)?"
        );
        match &*ask.answer(&question)? {
            "" => {}
            NONE => given.absent.push(agreed.clone()),
            own => given.column.extend([agreed.clone(), own.to_owned()]),
        }
    }
    for (column, codes) in &names.codes {
        for (text, _) in codes.iter().filter(|(_, value)| *value == OPEN) {
            let question =
                format!("What does {text:?} of {column:?} mean ({NONE} for a missing value)?");
            match &*ask.answer(&question)? {
                "" => {}
                NONE => given.missing.extend([column.clone(), text.clone()]),
                value => {
                    let code = [column, text].map(Clone::clone);
                    given
                        .code
                        .extend(code.into_iter().chain([value.to_owned()]));
                }
            }
        }
    }
    given.add_to(&mut names);
    Ok(Some(names))
}

/// Writes the names and answers of rows into a `node.toml` that is there, in place of its own; whether that changes it.
///
/// # Errors
/// [`NodeCommandError::Failed`]: a person has to write them.
pub(super) fn write_names(config: &Path, rows: &OwnRows) -> Result<bool, NodeCommandError> {
    let text = read_configuration(config)?;
    let written = with_names(&text, rows).ok_or_else(|| {
        let [names, answers] = own_tables(rows).map(|lines| lines.join("\n"));
        NodeCommandError::Failed(format!(
            "write the names of the columns, and what is answered about them, into {} yourself, and try \
             again:\n{names}\n{answers}",
            config.display()
        ))
    })?;
    let changes = written != text;
    if changes {
        write(config, &written)?;
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(text: &str) -> LocalNames {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn somebody_is_asked_for_what_is_open_and_for_nothing_else() {
        let survey = Survey {
            names: Some(names(
                "columns = { age = 'Alter', cost = '?', pulse = '?', way = '?' }\nignore = ['Puls', 'id']\n\
                 codes = { ward = { N = 'general', ITS = '?', u = '?', x = '?' } }",
            )),
            unread: ["Puls", "id"].map(String::from).to_vec(),
            ..Survey::default()
        };
        let mut asked = Vec::new();
        let found = answered(
            &survey,
            &mut Prompt::scripted("-\nPuls\n\nintensive\n-\n\n", &mut asked),
        );
        assert_eq!(
            found.unwrap().unwrap(),
            names(
                "columns = { age = 'Alter', pulse = 'Puls', way = '?' }\nabsent = ['cost']\nignore = ['id']\n\
                 codes = { ward = { N = 'general', ITS = 'intensive', x = '?' } }\nmissing = { ward = ['u'] }"
            )
        );
        let asked = String::from_utf8(asked).unwrap();
        let asked: Vec<&str> = asked.split_terminator("? ").collect();
        assert_eq!(asked.len(), 6, "{asked:?}");
        assert!(asked[0].contains("\"cost\" is agreed") && asked[0].contains("Puls, id"));
        assert!(asked[3].contains("\"ITS\" of \"ward\""));
    }
}
