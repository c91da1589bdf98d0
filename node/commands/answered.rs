//! Answers that a person has to give about own rows before an agreement is signed with them.

use std::path::Path;

use agreement::Agreement;
use task::TaskConfig;
use task::data::{DataError, OwnRows, SplitKey, nearest};
use task::questions::{AskedAt, RowQuestion, Unanswered};

use super::NodeCommandError;
use super::names::asked_for_names;
use super::rows::{Doubts, fitting};
use crate::cli::{OwnNames, quoted};
use crate::institution::RowsFit;
use crate::prompt::Prompt;
use crate::row_answers::SaidOfRows;

/// Rows and whether they fit, once a person has answered what only a person can say.
pub(super) struct AnsweredRows {
    /// The rows, with the answers.
    pub(super) rows: OwnRows,
    /// Fit of the rows to the agreement, or why they do not fit.
    pub(super) fits: Result<RowsFit, DataError>,
}

impl AnsweredRows {
    /// Says what the rows in a folder are by the agreement, of the institution called `name`, and asks `ask` for
    /// names and codes that do not fit, and about what looks odd.
    ///
    /// # Errors
    /// [`NodeCommandError::Usage`]: nobody can be asked; it says what answers each. [`NodeCommandError::Failed`]: a
    /// column says whose a row is, which the agreement learns from.
    pub(super) fn of(
        agreement: &Agreement,
        rows: &OwnRows,
        name: Option<&str>,
        place: (&Path, Option<&SplitKey>),
        doubts: Doubts,
        mut ask: Option<&mut Prompt<'_>>,
    ) -> Result<Self, NodeCommandError> {
        let mut rows = rows.clone();
        loop {
            let fits = fitting(agreement, &rows, name, place, doubts)?;
            match &fits {
                Ok(fit) => match answered(&fit.questions, &rows, ask.as_deref_mut())? {
                    Some(said) => rows = said,
                    None => return Ok(Self { rows, fits }),
                },
                Err(_) => {
                    let ask = ask.as_deref_mut();
                    let names = ask.map(|ask| asked_for_names(agreement, &rows, place.0, ask));
                    match names.transpose()?.flatten() {
                        Some(names) => rows.names = names,
                        None => return Ok(Self { rows, fits }),
                    }
                }
            }
        }
    }

    /// The options of `join` and `sign` that answer what rows `before` did not; empty where that is nothing.
    pub(super) fn options_beside(&self, before: &OwnRows) -> String {
        let Self { rows, .. } = self;
        let mut words = Vec::new();
        if rows.names != before.names {
            words.push(OwnNames::options(&rows.names));
        }
        if rows.answers != before.answers {
            let kept = rows.answers.keep.iter();
            let kept = kept.flat_map(|(column, values)| {
                values.iter().map(move |value| format!("{column}={value}"))
            });
            let kept = kept.chain(rows.answers.learn.iter().cloned());
            words.extend(kept.map(|kept| format!("--keep {}", quoted(&kept))));
        }
        words.join(" ")
    }
}

/// Adds what `--keep` says to the answers about rows.
///
/// # Errors
/// [`NodeCommandError::Usage`]: it is about no agreed column, or about a level, which needs no such answer.
pub(super) fn add_kept(
    agreement: &Agreement,
    keep: &[(String, Option<String>)],
    rows: &mut OwnRows,
) -> Result<(), NodeCommandError> {
    let schema = match &agreement.task {
        TaskConfig::Table(task) => task.agreed_schema()?,
        _ => None,
    };
    let Some(schema) = schema else {
        let all = keep.iter();
        all.for_each(|(column, value)| rows.answers.add(column, value.as_deref()));
        return Ok(());
    };
    let columns = || schema.names().chain(schema.target.name.iter());
    for (column, value) in keep {
        let whole = value.as_ref().map(|value| format!("{column}={value}"));
        let whole = whole.as_ref().unwrap_or(column);
        let is_agreed = |name: &str| columns().any(|agreed| agreed == name);
        match column.rsplit_once('=') {
            _ if is_agreed(column) => rows.answers.add(column, value.as_deref()),
            _ if is_agreed(whole) => rows.answers.add(whole, None),
            Some((name, level)) if is_agreed(name) => {
                return Err(NodeCommandError::Usage(format!(
                    "--keep {}: {level:?} is no number. A text needs no such answer: what it means in {name:?} is \
                     said by --code {} {} VALUE",
                    quoted(whole),
                    quoted(name),
                    quoted(level)
                )));
            }
            _ => {
                return Err(NodeCommandError::Usage(format!(
                    "--keep {}: the agreement has no such column{}",
                    quoted(whole),
                    nearest(column, columns())
                )));
            }
        }
    }
    Ok(())
}

