//! The answers that a state folder holds.

use std::path::Path;

use agreement::{Agreement, QuestionStage};
use methods::strategy::{QuestionState, answer_size};
use questions::FederatedQuestion;
use questions::outcome::{PrintedTable, sheets};

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
    /// Why it was asked.
    pub(crate) reason: String,
    /// Its kind.
    pub(crate) kind: &'static str,
    /// The question itself.
    pub(crate) question: FederatedQuestion,
    /// What its rounds have opened so far.
    pub(crate) opened: AnswerCost,
    /// How far it is.
    pub(crate) stage: QuestionStage,
    /// The answer as tables, with small cells suppressed; empty where there is none.
    pub(crate) tables: Vec<PrintedTable>,
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
        let asked = agreement.questions.iter().enumerate();
        let answers = asked.map(|(at, agreed)| {
            let question = agreed.question();
            let state = QuestionState::of(&round.memory, at);
            let stage = agreed.stage(&state);
            let tables = match &stage {
                QuestionStage::Done {
                    counts, outcome, ..
                } => sheets(&question, counts, outcome),
                QuestionStage::Open { .. } | QuestionStage::Stopped { .. } => Vec::new(),
            };
            FoundAnswer {
                number: at + 1,
                reason: agreed.reason.clone(),
                kind: question.kind.name(),
                opened: cost(&state),
                question,
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

/// Returns what the rounds of a question have opened, and what a site sent for it.
fn cost(state: &QuestionState) -> AnswerCost {
    let sums = state.opened.iter();
    AnswerCost {
        rounds: state.opened.len(),
        numbers: sums.clone().map(|sum| sum.len() as u64).sum(),
        bytes: sums.map(|sum| answer_size(sum.len())).sum(),
    }
}
