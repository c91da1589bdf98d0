//! The contract between strategies and local training: what a silo can do with its own data.
//!
//! A [`Learner`] is one silo's data together with a family of models. Strategies train and measure
//! only through this trait; they never see a row. It has two parts:
//!
//! - The **core**, which every learner has: the [layout](Learner::layout) of its models, the
//!   [initial](Learner::initial) model, [training](Learner::train),
//!   [evaluation](Learner::evaluate) and the [number of training rows](Learner::samples).
//! - **[Capabilities]**, which it may have: [robust losses](RobustLosses) and
//!   [fits](RobustFits), [exact fits](ExactFit) with a ridge, training with
//!   [modified gradients](GradientModifier), access to
//!   [single rows](RowAccess), [outputs](Outputs) of a model row by row,
//!   [classifiers](Classifiers) over the same rows, [stochastic models](StochasticModels),
//!   [summaries](Summaries) of the columns, gradients of [single units](UnitGradients), and the rows of
//!   [linear models](LinearRows), and [answers](Answers) to questions about all rows.
//!
//! A capability is asked for by its accessor, such as
//! [`robust`](trait.Learner.html#method.robust); the answer is the capability, or an error that
//! names what is missing. [`Strategy::equip`](crate::Strategy::equip) asks for everything that a
//! strategy needs, so that a learner that lacks something is refused before the first round.
//!
//! Whatever is done with a model and the training rows is a [`Job`]: one verb,
//! [`learn`](Learner::learn), carries out all of them. A learner that only trains writes
//! [`train`](Learner::train) and leaves the other to its default.
//!
//! A learner that wraps another one names every field of [`Capabilities`]. When a capability is
//! added, the compiler then asks every wrapper whether to pass it on.
//!
//! [`QuadraticLearner`] has no rows and a known optimum: tests and examples of strategies use it.
//!
//! # Writing a learner
//!
//! ```
//! use std::{ops::ControlFlow, sync::Arc};
//! use methods::learner::{Capabilities, Watch};
//! use methods::*;
//!
//! /// A weather station. Its model is one number, the usual temperature.
//! struct Station(Vec<f32>);
//!
//! impl Learner for Station {
//!     fn layout(&self) -> Arc<Layout> {
//!         Layout::new(vec![TensorSpec::new("usual", [1], Role::Weight)]).expect("one tensor")
//!     }
//!     fn initial(&self, _seed: u64) -> Params {
//!         Params::zeros(&self.layout())
//!     }
//!     fn train(
//!         &self, _: &Params, personal: &Params, _: &Training, _seed: u64, _: &mut Watch<'_>,
//!     ) -> Result<Update, LearnError> {
//!         let mean = self.0.iter().sum::<f32>() / self.0.len() as f32;
//!         let shared = Params::from_values(&self.layout(), &[mean]);
//!         let metrics = self.evaluate(&shared, personal, Split::Train)?;
//!         Ok(Update { shared, personal: personal.clone(), samples: self.samples(), metrics })
//!     }
//!     fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
//!         let off = |day: &f32| f64::from((day - model.values()[0]).abs());
//!         let loss = self.0.iter().map(off).sum::<f64>() / self.0.len() as f64;
//!         Ok(Metrics { samples: self.samples(), values: [("loss".into(), loss)].into() })
//!     }
//!     fn samples(&self) -> u64 {
//!         self.0.len() as u64
//!     }
//!     fn capabilities(&self) -> Capabilities<'_> {
//!         Capabilities::NONE
//!     }
//! }
//!
//! let oslo: Arc<dyn Learner> = Arc::new(Station(vec![3.0, 5.0, 4.0]));
//! let missing = oslo.robust().err().map(|missing| missing.to_string());
//! assert!(missing.is_some_and(|text| text.starts_with("the learner has no robust losses")));
//! ```

mod capabilities;
mod capability;
mod error;
mod job;
mod optimiser;
mod own_metric;
mod quadratic;
mod row_results;
mod training;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::params::{Layout, Params};
use crate::robust::Radius;

