//! A learner that answers questions about all rows, too.

use std::sync::Arc;

use methods::learner::{Capabilities, Job, Metrics, Split, Training, Update, Watch};
use methods::{Layout, LearnError, Learner, Params};

use super::SiteAnswers;

/// A silo's own learner, with its answers.
pub(crate) struct AnsweringLearner {
    inner: Arc<dyn Learner>,
    answers: SiteAnswers,
}

impl AnsweringLearner {
    /// Puts answers beside a learner.
    pub(crate) fn new(inner: Arc<dyn Learner>, answers: SiteAnswers) -> Self {
        Self { inner, answers }
    }
}

impl Learner for AnsweringLearner {
    fn layout(&self) -> Arc<Layout> {
        self.inner.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.inner.initial(seed)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        self.inner.initial_personal(seed)
    }

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        self.inner.seed(silo_seed, round)
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

    fn learn(&self, job: Job<'_>, progress: &mut Watch<'_>) -> Result<Update, LearnError> {
        self.inner.learn(job, progress)
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.inner.evaluate(model, personal, split)
    }

    fn deployed(&self, model: &Params, personal: &Params) -> Option<Params> {
        self.inner.deployed(model, personal)
    }

    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    fn domain(&self) -> Option<u32> {
        self.inner.domain()
    }

    fn row_domains(&self) -> Option<Vec<u32>> {
        self.inner.row_domains()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            answers: Some(&self.answers),
            ..self.inner.capabilities()
        }
    }
}
