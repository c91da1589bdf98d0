//! A learner that answers other members, too.

use std::sync::Arc;

use methods::learner::{Capabilities, Metrics, Split, Training, Update, Watch};
use methods::{Layout, LearnError, Learner, Params};

use super::OwnAnswers;

/// A silo's own learner, with its answers.
pub(crate) struct AnsweringLearner {
    inner: Arc<dyn Learner>,
    answers: OwnAnswers,
}

impl AnsweringLearner {
    /// Puts answers beside a learner.
    pub(crate) fn new(inner: Arc<dyn Learner>, answers: OwnAnswers) -> Self {
        Self { inner, answers }
    }
}

impl Learner for AnsweringLearner {
    fn inner(&self) -> Option<&dyn Learner> {
        Some(&*self.inner)
    }

    fn layout(&self) -> Arc<Layout> {
        self.inner.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.inner.initial(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.inner.train(start, personal, training, seed, progress)
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.inner.evaluate(model, personal, split)
    }

    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            answers: Some(&self.answers),
            ..self.inner.capabilities()
        }
    }
}