pub use capabilities::{
    Answers, Capabilities, Classifiers, ExactFit, JointStep, LeastSquares, LinearRows, OpenedSums,
    Outputs, OwnAnswer, RobustFits, RobustLosses, RowAccess, RowsOfModel, SquaresRow, Stochastic,
    StochasticModels, Summaries, UnitGradients, UnitRows,
};
pub use capability::{Capability, MissingCapability};
pub use error::LearnError;
pub use job::{Job, Work};
pub use optimiser::{ADAM, OptimiserState};
pub use own_metric::OwnMetric;
pub use quadratic::QuadraticLearner;
pub use row_results::{RowResults, Surviving, together};
pub use training::{Decay, GradientModifier, Metrics, Optimiser, Progress, Training, Update};

/// A callback that gets the progress of a training and may stop it.
pub type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// One part of a silo's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The rows that training sees.
    Train,
    /// The rows kept for choosing hyper-parameters.
    Validation,
    /// The rows that only the final evaluation sees.
    Test,
}

/// Task of a silo in a round. Part of the plan, so the same for every participant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Train locally from the start model; the contribution has the model's layout.
    Train(Training),
    /// Count, sum and spread of every column over the training rows; the contribution has the
    /// layout of [`Summaries::summary_layout`]. A federation can standardise alike without showing a row.
    Summarise,
    /// Change nothing: the contribution is the start model as it is (with what the strategy
    /// reports beside it, such as the model's loss).
    Keep,
    /// Answer the question of this number, from 0, in the agreement. What a silo contributes depends on what
    /// was opened of the question before, which is in the state.
    Answer(u32),
}

/// A silo's own data and the model family, as seen by the federation. Object-safe and without
/// hidden state: what is personal goes in and comes out, and the same arguments give the same bits
/// on the same machine.
pub trait Learner: Send + Sync {
    /// The learner inside, where this one only adds to another or changes a part of it: all that has a
    /// default is then that one's, but for what this one defines itself. None by default.
    fn inner(&self) -> Option<&dyn Learner> {
        None
    }

    /// Names, shapes and roles of the model's tensors. The same at every silo. A layout that is made
    /// [by depth](Layout::by_depth) says which layer is the last.
    fn layout(&self) -> Arc<Layout>;

    /// The model that every silo starts from, a function of the seed alone: the same bits at every
    /// silo.
    fn initial(&self, seed: u64) -> Params;

    /// Personal state before the first round, of the same seed as the initial model. Empty layout
    /// by default.
    fn initial_personal(&self, seed: u64) -> Params {
        match self.inner() {
            Some(inner) => inner.initial_personal(seed),
            None => Params::empty(),
        }
    }

