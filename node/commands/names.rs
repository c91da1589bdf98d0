//! What an institution's files call what is agreed: printed, asked for, and written into `silo.toml`.

use std::io::{self, IsTerminal};
use std::path::Path;

use crate::cli::OwnNames;
use crate::federation::with_names;
use crate::institution::surveyed;
use agreement::{Agreement, read_configuration};
use task::data::OwnRows;
use task::schema::{LocalNames, OPEN};
use task::survey::Survey;

use super::asking::{answer, says_yes};
use super::rows::say;
use super::{NodeCommandError, write};

/// An answer for a column that the files do not have, or a text that means a missing value.
const NONE: &str = "-";

/// Asks for what only a person knows of rows that do not fit, where somebody can be asked, and whether that is to
/// be used. `None`: nobody can be asked, nothing is known, or somebody says no.
pub(super) fn asked(
    agreement: &Agreement,
    rows: &OwnRows,
    folder: &Path,
) -> Result<Option<LocalNames>, NodeCommandError> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    let Ok(survey) = surveyed(agreement, rows, folder) else {
        return Ok(None);
    };
    let mut out = io::stdout().lock();
    let found = answered(&survey, &mut |question| answer(&mut out, question))?;
    let Some(names) = found.filter(|names| *names != rows.names) else {
        return Ok(None);
    };
    say(&names.written())?;
    Ok(says_yes(&mut io::stdout().lock(), "Read the rows with these names?")?.then_some(names))
}

/// The names that would fit, with what somebody answers in place of what is open.
fn answered(
    survey: &Survey,
    ask: &mut dyn FnMut(&str) -> io::Result<String>,
) -> io::Result<Option<LocalNames>> {
    let Some(mut names) = survey.names.clone() else {
        return Ok(None);
    };
    let mut given = OwnNames::default();
    let open = names.columns.iter().filter(|(_, own)| *own == OPEN);
    for (agreed, _) in open {
        let there = survey.unread.join(", ");
        let question = format!(
            "{agreed:?} is agreed. What is it called here ({there}; {NONE} if the files do not have it)? "
        );
        match &*ask(&question)? {
            "" => {}
            NONE => given.absent.push(agreed.clone()),
            own => given.column.extend([agreed.clone(), own.to_owned()]),
        }
    }
    for (column, codes) in &names.codes {
        for (text, _) in codes.iter().filter(|(_, value)| *value == OPEN) {
            let question =
                format!("What does {text:?} of {column:?} mean ({NONE} for a missing value)? ");
            match &*ask(&question)? {
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

/// Writes names into a `silo.toml` that is there, in place of its own.
///
/// # Errors
/// [`NodeCommandError::Failed`]: a person has to write them.
pub(super) fn write_names(config: &Path, names: &LocalNames) -> Result<(), NodeCommandError> {
    let text = read_configuration(config)?;
    let written = with_names(&text, names).ok_or_else(|| {
        let lines = names.written().join("\n");
        NodeCommandError::Failed(format!(
            "nothing was signed: write the names of the columns into {} and sign again:\n[data.rows.names]\n{lines}",
            config.display()
        ))
    })?;
    match written == text {
        true => Ok(()),
        false => write(config, &written),
    }
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
        let mut said = ["-", "Puls", "", "intensive", "-", ""].into_iter();
        let mut asked = Vec::new();
        let found = answered(&survey, &mut |question| {
            asked.push(question.to_owned());
            Ok(said.next().unwrap().to_owned())
        });
        assert_eq!(
            found.unwrap().unwrap(),
            names(
                "columns = { age = 'Alter', pulse = 'Puls', way = '?' }\nabsent = ['cost']\nignore = ['id']\n\
                 codes = { ward = { N = 'general', ITS = 'intensive', x = '?' } }\nmissing = { ward = ['u'] }"
            )
        );
        assert_eq!(asked.len(), 6);
        assert!(asked[0].contains("\"cost\" is agreed") && asked[0].contains("Puls, id"));
        assert!(asked[3].contains("\"ITS\" of \"ward\""));
    }
}
