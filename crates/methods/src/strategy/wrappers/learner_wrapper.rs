//! A learner as what it changes in another one: how a strategy equips a silo.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::learner::{
    LearnError, Learner, Metrics, Optimiser, Progress, Pull, Split, Task, Training, Update,
};
use crate::params::{Layout, Params};
use crate::robust::Radius;

/// Hears how far a training has come, and may stop it.
pub type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// One local training, as a silo is asked for it.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) start: &'a Params,
    pub(crate) personal: &'a Params,
    pub(crate) training: &'a Training,
    /// From a decoration further out.
    pub(crate) pull: Option<&'a Pull<'a>>,
    /// The model is to be fitted robustly instead.
    pub(crate) fit: Option<RobustFit>,
    pub(crate) seed: u64,
}

/// What [`Learner::robust_fit`] is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RobustFit {
    pub(crate) radius: f64,
    pub(crate) ridge: f64,
}

impl RobustFit {
    /// What counts as its training: one step.
    const TRAINING: Training = Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 1.0,
            momentum: 0.0,
            weight_decay: 0.0,
        },
    };
}

impl Job<'_> {
    /// Carries it out.
    pub(crate) fn run(
        self,
        learner: &dyn Learner,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let Self {
            start,
            personal,
            training,
            pull,
            fit,
            seed,
        } = self;
        match (fit, pull) {
            (Some(RobustFit { radius, ridge }), None) => {
                learner.robust_fit(start, personal, radius, ridge)
            }
            (Some(_), Some(_)) => Err(LearnError::Unsupported(
                "a robust fit follows no gradient that the strategy could change".into(),
            )),
            (None, Some(pull)) => {
                learner.train_pulled(start, personal, training, pull, seed, progress)
            }
            (None, None) => {
                let task = Task::Train(training.clone());
                learner.train(start, personal, &task, seed, progress)
            }
        }
    }

    /// The same, changed by `pull`; a training can be changed once only.
    pub(crate) fn pulled<'b>(self, pull: &'b Pull<'b>) -> Result<Job<'b>, LearnError>
    where
        Self: 'b,
    {
        match self.pull {
            None => Ok(Job {
                pull: Some(pull),
                ..self
            }),
            Some(_) => Err(LearnError::Unsupported(
                "two parts of the strategy change the gradient: use one of them".into(),
            )),
        }
    }
}

/// The progress of a training that is a part of a longer one: `before` of `steps` steps are done
/// when it begins.
pub(crate) fn later(
    progress: &mut Watch<'_>,
    before: u64,
    steps: u64,
) -> impl FnMut(Progress) -> ControlFlow<()> {
    move |at| {
        progress(Progress {
            step: before + at.step,
            steps,
            ..at
        })
    }
}

/// What a strategy changes in a learner. Models and personal states given to it have the layouts
/// that it says.
pub(crate) trait LearnerWrapper: Send + Sync {
    /// Layout of the models that the federation sees.
    fn layout(&self, inner: &dyn Learner) -> Arc<Layout> {
        inner.layout()
    }

    /// See [`Learner::initial`].
    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        inner.initial(seed)
    }

    /// See [`Learner::initial_personal`].
    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        inner.initial_personal(seed)
    }

    /// What the inner learner sees of a model of the federation and the personal state.
    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), personal.clone())
    }

    /// The model that a silo uses in the end, where that is another than [`inside`](Self::inside).
    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        self.inside(model, personal)
    }

    /// See [`Learner::outputs`].
    fn outputs(
        &self,
        inner: &dyn Learner,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        let (model, own) = self.used(model, personal);
        inner.outputs(&model, &own, split)
    }

    /// See [`Learner::evaluate`].
    fn evaluate(
        &self,
        inner: &dyn Learner,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let (model, own) = self.used(model, personal);
        inner.evaluate(&model, &own, split)
    }

    /// See [`Learner::robust_loss`].
    fn robust_loss(
        &self,
        inner: &dyn Learner,
        model: &Params,
        personal: &Params,
        radius: f64,
    ) -> Result<f64, LearnError> {
        let (model, own) = self.inside(model, personal);
        inner.robust_loss(&model, &own, radius)
    }

    /// Contributes `start` as it is, see [`Task::Keep`].
    fn keep(
        &self,
        inner: &dyn Learner,
        start: &Params,
        personal: &Params,
    ) -> Result<Update, LearnError> {
        Ok(Update::kept(start, personal, inner.samples()))
    }

    /// Trains.
    fn train(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError>;
}

/// A learner with a decoration.
pub(crate) struct WrappedLearner<D> {
    inner: Arc<dyn Learner>,
    by: Arc<D>,
    layout: Arc<Layout>,
    personal: Arc<Layout>,
}

