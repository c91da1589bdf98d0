//! The page of `rota federation answers --html`.

use std::path::Path;

use agreement::QuestionStage;
use formatting::numbers;

use super::{NodeCommandError, answers};
use crate::answers::page::{QuestionStory, page_of_federation};
use crate::answers::{FoundAnswer, FoundAnswers};
use crate::commands::{vacant, write};

/// Writes the questions and their answers as an HTML page.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn write_page(file: &Path, found: &FoundAnswers) -> Result<(), NodeCommandError> {
    vacant(file, false)?;
    let leads: Vec<[String; 2]> = found.answers.iter().map(lead).collect();
    let stories = found.answers.iter().zip(&leads);
    let stories: Vec<QuestionStory<'_>> = stories
        .map(|(answer, [name, lead])| QuestionStory {
            name,
            lead,
            question: &answer.question,
            found: match &answer.stage {
                QuestionStage::Done {
                    counts, outcome, ..
                } => Some((counts, &**outcome)),
                QuestionStage::Open { .. } | QuestionStage::Stopped { .. } => None,
            },
            sheets: &answer.tables,
            left_out: answers::left_out(answer),
            opened: answer.opened,
            command: "",
        })
        .collect();
    write(file, &page_of_federation(&stories, &found.certificate))
}

/// The name of a question, and what is said first of it.
fn lead(answer: &FoundAnswer) -> [String; 2] {
    let name = format!("Question {} ({})", answer.number, answer.kind);
    let reason = numbers::plain(&answer.reason);
    let mut stage = answers::stage(answer);
    if let Some(first) = stage.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let ended = reason.ends_with(['.', '?', '!']);
    let stop = if ended { "" } else { "." };
    [name, format!("{reason}{stop} {stage}.")]
}
