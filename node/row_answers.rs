//! Answers of a person at a terminal about odd rows: the same questions at every door.

use std::io;

use task::data::OwnRows;
use task::questions::{RowDoubt, RowQuestion};

use crate::prompt::Prompt;

/// Answer of a person about rows by which something is learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SaidOfRows {
    /// This number stands for a missing value.
    Missing(f64),
    /// The number was measured, or the column is something to learn from.
    Right,
    /// The column says whose a row is.
    Whose,
}

impl SaidOfRows {
    /// Asks a question about rows. `whoever` learns from them, such as the agreement.
    ///
    /// # Errors
    /// The terminal was closed.
    pub(crate) fn asked(
        question: &RowQuestion,
        whoever: &str,
        ask: &mut Prompt<'_>,
    ) -> io::Result<Self> {
        let what = &question.what;
        Ok(match question.doubt {
            RowDoubt::StandIn(value) if is_missing(what, ask)? => Self::Missing(value),
            RowDoubt::StandIn(_) => Self::Right,
            RowDoubt::Identifier => {
                let asked = format!(
                    "{what}. {whoever} learns from it. Does it say whose a row is (`person`), or is it something to \
                     learn from (`learn`)?"
                );
                match ask.one_of(&asked, &["person", "learn"])? {
                    0 => Self::Whose,
                    _ => Self::Right,
                }
            }
        })
    }

    /// Adds it to an institution's rows; whether they can be learned from with it.
    pub(crate) fn add_to(self, question: &RowQuestion, rows: &mut OwnRows) -> bool {
        match self {
            Self::Missing(value) => {
                let column = question.column.clone();
                let marks = rows.names.missing.entry(column).or_default();
                marks.push(value.to_string());
            }
            Self::Right => rows.answers.answer(question),
            Self::Whose => return false,
        }
        true
    }
}

/// Asks whether a number stands for a missing value.
///
/// # Errors
/// The terminal was closed.
pub(crate) fn is_missing(what: &str, ask: &mut Prompt<'_>) -> io::Result<bool> {
    let asked = format!("{what}. Is it `missing`, or was it `measured`?");
    Ok(ask.one_of(&asked, &["missing", "measured"])? == 0)
}
