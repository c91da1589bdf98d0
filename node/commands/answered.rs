//! What a person has to say about own rows before an agreement is signed with them.

use std::io;

use task::data::OwnRows;
use task::questions::{AskedAt, RowDoubt, RowQuestion, Unanswered};

use super::NodeCommandError;
use super::asking::{at_a_terminal, says_yes};

/// The rows with the answers to these questions, which are asked at a terminal; `None` where there are none.
///
/// # Errors
/// [`NodeCommandError::Usage`]: nobody can be asked; it says what answers each. [`NodeCommandError::Failed`]: a column
/// says whose a row is, which the agreement learns from.
pub(super) fn answered(
    questions: &[RowQuestion],
    rows: &OwnRows,
    at: AskedAt,
) -> Result<Option<OwnRows>, NodeCommandError> {
    let Some(open) = Unanswered::at(at, questions.to_vec()) else {
        return Ok(None);
    };
    at_a_terminal(|| format!("nothing was written or signed. Say first:\n{open}"))?;
    let mut rows = rows.clone();
    let mut out = io::stdout().lock();
    for question in questions {
        let column = &question.column;
        match question.doubt {
            RowDoubt::StandIn(value) => {
                let asked = format!(
                    "{}: does {value} stand for a missing value there?",
                    question.what
                );
                if says_yes(&mut out, &asked)? {
                    let marks = rows.names.missing.entry(column.clone()).or_default();
                    marks.push(value.to_string());
                } else {
                    rows.answers.answer(question);
                }
            }
            RowDoubt::Identifier => {
                let asked = format!(
                    "{}: is it something to learn from, as the agreement says, and not whose a row is?",
                    question.what
                );
                if !says_yes(&mut out, &asked)? {
                    return Err(NodeCommandError::Failed(format!(
                        "nothing was signed: ask for an agreement that has `group = {column:?}` in `split` and does \
                         not learn from {column:?}"
                    )));
                }
                rows.answers.answer(question);
            }
        }
    }
    Ok(Some(rows))
}