    /// The seed that [`train`](Self::train) gets in `round`, from the seed of this silo:
    /// [`mixed_seed`] of both. A learner that follows a script by round gives back the round.
    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        match self.inner() {
            Some(inner) => inner.seed(silo_seed, round),
            None => mixed_seed(silo_seed, round),
        }
    }

    /// Trains from `start`. `seed` decides the order of rows; `progress` is called now and then
    /// and may stop the training.
    ///
    /// # Errors
    /// [`LearnError`]: wrong layout, no rows, divergence, stopped.
    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError>;

    /// Carries out any [`Job`]. By default plain training is [`train`](Self::train), and a model
    /// that is [kept](Work::Keep) comes back as it is. A learner with
    /// [modified gradients](Capability::ModifiedGradients) or fits carries these out, too.
    ///
    /// # Errors
    /// Those of [`train`](Self::train); [`LearnError::Missing`] for what it cannot do.
    fn learn(&self, job: Job<'_>, progress: &mut Watch<'_>) -> Result<Update, LearnError> {
        match (self.inner(), &job.work) {
            (Some(inner), _) => inner.learn(job, progress),
            (None, Work::Train { training, .. }) if job.work.modifier().is_none() => {
                self.train(job.start, job.personal, training, job.seed, progress)
            }
            (None, _) => job.without_fits(self.samples()),
        }
    }

    /// Measures a model on one part of the silo's rows. The metrics always hold `loss`.
    ///
    /// # Errors
    /// [`LearnError::Layout`], [`LearnError::NoRows`].
    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError>;

    /// The model that a silo predicts with, in the layout of its own family and without what a
    /// strategy puts around it: what can be used where there is no federation. Where rows of the silo
    /// have models of their own, as with the domains of FedCG, that of its mean training row; `None`
    /// where no such model is near to what it predicts with. By default the model as it is, where there
    /// is no personal state beside it.
    fn deployed(&self, model: &Params, personal: &Params) -> Option<Params> {
        match self.inner() {
            Some(inner) => inner.deployed(model, personal),
            None => personal.values().is_empty().then(|| model.clone()),
        }
    }

    /// Training rows of this silo.
    fn samples(&self) -> u64;

    /// The domain of all rows of this silo, from 0, where it is known: a kind of scanner, a
    /// population. `None` by default.
    fn domain(&self) -> Option<u32> {
        self.inner()?.domain()
    }

    /// The domain of every training row, from 0, where all are known. By default
    /// [`domain`](Self::domain) for each of them.
    fn row_domains(&self) -> Option<Vec<u32>> {
        match self.inner() {
            Some(inner) => inner.row_domains(),
            None => Some(vec![self.domain()?; self.samples() as usize]),
        }
    }

    /// Returns what this learner can do beyond the core; [`Capabilities::NONE`] for one that can do
    /// nothing more. A learner that wraps another one names every field.
    fn capabilities(&self) -> Capabilities<'_>;
}

impl dyn Learner + '_ {
    /// Carries out a task of a plan.
    ///
    /// # Errors
    /// [`LearnError`]; [`LearnError::Missing`] where a summary is asked for and there is none.
    pub fn carry_out(
        &self,
        start: &Params,
        personal: &Params,
        task: &Task,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let job = |work| Job {
            start,
            personal,
            seed,
            work,
        };
        match task {
            Task::Train(training) => {
                Job::train(start, personal, training, seed).run(self, progress)
            }
            Task::Keep => job(Work::Keep).run(self, progress),
            Task::Summarise => {
                let shared = self.summaries()?.summarise()?;
                Ok(Update::kept(&shared, personal, self.samples()))
            }
            Task::Answer(_) => Err(LearnError::Failed(
                "a question is answered from what its earlier rounds have opened".into(),
            )),
        }
    }

    /// The loss of `model` on one part of the rows: at `radius` 0 that of
    /// [`evaluate`](Learner::evaluate), above it the worst within that radius.
    ///
    /// # Errors
    /// Those of [`evaluate`](Learner::evaluate) and [`RobustLosses::robust_loss`];
    /// [`LearnError::Missing`] with a radius above 0 where no robust loss is known.
    pub fn loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        match self.robust() {
            Ok(robust) => robust.robust_loss(model, personal, radius, split),
            Err(_) if radius == 0.0 => self.evaluate(model, personal, split)?.get("loss"),
            Err(missing) => Err(missing.into()),
        }
    }

    /// The radius that `rule` gives at this silo, from its training rows as `model` scales them.
    ///
    /// # Errors
    /// [`LearnError::Missing`] for cross-validation without [`RobustFits`]; the errors of
    /// [`RobustFits::cross_validated_radius`].
    pub fn radius(
        &self,
        model: &Params,
        personal: &Params,
        rule: &Radius,
    ) -> Result<f64, LearnError> {
        match rule {
            Radius::Fixed(radius) => Ok(*radius),
            Radius::ByRows(two) => {
                Ok(two.radius(usize::try_from(self.samples()).unwrap_or(usize::MAX)))
            }
            Radius::CrossValidated(search) => {
                let fits = self.robust_fits()?;
                fits.cross_validated_radius(model, personal, search)
            }
        }
    }
}

/// One seed from a silo's and the round: SplitMix64 of both, so that silos and rounds draw
/// independently of each other.
pub fn mixed_seed(silo_seed: u64, round: u64) -> u64 {
    let mix = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    mix(silo_seed ^ mix(round))
}