impl<D: LearnerWrapper + 'static> WrappedLearner<D> {
    pub(crate) fn equip(inner: Arc<dyn Learner>, by: D) -> Arc<dyn Learner> {
        let layout = by.layout(&*inner);
        // The layout of a personal state does not depend on the seed.
        let personal = by.initial_personal(&*inner, 0).layout().clone();
        Arc::new(Self {
            inner,
            by: Arc::new(by),
            layout,
            personal,
        })
    }
}

impl<D: LearnerWrapper + 'static> WrappedLearner<D> {
    /// The same decoration of another part of the same silo.
    fn around(&self, inner: Arc<dyn Learner>) -> Arc<dyn Learner> {
        Arc::new(Self {
            inner,
            by: self.by.clone(),
            layout: self.layout.clone(),
            personal: self.personal.clone(),
        })
    }

    fn fits(&self, model: &Params, personal: &Params) -> Result<(), LearnError> {
        for (expected, got) in [(&self.layout, model), (&self.personal, personal)] {
            if expected != got.layout() {
                return Err(LearnError::Layout {
                    expected: expected.describe(),
                    got: got.layout().describe(),
                });
            }
        }
        Ok(())
    }
}

impl<D: LearnerWrapper + 'static> Learner for WrappedLearner<D> {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn summary_layout(&self) -> Option<Arc<Layout>> {
        self.inner.summary_layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.by.initial(&*self.inner, seed)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        self.by.initial_personal(&*self.inner, seed)
    }

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        self.inner.seed(silo_seed, round)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        task: &Task,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        self.fits(start, personal)?;
        match task {
            Task::Train(training) => {
                let job = Job {
                    start,
                    personal,
                    training,
                    pull: None,
                    fit: None,
                    seed,
                };
                self.by.train(&*self.inner, job, progress)
            }
            Task::Keep => self.by.keep(&*self.inner, start, personal),
            Task::Summarise => {
                let (start, own) = self.by.inside(start, personal);
                let update = self.inner.train(&start, &own, task, seed, progress)?;
                Ok(Update {
                    personal: personal.clone(),
                    ..update
                })
            }
        }
    }

    fn train_pulled(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        pull: &Pull<'_>,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        self.fits(start, personal)?;
        let job = Job {
            start,
            personal,
            training,
            pull: Some(pull),
            fit: None,
            seed,
        };
        self.by.train(&*self.inner, job, progress)
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.fits(model, personal)?;
        self.by.evaluate(&*self.inner, model, personal, split)
    }

    fn robust_loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
    ) -> Result<f64, LearnError> {
        self.fits(model, personal)?;
        self.by.robust_loss(&*self.inner, model, personal, radius)
    }

    fn robust_loss_on(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        self.fits(model, personal)?;
        let (model, own) = self.by.inside(model, personal);
        self.inner.robust_loss_on(&model, &own, radius, split)
    }

    fn radius(&self, model: &Params, personal: &Params, rule: &Radius) -> Result<f64, LearnError> {
        self.fits(model, personal)?;
        let (model, own) = self.by.inside(model, personal);
        self.inner.radius(&model, &own, rule)
    }

    fn robust_fit(
        &self,
        start: &Params,
        personal: &Params,
        radius: f64,
        ridge: f64,
    ) -> Result<Update, LearnError> {
        self.fits(start, personal)?;
        let job = Job {
            start,
            personal,
            training: &RobustFit::TRAINING,
            pull: None,
            fit: Some(RobustFit { radius, ridge }),
            seed: 0,
        };
        let go_on = &mut |_| ControlFlow::Continue(());
        self.by.train(&*self.inner, job, go_on)
    }

    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    fn domain(&self) -> Option<u32> {
        self.inner.domain()
    }

    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        Some(self.around(self.inner.holding_out(fold, folds, seed)?))
    }

    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        self.inner.batches(training, seed)
    }

    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        Some(self.around(self.inner.only(split, rows)?))
    }

    fn outputs(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        self.fits(model, personal)?;
        self.by.outputs(&*self.inner, model, personal, split)
    }

    fn measure(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.fits(model, personal)?;
        let (model, own) = self.by.used(model, personal);
        self.inner.measure(&model, &own, outputs, split)
    }

    fn output_layer(&self) -> Option<String> {
        self.inner.output_layer()
    }

    fn classifier(
        &self,
        labels: &[u32],
        classes: usize,
        hidden: &[usize],
    ) -> Option<Arc<dyn Learner>> {
        self.inner.classifier(labels, classes, hidden)
    }
}
