//! The file of a question that an institution asks the others.

use std::path::Path;

use agreement::{AgreedQuestion, read_configuration};
use protocol::privacy::Privacy;

/// Reason for which a file is no question that nodes can answer, in a sentence with the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct QuestionFileError(String);

/// Keys that say how one process plays the sites of a question, which nodes do not need.
const PLAYED: [&str; 2] = ["sites", "mode"];

/// Reads a question: the file of `rota ask`, with a `reason`.
///
/// # Errors
/// The file cannot be read, or is no question.
pub(crate) fn read(path: &Path) -> Result<AgreedQuestion, QuestionFileError> {
    let text = read_configuration(path).map_err(|error| QuestionFileError(error.to_string()))?;
    parse(&path.display().to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<AgreedQuestion, QuestionFileError> {
    let wrong = |what: String| QuestionFileError(format!("{file}: {what}"));
    let mut table: toml::Table = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    for key in PLAYED {
        table.remove(key);
    }
    if !table.get("reason").is_some_and(toml::Value::is_str) {
        return Err(wrong(
            "`reason` is missing: one sentence for the people who approve the question, such as reason = \
             \"survival by stage, for the protocol of the trial\""
                .into(),
        ));
    }
    let question: AgreedQuestion = table
        .try_into()
        .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let asked = question.question(&Privacy::Clear).inputs();
    asked.map_err(|error| wrong(error.to_string()))?;
    Ok(question)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const WHOLE: &str = "reason = \"how old the patients are\"\nkind = \"describe\"\ncolumns = [\"age\"]\n\
                         mode = \"secure-aggregation\"\n[ranges]\nage = [0, 120]\n[sites]\nfiles = [{ path = \"a.csv\" }]\n";

    #[test]
    fn the_file_of_a_played_question_is_asked_of_nodes() {
        let read = parse("q.toml", WHOLE).unwrap();
        assert_eq!(read.reason, "how old the patients are");
        let question = read.question(&Privacy::Clear);
        assert_eq!(question.kind.name(), "describe");
        assert_eq!(question.mode, questions::QuestionMode::Clear);
    }

    #[test]
    fn a_question_without_a_reason_or_range_is_refused() {
        let wrong = |from: &str, to: &str| parse("q.toml", &WHOLE.replace(from, to)).unwrap_err();
        for (from, to, says) in [
            (
                "reason = \"how old the patients are\"",
                "",
                "`reason` is missing",
            ),
            ("\"describe\"", "\"descrieb\"", "descrieb"),
            ("age = [0, 120]", "", "[ranges]"),
            ("columns =", "colums =", "colums"),
        ] {
            let text = wrong(from, to).to_string();
            assert!(
                text.starts_with("q.toml: ") && text.contains(says),
                "{text}"
            );
        }
    }
}
