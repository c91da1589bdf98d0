//! Wraps a learner to add client-side changes: how a strategy equips a silo.
//!
//! A [`LearnerWrapper`] says what changes; [`WrappedLearner`] is the learner that results. All that
//! a wrapper does not change is passed on, with one exception that every wrapper states itself:
//! the capabilities that it [uses up](LearnerWrapper::uses_up).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::learner::{
    Capabilities, Capability, Classifiers, Job, LearnError, Learner, LeastSquares, LinearRows,
    Metrics, MissingCapability, Outputs, Progress, RobustFits, RobustLosses, RowAccess, RowResults,
    Split, Summaries, Training, UnitGradients, UnitRows, Update, Watch,
};
use crate::params::{Layout, Params};
use crate::robust::ridge::PlainLoss;
use crate::robust::{RadiusGrid, Samples};

/// The capabilities that a wrapper uses up if it modifies gradients itself: no wrapper around it
/// can do so too, and fits follow no gradient.
pub(crate) const MODIFIES_GRADIENTS: &[Capability] = &[
    Capability::ModifiedGradients,
    Capability::RobustFits,
    Capability::ExactFits,
];

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

/// Changes that a strategy makes in a learner. Models and personal states given to it have the layouts
/// of its own [`layout`](Self::layout) and [`initial_personal`](Self::initial_personal).
pub(crate) trait LearnerWrapper: Send + Sync {
    /// Capabilities that the wrapped learner must have; without them
    /// [`WrappedLearner::equip`] refuses it.
    fn needs(&self) -> &'static [Capability];

    /// Capabilities of the wrapped learner that this wrapper does not pass on, because they would
    /// no longer do what they promise. All others are passed on.
    fn uses_up(&self) -> &'static [Capability];

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

    /// The model and personal state of the wrapped learner, given those of the federation.
    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), personal.clone())
    }

    /// The model that a silo uses in the end, where that is another than [`inside`](Self::inside).
    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        self.inside(model, personal)
    }

    /// See [`Learner::deployed`].
    fn deployed(&self, inner: &dyn Learner, model: &Params, personal: &Params) -> Option<Params> {
        let (model, own) = self.used(model, personal);
        inner.deployed(&model, &own)
    }

    /// See [`Outputs::outputs`].
    fn outputs(
        &self,
        inner: &dyn Learner,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        let (model, own) = self.used(model, personal);
        inner.outputs()?.outputs(&model, &own, split)
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

    /// Carries out a job, see [`Learner::learn`]. A wrapper that changes only how a silo trains
    /// passes on everything else.
    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError>;
}

/// A learner with a wrapper around it.
pub(crate) struct WrappedLearner<W> {
    inner: Arc<dyn Learner>,
    by: Arc<W>,
    layout: Arc<Layout>,
    personal: Arc<Layout>,
}

impl<W: LearnerWrapper + 'static> WrappedLearner<W> {
    /// Puts the wrapper around a learner.
    ///
    /// # Errors
    /// [`MissingCapability`] if the learner lacks what the wrapper [needs](LearnerWrapper::needs).
    pub(crate) fn equip(
        inner: Arc<dyn Learner>,
        by: W,
    ) -> Result<Arc<dyn Learner>, MissingCapability> {
        inner.capabilities().require(by.needs())?;
        let layout = by.layout(&*inner);
        // The layout of a personal state does not depend on the seed.
        let personal = by.initial_personal(&*inner, 0).layout().clone();
        Ok(Arc::new(Self {
            inner,
            by: Arc::new(by),
            layout,
            personal,
        }))
    }

    /// This wrapper around another part of the same silo.
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

impl<W: LearnerWrapper + 'static> Learner for WrappedLearner<W> {
    fn inner(&self) -> Option<&dyn Learner> {
        Some(&*self.inner)
    }

    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, seed: u64) -> Params {
        self.by.initial(&*self.inner, seed)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        self.by.initial_personal(&*self.inner, seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.learn(Job::train(start, personal, training, seed), progress)
    }

    fn learn(&self, job: Job<'_>, progress: &mut Watch<'_>) -> Result<Update, LearnError> {
        self.fits(job.start, job.personal)?;
        self.by.learn(&*self.inner, job, progress)
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

    fn deployed(&self, model: &Params, personal: &Params) -> Option<Params> {
        self.fits(model, personal).ok()?;
        self.by.deployed(&*self.inner, model, personal)
    }

    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        let inner = self.inner.capabilities();
        let passes = |capability| inner.has(capability) && !self.by.uses_up().contains(&capability);
        Capabilities {
            summaries: passes(Capability::Summaries).then_some(self as _),
            robust: passes(Capability::RobustLosses).then_some(self as _),
            robust_fits: passes(Capability::RobustFits).then_some(self as _),
            exact_fits: passes(Capability::ExactFits),
            gradients: passes(Capability::ModifiedGradients),
            row_access: passes(Capability::RowAccess).then_some(self as _),
            outputs: passes(Capability::Outputs).then_some(self as _),
            classifiers: passes(Capability::Classifiers).then_some(self as _),
            // A stochastic model takes the place of the silo's own learner, inside all wrappers.
            stochastic: None,
            units: passes(Capability::UnitGradients).then_some(self as _),
            linear_rows: passes(Capability::LinearRows).then_some(self as _),
            // Rows are what they are, whatever is around the models.
            answers: inner.answers,
        }
    }
}

