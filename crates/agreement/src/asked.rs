//! Checks of the rounds of a file that do not learn: those of its questions, and those in which members decide together
//! which model each serves.

use protocol::privacy::Privacy;

use crate::config_error::ConfigError;
use crate::file::{FederationFile, Mode};
use crate::question::learning_rounds;
use crate::serving::ServingTable;
use crate::source::TomlText;

/// Returns whether the members can answer what the file asks.
///
/// # Errors
/// [`ConfigError::At`]: a question that cannot be asked, members that cannot decide together, or rounds that leave none
/// for learning.
pub(crate) fn check_questions(
    source: TomlText<'_>,
    raw: &FederationFile,
    privacy: &Privacy,
) -> Result<(), ConfigError> {
    let wrong = |path: &str, what: String| Err(ConfigError::At(source.key_of(path, &what)));
    for (at, question) in raw.question.iter().enumerate() {
        if let Err(error) = question.question(privacy).inputs() {
            return wrong(&format!("question.{at}"), format!("is wrong: {error}"));
        }
    }
    let serving = raw.serving.as_ref();
    let fault = serving.and_then(|table| {
        let limit = raw.protocol.blob_limit;
        table.fault(privacy, &raw.strategy, limit)
    });
    if let Some((path, what)) = fault {
        return wrong(path, what);
    }
    let mode = Mode::of(privacy).of_questions();
    let at_last = serving.map_or(0, ServingTable::most_rounds);
    if learning_rounds(raw.rounds, &raw.question, mode, at_last).is_none() {
        let asked = raw.question.iter().map(|one| one.most_rounds(mode));
        let asked: u64 = asked.sum();
        let takes = match (asked, at_last) {
            // Rounds that are 0 are refused with the parameter set.
            (0, 0) => return Ok(()),
            (_, 0) => "the questions take",
            (0, _) => "`[serving]` takes",
            (_, _) => "the questions and `[serving]` take",
        };
        let what = format!(
            "must be more than {}, which {takes} at most: rounds that they do not take are left out in the end",
            asked + at_last
        );
        return wrong("rounds", what);
    }
    Ok(())
}
