//! All that one institution answers: the questions of the agreement, and what it measured of the models that it could
//! serve.

use methods::learner::{Answers, LearnError, OpenedSums, OwnAnswer};
use methods::strategy::LAST_QUESTION;
use protocol::SecretKey;

use super::SiteAnswers;
use super::pseudonyms::Pseudonyms;
use super::serving::ServingAnswers;

/// All answers of an institution.
pub(crate) struct OwnAnswers {
    asked: Option<SiteAnswers>,
    serving: Option<ServingAnswers>,
    pseudonyms: Pseudonyms,
}

impl OwnAnswers {
    /// Those of the institution with this key: to the questions of its agreement, and where the members decide together
    /// what they serve.
    pub(crate) fn new(
        asked: Option<SiteAnswers>,
        serving: Option<ServingAnswers>,
        key: &SecretKey,
    ) -> Self {
        Self {
            asked,
            serving,
            pseudonyms: Pseudonyms::of(key),
        }
    }

    fn asked(&self) -> Result<&SiteAnswers, LearnError> {
        let none = || LearnError::Failed("there is no such question".into());
        self.asked.as_ref().ok_or_else(none)
    }
}

impl Answers for OwnAnswers {
    fn pseudonym(&self, question: usize) -> u64 {
        self.pseudonyms.in_question(question)
    }

    fn answer(&self, question: usize, opened: OpenedSums<'_>) -> Result<OwnAnswer, LearnError> {
        match &self.serving {
            Some(serving) if question == LAST_QUESTION => serving.answer(opened.sums),
            _ => self.asked()?.answer(question, opened),
        }
    }

    fn row_answers(
        &self,
        question: usize,
        opened: &[Vec<u64>],
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), LearnError> {
        self.asked()?.row_answers(question, opened, each)
    }
}