impl<W: LearnerWrapper + 'static> Summaries for WrappedLearner<W> {
    fn summary_layout(&self) -> Arc<Layout> {
        let inner = self.inner.summaries();
        let inner = inner.expect("passed on by `capabilities`");
        inner.summary_layout()
    }

    fn summarise(&self) -> Result<Params, LearnError> {
        self.inner.summaries()?.summarise()
    }
}

impl<W: LearnerWrapper + 'static> LinearRows for WrappedLearner<W> {
    fn linear_rows(&self, model: &Params, personal: &Params) -> Result<Samples, LearnError> {
        self.fits(model, personal)?;
        let (model, own) = self.by.inside(model, personal);
        self.inner.linear_rows()?.linear_rows(&model, &own)
    }

    fn linear_loss(&self) -> PlainLoss {
        let inner = self.inner.linear_rows();
        let inner = inner.expect("passed on by `capabilities`");
        inner.linear_loss()
    }
}

impl<W: LearnerWrapper + 'static> RobustLosses for WrappedLearner<W> {
    fn robust_loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        self.fits(model, personal)?;
        let (model, own) = self.by.inside(model, personal);
        let inner = self.inner.robust()?;
        inner.robust_loss(&model, &own, radius, split)
    }
}

impl<W: LearnerWrapper + 'static> RobustFits for WrappedLearner<W> {
    fn cross_validated_radius(
        &self,
        model: &Params,
        personal: &Params,
        search: &RadiusGrid,
    ) -> Result<f64, LearnError> {
        self.fits(model, personal)?;
        let (model, own) = self.by.inside(model, personal);
        let inner = self.inner.robust_fits()?;
        inner.cross_validated_radius(&model, &own, search)
    }
}

impl<W: LearnerWrapper + 'static> RowAccess for WrappedLearner<W> {
    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        let inner = self.inner.row_access().ok()?;
        Some(self.around(inner.holding_out(fold, folds, seed)?))
    }

    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        self.inner.row_access()?.batches(training, seed)
    }

    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        let inner = self.inner.row_access().ok()?;
        Some(self.around(inner.only(split, rows)?))
    }
}

impl<W: LearnerWrapper + 'static> Outputs for WrappedLearner<W> {
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
        self.inner.outputs()?.measure(&model, &own, outputs, split)
    }

    fn row_results(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<RowResults, LearnError> {
        self.fits(model, personal)?;
        let (model, own) = self.by.used(model, personal);
        let inner = self.inner.outputs()?;
        inner.row_results(&model, &own, outputs, split)
    }

    fn measures_beyond(&self, measured: &BTreeMap<String, f64>) -> bool {
        let inner = self.inner.outputs();
        inner.is_ok_and(|inner| inner.measures_beyond(measured))
    }

    fn mean_target(&self, model: &Params, personal: &Params, width: usize) -> Option<Vec<f64>> {
        self.fits(model, personal).ok()?;
        let (model, own) = self.by.used(model, personal);
        self.inner.outputs().ok()?.mean_target(&model, &own, width)
    }

    fn constant(&self, mean_target: &[f64]) -> Vec<f64> {
        let inner = self.inner.outputs();
        let inner = inner.expect("passed on by `capabilities`");
        inner.constant(mean_target)
    }

    fn output_layer(&self) -> Option<String> {
        self.inner.outputs().ok()?.output_layer()
    }
}

/// The model is that of the silo's own family, whatever a wrapper puts beside it.
impl<W: LearnerWrapper + 'static> UnitGradients for WrappedLearner<W> {
    fn unit_gradients(
        &self,
        model: &Params,
        unit: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError> {
        self.inner.units()?.unit_gradients(model, unit, with)
    }

    fn least_squares(&self) -> Option<&dyn LeastSquares> {
        self.inner.units().ok()?.least_squares()
    }
}

impl<W: LearnerWrapper + 'static> Classifiers for WrappedLearner<W> {
    fn classifier(&self, labels: &[u32], classes: usize, hidden: &[usize]) -> Arc<dyn Learner> {
        let inner = self.inner.classifiers();
        let inner = inner.expect("passed on by `capabilities`");
        inner.classifier(labels, classes, hidden)
    }
}
