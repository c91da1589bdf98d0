//! What a silo can do with its own data: the contract between the strategies and local training.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::params::{Layout, Params};
use crate::robust::Radius;

/// Which part of a silo's rows is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The rows that training sees.
    Train,
    /// The rows kept for choosing hyper-parameters.
    Validation,
    /// The rows that nothing but the final evaluation sees.
    Test,
}

/// What a silo is asked to do in a round. Part of the plan, so the same for every participant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Train locally from the start model; the contribution has the model's layout.
    Train(Training),
    /// Count, sum and spread of every column over the training rows; the contribution has
    /// [`Learner::summary_layout`]. Lets a federation standardise alike without showing a row.
    Summarise,
    /// Change nothing: the contribution is the start model as it is (with what the strategy
    /// reports beside it, such as the model's loss).
    Keep,
}

/// Local training, as every participant of a round carries it out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Training {
    /// Passes over the silo's training rows, at least 1.
    pub epochs: u32,
    /// Rows per step; the last batch of an epoch may be smaller. 0 means all rows at once.
    pub batch: u32,
    /// How a step moves the weights.
    pub optimiser: Optimiser,
}

impl Training {
    /// Steps that a training over this many rows takes.
    pub fn steps(&self, rows: u64) -> u64 {
        let batch = match self.batch {
            0 => rows,
            batch => batch.into(),
        };
        u64::from(self.epochs) * rows.div_ceil(batch.max(1))
    }
}

/// How a training differs from the plain one: what a strategy adds to the gradient at the silo.
/// With the loss's gradient `g` at the weights `w`, the optimiser is given
/// `g + mu·(w − anchor) + shift`. Only trained tensors are concerned, never buffers.
#[derive(Debug, Clone, Copy)]
pub struct Pull<'a> {
    /// Strength of the pull towards `anchor`, ≥ 0: the loss gains `mu/2·‖w − anchor‖²`.
    pub mu: f64,
    /// Tensors by name, in the model's shapes; those that it lacks are not pulled.
    pub anchor: &'a Params,
    /// Tensors by name, in the model's shapes, added as they are; nothing for those that it lacks.
    pub shift: Option<&'a Params>,
    /// Tensors, by name, that are not trained at all.
    pub still: Option<&'a Layout>,
}

impl Pull<'_> {
    /// Whether it changes nothing.
    pub fn is_plain(&self) -> bool {
        self.mu == 0.0 && self.shift.is_none() && self.still.is_none()
    }
}

/// The rule of a local step. Learning rates are per step, in units of the standardised data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", deny_unknown_fields, rename_all = "kebab-case")]
pub enum Optimiser {
    /// Stochastic gradient descent: `v ← momentum·v + (g + decay·w)`, `w ← w − rate·v`.
    Sgd {
        /// Learning rate, > 0.
        rate: f64,
        /// Momentum in `[0, 1)`.
        #[serde(default)]
        momentum: f64,
        /// Weight decay ≥ 0 (L2, added to the gradient; never on biases or buffers).
        #[serde(default, rename = "weight-decay")]
        weight_decay: f64,
    },
    /// Adam (Kingma & Ba 2015) with bias correction, β = (.9, .999), ε = 1e-8.
    Adam {
        /// Learning rate, > 0.
        rate: f64,
        /// Weight decay ≥ 0 (L2, added to the gradient; never on biases or buffers).
        #[serde(default, rename = "weight-decay")]
        weight_decay: f64,
    },
}

/// How far a training has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// Mean training loss of the last finished epoch, or of the steps so far in the first.
    pub loss: f64,
}

/// What a training gives back.
#[derive(Debug, Clone)]
pub struct Update {
    /// What is contributed: the trained model, or the summary.
    pub shared: Params,
    /// What stays at the silo and comes back in as `personal` next time. Empty layout if nothing.
    pub personal: Params,
    /// Training rows used.
    pub samples: u64,
    /// Training metrics (`loss`: mean training loss of the last epoch).
    pub metrics: Metrics,
}

impl Update {
    /// What [`Task::Keep`] gives, at a silo of so many training rows.
    pub fn kept(start: &Params, personal: &Params, samples: u64) -> Self {
        Self {
            shared: start.clone(),
            personal: personal.clone(),
            samples,
            metrics: Metrics {
                samples,
                values: BTreeMap::new(),
            },
        }
    }
}

/// Measurements by name over a number of rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Rows measured on.
    pub samples: u64,
    /// Values by name: `loss` always; `mae`, `mse` for regression (in the target's own units);
    /// `accuracy`, `log-loss`, `roc-auc` for classification.
    pub values: BTreeMap<String, f64>,
}

