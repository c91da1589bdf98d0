//! The answers that a state folder holds.

use std::path::Path;

use agreement::{AgreedQuestion, Agreement, QuestionStage};
use methods::strategy::{Memory, QuestionState};
use questions::FederatedQuestion;
use questions::outcome::{PrintedTable, said_of_noise, sheets};

use super::certificate::AnswerCertificate;
use super::page::AnswerCost;
use crate::model::{HeldRounds, ModelError};

/// The questions of an agreement, and what proves their answers.
pub(crate) struct FoundAnswers {
    /// The questions, in the order of the agreement.
    pub(crate) answers: Vec<FoundAnswer>,
    /// The round that has the answers.
    pub(crate) certificate: AnswerCertificate,
}

/// A question with what is known of it.
pub(crate) struct FoundAnswer {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// Reason for which it was asked.
    pub(crate) reason: String,
    /// Its kind.
    pub(crate) kind: &'static str,
    /// The question itself.
    pub(crate) question: FederatedQuestion,
    /// Numbers that its rounds have opened so far.
    pub(crate) opened: AnswerCost,
    /// Number of sites that refused by each rule, as sentences without a name.
    pub(crate) refused: Vec<String>,
    /// Number of sites that refused.
    pub(crate) refusing: u64,
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
    let held = HeldRounds::read(state, agreement).ok()?;
    held.whole().ok()?;
    let memory = &held.round(None).ok()?.memory;
    let is_done = |(at, of): &(usize, &AgreedQuestion)| {
        let stage = of.stage(&QuestionState::of(memory, *at), privacy);
        matches!(stage, QuestionStage::Done { .. })
    };
    known.find(is_done).map(|(at, _)| at + 1)
}

/// Sentences about the sites that refused, in a federation with so many groups.
fn refused(state: &QuestionState, groups: usize) -> Vec<String> {
    let mut said = AgreedQuestion::refusals(state);
    if groups > 1 && !said.is_empty() {
        said.push("the other sites of its group, whose sum tells nothing then".to_owned());
    }
    said
}

impl FoundAnswers {
    /// The questions of the agreement in force and their answers, by the last round that was adopted. Needs no key
    /// and changes nothing; the node may run.
    ///
    /// # Errors
    /// [`ModelError`]: there is no round yet, or its outcome is not here.
    pub(crate) fn read(state: &Path, agreement: &Agreement) -> Result<Self, ModelError> {
        let held = HeldRounds::read(state, agreement)?;
        held.whole()?;
        let round = held.round(None)?;
        let privacy = &agreement.epoch.protocol.privacy;
        let asked = agreement.questions.iter().enumerate();
        let answers = asked.map(|(at, agreed)| {
            let question = agreed.question(privacy);
            let of = QuestionState::of(&round.memory, at);
            let stage = agreed.stage(&of, privacy);
            let tables = match &stage {
                QuestionStage::Done {
                    counts, outcome, ..
                } => {
                    let mut tables = sheets(&question, counts, outcome);
                    let noise = agreed.noise(privacy, &of.opened, counts.sites);
                    let said = noise.map(|noise| said_of_noise(outcome, noise));
                    if let Some(last) = tables.last_mut() {
                        last.notes.extend(said);
                    }
                    tables
                }
                QuestionStage::Open { .. } | QuestionStage::Stopped { .. } => Vec::new(),
            };
            let groups = question.groups;
            FoundAnswer {
                number: at + 1,
                reason: agreed.reason.clone(),
                kind: question.kind.name(),
                opened: AnswerCost::of(question.mode, of.opened.iter().map(Vec::len)),
                question,
                refusing: of.refused.iter().sum(),
                refused: refused(&of, groups),
                stage,
                tables,
            }
        });
        Ok(Self {
            answers: answers.collect(),
            certificate: AnswerCertificate::of(round, agreement),
        })
    }
}
