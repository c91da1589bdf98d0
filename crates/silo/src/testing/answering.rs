//! A silo that learns as the others of a test and answers questions, too.

use std::sync::Arc;

use methods::learner::{
    Answers, Capabilities, Metrics, QuadraticLearner, Split, Training, Update, Watch,
};
use methods::{Layout, LearnError, Learner, Params};

use super::learner;

/// A learner with these answers.
struct AnsweringSilo<A> {
    inner: QuadraticLearner,
    answers: A,
}

/// The learner with this optimum, beside which a silo gives these answers.
pub(crate) fn with_answers(
    optimum: f64,
    answers: impl Answers + Send + Sync + 'static,
) -> Arc<dyn Learner> {
    Arc::new(AnsweringSilo {
        inner: learner(optimum),
        answers,
    })
}

impl<A: Answers + Send + Sync> Learner for AnsweringSilo<A> {
    fn inner(&self) -> Option<&dyn Learner> {
        Some(&self.inner)
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