/// A learner whose model represents a row by a distribution instead of a point, and what it is
/// punished for beside the loss (FedSR, Nguyen et al. 2022).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stochastic {
    /// Weight ≥ 0 of the mean length of a representation (L2R).
    pub length: f64,
    /// Weight ≥ 0 of the distance between a row's distribution and that of its class (CMI).
    pub distance: f64,
    /// Representations drawn of a row where the model is measured, at least 1.
    pub draws: u32,
}

/// Why a learner could not do what it was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LearnError {
    /// The given model does not have this learner's layout.
    #[error("the model does not fit: expected {expected}, got {got}")]
    Layout {
        /// The learner's layout, in words.
        expected: String,
        /// The offered layout, in words.
        got: String,
    },
    /// The silo has no rows for this.
    #[error("no rows in the {0} part of this silo's data")]
    NoRows(&'static str),
    /// Training left the finite numbers.
    #[error("training diverged at step {step}: try a smaller learning rate (now {rate})")]
    Diverged {
        /// The step at which a weight or the loss stopped being finite.
        step: u64,
        /// The learning rate in force.
        rate: f64,
    },
    /// The rows are said to be of a domain that the strategy does not have.
    #[error(
        "this silo's rows are given as domain {domain}, but the strategy has {domains}, counted \
         from 0: give a lower one, or more `domains` in the strategy"
    )]
    Domain {
        /// The silo's domain.
        domain: u32,
        /// How many there are.
        domains: usize,
    },
    /// The progress callback asked to stop.
    #[error("training was stopped")]
    Stopped,
    /// The learner cannot do this at all.
    #[error("{0}")]
    Unsupported(String),
}

/// A silo's own data and the model family, as seen by the federation. Object-safe and without
/// hidden state: what is personal goes in and comes out, and the same arguments give the same bits
/// on the same machine.
pub trait Learner: Send + Sync {
    /// Names, shapes and roles of the model's tensors. The same at every silo.
    fn layout(&self) -> Arc<Layout>;

    /// Layout of what [`Task::Summarise`] contributes: `count` `[1]`, `sum` `[c]`, `squares` `[c]`
    /// (sums of squared deviations from the silo's own mean), over `c` columns (features, then
    /// target where it is scaled too). `None` where the learner has nothing to summarise.
    fn summary_layout(&self) -> Option<Arc<Layout>> {
        None
    }

    /// The model that everybody starts from, a function of the seed alone: the same bits at every
    /// silo.
    fn initial(&self, seed: u64) -> Params;

    /// Personal state before the first round, of the same seed as the initial model. Empty layout
    /// by default.
    fn initial_personal(&self, seed: u64) -> Params {
        let _ = seed;
        Params::empty()
    }