/// The rows with the answers to these questions; `None` where there are none.
///
/// # Errors
/// As [`AnsweredRows::of`].
fn answered(
    questions: &[RowQuestion],
    rows: &OwnRows,
    ask: Option<&mut Prompt<'_>>,
) -> Result<Option<OwnRows>, NodeCommandError> {
    let Some(open) = Unanswered::at(AskedAt::Member, questions.to_vec()) else {
        return Ok(None);
    };
    let Some(ask) = ask else {
        return Err(NodeCommandError::Usage(format!(
            "nothing was written or signed. Say first:\n{open}"
        )));
    };
    let mut rows = rows.clone();
    for question in questions {
        let said = SaidOfRows::asked(question, "The agreement", ask)?;
        if !said.add_to(question, &mut rows) {
            let column = &question.column;
            return Err(NodeCommandError::Failed(format!(
                "nothing was signed: ask for an agreement that has `group = {column:?}` in `split` and does not learn \
                 from {column:?}"
            )));
        }
    }
    Ok(Some(rows))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::fixture::North;
    use crate::institution::Data;

    /// North's rows, in which every severity of 3 is this text, and how they fit with these answers.
    fn with(odd: &str, answers: Option<&str>) -> (Result<AnsweredRows, String>, String) {
        let north = North::new();
        let folder = north.folder.path();
        let file = folder.join("rows.csv");
        let rows = fs::read_to_string(&file).unwrap();
        fs::write(&file, rows.replace(",3,", &format!(",{odd},"))).unwrap();
        let Data::Rows(rows) = &north.institution.data else {
            panic!("rows of files");
        };
        let agreement = &North::read(&North::text(&[]));
        let (mut asked, place) = (Vec::new(), (folder, None));
        let found = {
            let mut ask = answers.map(|answers| Prompt::scripted(answers, &mut asked));
            let name = Some("north");
            AnsweredRows::of(agreement, rows, name, place, Doubts::Say, ask.as_mut())
        };
        let found = found.map_err(|error| error.to_string());
        (found, String::from_utf8(asked).unwrap())
    }

    #[test]
    fn what_is_kept_is_about_an_agreed_column_and_a_number() {
        let agreement = North::read(&North::text(&[]));
        let kept = |column: &str, value: Option<&str>| {
            let keep = [(column.to_owned(), value.map(str::to_owned))];
            let north = North::new();
            let Data::Rows(rows) = &north.institution.data else {
                panic!("rows of files");
            };
            let mut rows = rows.clone();
            let added = add_kept(&agreement, &keep, &mut rows);
            added.map_err(|error| error.to_string())?;
            Ok::<_, String>(rows.answers)
        };
        let answers = kept("severity", Some("77")).unwrap();
        assert!(answers.keeps("severity", 77.0));
        assert!(kept("age", None).unwrap().learns("age"));
        for (column, value, said) in [
            ("ward=None", None, "--code ward None VALUE"),
            ("ward=-", None, "is no number"),
            ("severty", Some("77"), "did you mean \"severity\"?"),
            ("bed", None, "the agreement has no such column"),
            ("sev=x", None, "the agreement has no such column"),
        ] {
            let why = kept(column, value).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn odd_numbers_are_asked_about_and_the_answers_go_with_the_rows() {
        for odd in ["7777", "-88", "65535", "-32768", "9998"] {
            let (nobody, _) = with(odd, None);
            let why = nobody.err().unwrap();
            for word in ["nothing was written or signed", "--missing", "--keep"] {
                assert!(why.contains(word), "{why}");
            }
            let (said, asked) = with(odd, Some("perhaps\nmissing\n"));
            let AnsweredRows { rows, fits } = said.unwrap();
            assert_eq!(rows.names.missing["severity"], [odd]);
            assert_eq!(fits.unwrap().questions, []);
            assert!(asked.contains(&format!("hold {odd}, unlike")), "{asked}");
            let (said, _) = with(odd, Some("measured\n"));
            let AnsweredRows { rows, fits } = said.unwrap();
            assert!(rows.answers.keeps("severity", odd.parse().unwrap()));
            assert_eq!(fits.unwrap().questions, []);
        }
        // A terminal that closes has answered nothing.
        let (said, _) = with("7777", Some(""));
        assert!(said.is_err());
    }
}
