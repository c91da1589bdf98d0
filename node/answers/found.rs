//! The answers that a state folder holds.

use std::path::Path;

use agreement::{AgreedQuestion, Agreement, QuestionStage};
use methods::strategy::{Memory, QuestionState};
use questions::QuestionMode;
use questions::outcome::{PrintedTable, sheets};

use crate::model::{HeldRounds, ModelError};

/// A question with what is known of it.
pub(crate) struct FoundAnswer {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// Reason for which it was asked.
    pub(crate) reason: String,
    /// Its kind.
    pub(crate) kind: &'static str,
    /// Readers of the numbers of one site.
    pub(crate) mode: QuestionMode,
    /// Number of sites that refused by each rule, as sentences.
    pub(crate) refused: Vec<String>,
    /// Stage that it has reached.
    pub(crate) stage: QuestionStage,
    /// The answer as tables, with small cells suppressed; empty where there is none.
    pub(crate) tables: Vec<PrintedTable>,
}

/// Returns whether all questions of an agreement from this place on, from 0, are over in a state with this memory.
pub(crate) fn over(memory: &Memory, agreement: &Agreement, from: usize) -> bool {
    let privacy = &agreement.epoch.protocol.privacy;
    let asked = agreement.questions.iter().enumerate().skip(from);
    let mut stages = asked.map(|(at, agreed)| {
        let state = QuestionState::of(memory, at);
        agreed.stage(&state, privacy)
    });
    stages.all(|stage| !matches!(stage, QuestionStage::Open { .. }))
}

/// The number of an answered question of the agreement that asks the same, by the last round that was adopted.
pub(crate) fn answered(
    state: &Path,
    agreement: &Agreement,
    asked: &AgreedQuestion,
) -> Option<usize> {
    let privacy = &agreement.epoch.protocol.privacy;
    let same = |of: &AgreedQuestion| of.question(privacy) == asked.question(privacy);
    let known = agreement.questions.iter().enumerate();
    let mut known = known.filter(|(_, of)| same(of)).peekable();
    known.peek()?;
    // A node that has adopted nothing has no answer.
    let found = found(state, agreement).ok()?;
    let mut done = known.filter(|(at, _)| matches!(found[*at].stage, QuestionStage::Done { .. }));
    done.next().map(|(at, _)| at + 1)
}

/// Returns what noise of this standard deviation does to an answer.
fn said_of_noise(deviation: f64) -> String {
    format!(
        "every count has noise with a standard deviation of {deviation:.2}, and sums of values scaled to ±1 have as much: \
         counts may be negative, and intervals are of chance alone"
    )
}

/// The questions of the agreement in force and their answers, by the last round that was adopted. Needs no key
/// and changes nothing; the node may run.
///
/// # Errors
/// [`ModelError`]: there is no round yet, or its outcome is not here.
pub(crate) fn found(state: &Path, agreement: &Agreement) -> Result<Vec<FoundAnswer>, ModelError> {
    let held = HeldRounds::read(state, agreement)?;
    held.whole()?;
    let memory = &held.round(None)?.memory;
    let privacy = &agreement.epoch.protocol.privacy;
    let asked = agreement.questions.iter().enumerate();
    let answers = asked.map(|(at, agreed)| {
        let question = agreed.question(privacy);
        let of = QuestionState::of(memory, at);
        let stage = agreed.stage(&of, privacy);
        let tables = match &stage {
            QuestionStage::Done {
                counts, outcome, ..
            } => {
                let mut tables = sheets(&question, counts, outcome);
                let noise = agreed.noise(privacy, &of.opened, counts.sites);
                let said = noise.map(said_of_noise);
                if let Some(last) = tables.last_mut() {
                    last.notes.extend(said);
                }
                tables
            }
            QuestionStage::Open { .. } | QuestionStage::Stopped { .. } => Vec::new(),
        };
        FoundAnswer {
            number: at + 1,
            reason: agreed.reason.clone(),
            kind: question.kind.name(),
            mode: question.mode,
            refused: AgreedQuestion::refusals(&of),
            stage,
            tables,
        }
    });
    Ok(answers.collect())
}