    /// The seed that [`train`](Self::train) gets in `round`, from the seed of this silo:
    /// [`mixed_seed`] of both. A learner that follows a script by round gives back the round.
    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        mixed_seed(silo_seed, round)
    }

    /// Carries out `task` from `start`. `seed` decides the order of rows; `progress` is called
    /// now and then and may stop the training.
    ///
    /// # Errors
    /// [`LearnError`]: wrong layout, no rows, divergence, stopped, unsupported task.
    fn train(
        &self,
        start: &Params,
        personal: &Params,
        task: &Task,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError>;

    /// The same as [`train`](Self::train) on [`Task::Train`], with a changed gradient. One that
    /// [is plain](Pull::is_plain) gives the same bits as `train`.
    ///
    /// # Errors
    /// As `train`; [`LearnError::Unsupported`] from a learner that cannot.
    fn train_pulled(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        pull: &Pull<'_>,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        if pull.is_plain() {
            return self.train(
                start,
                personal,
                &Task::Train(training.clone()),
                seed,
                progress,
            );
        }
        Err(LearnError::Unsupported(
            "this learner cannot train with a changed gradient: choose a strategy that needs none, \
             such as fedavg"
                .into(),
        ))
    }

    /// Measures a model on one part of the silo's rows.
    ///
    /// # Errors
    /// [`LearnError::Layout`], [`LearnError::NoRows`].
    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError>;

    /// The distributionally robust loss of `model` on the silo's training rows, within a
    /// Wasserstein ball of `radius` ≥ 0, in standardised units (CS-RCFL, eq. (10); see [`robust`](crate::robust)).
    ///
    /// # Errors
    /// [`LearnError::Unsupported`] where no exact robust loss is known for the model family.
    fn robust_loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
    ) -> Result<f64, LearnError>;

    /// The same on one part of the rows. By default what [`robust_loss`](Self::robust_loss) and
    /// [`evaluate`](Self::evaluate) say.
    ///
    /// # Errors
    /// As for these; [`LearnError::Unsupported`] by default with a radius above 0 on other rows
    /// than those of training.
    fn robust_loss_on(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        if split == Split::Train {
            return self.robust_loss(model, personal, radius);
        }
        let metrics = self.evaluate(model, personal, split)?;
        let loss = metrics.values.get("loss").filter(|_| radius == 0.0);
        loss.copied().ok_or_else(|| {
            LearnError::Unsupported(
                "this learner knows robust losses on its training rows only: use radius 0".into(),
            )
        })
    }

    /// The radius that `rule` means at this silo, on its training rows as `model` scales them. By
    /// default cross-validation is out of reach.
    ///
    /// # Errors
    /// [`LearnError::Unsupported`] where the rule cannot be carried out.
    fn radius(&self, model: &Params, personal: &Params, rule: &Radius) -> Result<f64, LearnError> {
        let _ = (model, personal);
        match rule {
            Radius::Fixed(radius) => Ok(*radius),
            Radius::ByRows(two) => {
                Ok(two.radius(usize::try_from(self.samples()).unwrap_or(usize::MAX)))
            }
            Radius::CrossValidated(_) => Err(LearnError::Unsupported(
                "this learner cannot choose a radius by cross-validation: give a number".into(),
            )),
        }
    }

    /// The model of least robust loss on the silo's training rows within `radius` ≥ 0, plus half
    /// of `ridge` ≥ 0 times the squared norm of its weights (see [`robust::fit`](crate::robust::fit())).
    /// It has the buffers of `start`, which say how rows are scaled.
    ///
    /// # Errors
    /// [`LearnError::Unsupported`] where no such fit is known, which is the default, or none exists.
    fn robust_fit(
        &self,
        start: &Params,
        personal: &Params,
        radius: f64,
        ridge: f64,
    ) -> Result<Update, LearnError> {
        let _ = (start, personal, radius, ridge);
        Err(LearnError::Unsupported(
            "robust fits are known for linear models with absolute loss and for logistic models: \
             use one of these, or another strategy"
                .into(),
        ))
    }

    /// Training rows of this silo.
    fn samples(&self) -> u64;

    /// The domain that all rows of this silo are of, from 0, where somebody who knows has said it:
    /// a kind of scanner, a population. `None` where nobody has.
    fn domain(&self) -> Option<u32> {
        None
    }

    /// The same silo with fold `fold` of `folds` of its training rows held out: it trains on the
    /// others, and [`Split::Validation`] is that fold. The folds divide the rows by `seed`, alike
    /// for every `fold`. `None` where there are no rows to hold out.
    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        let _ = (fold, folds, seed);
        None
    }

    /// The rows of every step that [`train`](Self::train) takes with this seed, by place among the
    /// training rows: for a strategy that takes the steps itself, with [`only`](Self::only).
    ///
    /// # Errors
    /// [`LearnError::Unsupported`] from a learner that cannot say; [`LearnError::NoRows`].
    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        let _ = (training, seed);
        Err(LearnError::Unsupported(
            "this learner does not say in which order it trains on its rows: choose a strategy \
             that leaves the steps to it, such as fedavg"
                .into(),
        ))
    }

    /// The same silo with these rows alone in one part, by place in it; a training goes through
    /// them in this order. `None` if it has no such rows, or cannot be divided.
    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        let _ = (split, rows);
        None
    }

    /// What a model says of every row of a part: rows × k, row-major, before any softmax.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate); [`LearnError::Unsupported`] where a model has no outputs.
    fn outputs(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        let _ = (model, personal, split);
        Err(LearnError::Unsupported(
            "this learner does not show what its models say of a row: choose a strategy that only \
             measures them, such as fedavg"
                .into(),
        ))
    }

    /// The metrics that [`evaluate`](Self::evaluate) gives of these [`outputs`](Self::outputs),
    /// wherever they come from; `model` says on which scale they are.
    ///
    /// # Errors
    /// As `outputs`.
    fn measure(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let _ = (model, personal, outputs, split);
        Err(LearnError::Unsupported(
            "this learner does not measure outputs: choose a strategy that only measures models, \
             such as fedavg"
                .into(),
        ))
    }

    /// Name of the layer that makes the outputs, if these are linear in its tensors (weight and
    /// bias) for whatever the other layers hold: then a mixture of its values gives the same
    /// mixture of the outputs.
    fn output_layer(&self) -> Option<String> {
        None
    }

    /// A classifier over the same rows that learns `labels` (one for every training row, each below
    /// `classes`, at least 1) by cross-entropy: k of its outputs is `classes`. On tables a
    /// perceptron with these hidden widths; a learner of other data takes a network that suits
    /// them. Its layout depends on `classes` and `hidden` only; what buffers it has are among those
    /// of this learner's own models; nothing of it is personal. `None` where there is none.
    fn classifier(
        &self,
        labels: &[u32],
        classes: usize,
        hidden: &[usize],
    ) -> Option<Arc<dyn Learner>> {
        let _ = (labels, classes, hidden);
        None
    }

    /// The learner of the same family whose models represent a row by a distribution. `None` where
    /// there is none.
    fn stochastic(&self, options: &Stochastic) -> Option<Arc<dyn Learner>> {
        let _ = options;
        None
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
