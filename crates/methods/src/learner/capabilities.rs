//! Capabilities of learners beyond the core, each a small object-safe trait.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::capability::{Capability, MissingCapability};
use super::{LearnError, Learner, Metrics, RowResults, Split, Training};
use crate::params::{Layout, Params};
use crate::robust::ridge::PlainLoss;
use crate::robust::{RadiusGrid, Ridge, Samples};

/// Capabilities of a learner beyond the core. A learner of its own writes
/// `Capabilities { robust: Some(self), ..Capabilities::NONE }`; one that wraps another names every
/// field, so that the compiler notices a capability that it would drop.
#[derive(Clone, Copy)]
pub struct Capabilities<'a> {
    /// Count, sum and spread of the columns.
    pub summaries: Option<&'a dyn Summaries>,
    /// Worst losses within a radius.
    pub robust: Option<&'a dyn RobustLosses>,
    /// The model of least robust loss: [`Work::RobustFit`](super::Work::RobustFit).
    pub robust_fits: Option<&'a dyn RobustFits>,
    /// The model of least loss with a ridge, instead of training in steps:
    /// [`Work::ExactFit`](super::Work::ExactFit).
    pub exact_fits: bool,
    /// Training with a gradient that a strategy modifies.
    pub gradients: bool,
    /// Rows one by one.
    pub row_access: Option<&'a dyn RowAccess>,
    /// Outputs of a model, row by row.
    pub outputs: Option<&'a dyn Outputs>,
    /// Classifiers over the same rows.
    pub classifiers: Option<&'a dyn Classifiers>,
    /// Models that represent a row by a distribution.
    pub stochastic: Option<&'a dyn StochasticModels>,
    /// Gradients of single rows or persons.
    pub units: Option<&'a dyn UnitGradients>,
    /// The rows of a linear model.
    pub linear_rows: Option<&'a dyn LinearRows>,
    /// Answers to questions about all rows.
    pub answers: Option<&'a dyn Answers>,
}

impl Capabilities<'_> {
    /// Nothing beyond the core.
    pub const NONE: Self = Self {
        summaries: None,
        robust: None,
        robust_fits: None,
        exact_fits: false,
        gradients: false,
        row_access: None,
        outputs: None,
        classifiers: None,
        stochastic: None,
        units: None,
        linear_rows: None,
        answers: None,
    };

    /// Returns whether the capability is among these.
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Summaries => self.summaries.is_some(),
            Capability::RobustLosses => self.robust.is_some(),
            Capability::RobustFits => self.robust_fits.is_some(),
            Capability::ExactFits => self.exact_fits,
            Capability::ModifiedGradients => self.gradients,
            Capability::RowAccess => self.row_access.is_some(),
            Capability::Outputs => self.outputs.is_some(),
            Capability::Classifiers => self.classifiers.is_some(),
            Capability::StochasticModels => self.stochastic.is_some(),
            Capability::UnitGradients => self.units.is_some(),
            Capability::LinearRows => self.linear_rows.is_some(),
            Capability::Answers => self.answers.is_some(),
        }
    }

    /// Refuses a learner that lacks one of these.
    ///
    /// # Errors
    /// [`MissingCapability`]: the first one that it lacks.
    pub fn require(&self, needed: &[Capability]) -> Result<(), MissingCapability> {
        let missing = needed.iter().find(|&&capability| !self.has(capability));
        missing.map_or(Ok(()), |&capability| Err(MissingCapability(capability)))
    }
}

impl dyn Learner + '_ {
    /// Count, sum and spread of the columns.
    ///
    /// # Errors
    /// [`MissingCapability`] where there is nothing to summarise.
    pub fn summaries(&self) -> Result<&dyn Summaries, MissingCapability> {
        let found = self.capabilities().summaries;
        found.ok_or(MissingCapability(Capability::Summaries))
    }

    /// Worst losses within a radius.
    ///
    /// # Errors
    /// [`MissingCapability`] where none is known for the model family.
    pub fn robust(&self) -> Result<&dyn RobustLosses, MissingCapability> {
        let found = self.capabilities().robust;
        found.ok_or(MissingCapability(Capability::RobustLosses))
    }

    /// The model of least robust loss.
    ///
    /// # Errors
    /// [`MissingCapability`] where no such fit is known for the model family.
    pub fn robust_fits(&self) -> Result<&dyn RobustFits, MissingCapability> {
        let found = self.capabilities().robust_fits;
        found.ok_or(MissingCapability(Capability::RobustFits))
    }

    /// Returns whether the learner has this capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities().has(capability)
    }

    /// Rows one by one.
    ///
    /// # Errors
    /// [`MissingCapability`] where the rows cannot be divided.
    pub fn row_access(&self) -> Result<&dyn RowAccess, MissingCapability> {
        let found = self.capabilities().row_access;
        found.ok_or(MissingCapability(Capability::RowAccess))
    }

    /// Gradients of single rows or persons.
    ///
    /// # Errors
    /// [`MissingCapability`] where rows have none of their own.
    pub fn units(&self) -> Result<&dyn UnitGradients, MissingCapability> {
        let found = self.capabilities().units;
        found.ok_or(MissingCapability(Capability::UnitGradients))
    }

    /// The rows of a linear model.
    ///
    /// # Errors
    /// [`MissingCapability`] where models are of another kind.
    pub fn linear_rows(&self) -> Result<&dyn LinearRows, MissingCapability> {
        let found = self.capabilities().linear_rows;
        found.ok_or(MissingCapability(Capability::LinearRows))
    }

    /// Answers to questions about all rows.
    ///
    /// # Errors
    /// [`MissingCapability`] where the rows are not here.
    pub fn answers(&self) -> Result<&dyn Answers, MissingCapability> {
        let found = self.capabilities().answers;
        found.ok_or(MissingCapability(Capability::Answers))
    }

    /// Outputs of a model, row by row.
    ///
    /// # Errors
    /// [`MissingCapability`] where models have none.
    pub fn outputs(&self) -> Result<&dyn Outputs, MissingCapability> {
        let found = self.capabilities().outputs;
        found.ok_or(MissingCapability(Capability::Outputs))
    }

    /// Classifiers over the same rows.
    ///
    /// # Errors
    /// [`MissingCapability`] where there is none.
    pub fn classifiers(&self) -> Result<&dyn Classifiers, MissingCapability> {
        let found = self.capabilities().classifiers;
        found.ok_or(MissingCapability(Capability::Classifiers))
    }

    /// Models that represent a row by a distribution.
    ///
    /// # Errors
    /// [`MissingCapability`] where the model family has none.
    pub fn stochastic(&self) -> Result<&dyn StochasticModels, MissingCapability> {
        let found = self.capabilities().stochastic;
        found.ok_or(MissingCapability(Capability::StochasticModels))
    }
}

/// Rows of a linear model: for fits that look at more than the loss, at the silo itself.
///
/// The tensors of its models are `weight`, one number for every feature, and `bias`, the intercept, beside
/// buffers of the scale.
pub trait LinearRows {
    /// The training rows, as `model` scales them; classes as −1 and 1.
    ///
    /// # Errors
    /// [`LearnError::Layout`], [`LearnError::NoRows`].
    fn linear_rows(&self, model: &Params, personal: &Params) -> Result<Samples, LearnError>;

    /// The loss of a row.
    fn linear_loss(&self) -> PlainLoss;
}

/// Answers of a silo to the questions of an agreement, from all of its rows.
pub trait Answers {
    /// A number that tells the silo from others as long as a question lasts, and says nothing of who it is.
    fn pseudonym(&self, question: usize) -> u64;

    /// Returns what the silo says in the next round of a question, counted from 0 as the agreement lists them.
    ///
    /// # Errors
    /// [`LearnError::Failed`]: why the silo cannot say anything in this round, in a sentence.
    fn answer(&self, question: usize, opened: OpenedSums<'_>) -> Result<OwnAnswer, LearnError>;

    /// Gives `each` the numbers of every row by itself, whose sum is the answer but for the number of silos: for sums
    /// with noise.
    ///
    /// # Errors
    /// [`LearnError::Failed`]: why the silo does not answer, in a sentence that tells nothing of its rows.
    fn row_answers(
        &self,
        question: usize,
        opened: &[Vec<u64>],
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), LearnError> {
        let _ = (question, opened, each);
        Err(LearnError::Failed(
            "the silo answers no question with noise".into(),
        ))
    }
}

/// Sums that the rounds of a question have opened so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenedSums<'a> {
    /// The sums of all silos that answer, by round, modulo 2⁶⁴.
    pub sums: &'a [Vec<u64>],
    /// Where sums alone are opened, those of the first round by the pseudonym of their authors together, ascending: one
    /// for each group of silos.
    pub groups: &'a [(u64, Vec<u64>)],
}

/// Answer of a silo in a round of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnAnswer {
    /// Its numbers, as integers modulo 2⁶⁴, because they are added up.
    Numbers(Vec<u64>),
    /// It refuses, by the rule of this number, below [`REFUSAL_RULES`](crate::strategy::REFUSAL_RULES). Others learn
    /// no more.
    Refused(usize),
}

/// Count, sum and spread of the columns, for a scale that the whole federation shares.
pub trait Summaries {
    /// Layout of a summary: `count` `[1]`, `sum` `[c]` and what single precision leaves of it
    /// ([`SUM_REST`](crate::strategy::SUM_REST)) `[c]`, `squares` `[c]` (sums of squared deviations
    /// from the silo's own mean), over `c` columns (features, then target where it is scaled too).
    fn summary_layout(&self) -> Arc<Layout>;

    /// The summary of the training rows.
    ///
    /// # Errors
    /// [`LearnError::NoRows`].
    fn summarise(&self) -> Result<Params, LearnError>;
}

/// Distributionally robust losses (CS-RCFL, eq. (10); see [`robust`](crate::robust)).
pub trait RobustLosses {
    /// The largest expected loss of `model` within a Wasserstein ball of `radius` ≥ 0 around one
    /// part of the silo's rows, in standardised units. At radius 0 the plain loss.
    ///
    /// # Errors
    /// [`LearnError::Layout`], [`LearnError::NoRows`]; [`LearnError::Failed`] for a model that is
    /// not finite.
    fn robust_loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError>;
}

/// Models of least robust loss (see [`robust::fit`](crate::robust::fit())): a learner that has this
/// carries out [`Work::RobustFit`](super::Work::RobustFit).
pub trait RobustFits {
    /// The radius whose robust fits do best in cross-validation on the training rows, as `model`
    /// scales them.
    ///
    /// # Errors
    /// [`LearnError::Layout`], [`LearnError::NoRows`]; [`LearnError::Failed`] where no fit exists.
    fn cross_validated_radius(
        &self,
        model: &Params,
        personal: &Params,
        search: &RadiusGrid,
    ) -> Result<f64, LearnError>;
}

/// A fit by plain loss and a ridge (see [`robust::ridge`](crate::robust::ridge)).
#[derive(Debug, Clone, PartialEq)]
pub struct ExactFit {
    /// The rule for the strength of the ridge.
    pub ridge: Ridge,
    /// True if the ridge pulls the weights towards those of the start model, instead of towards 0.
    pub around_start: bool,
}

/// Rows one by one: to hold some out, and to take steps on chosen ones.
pub trait RowAccess {
    /// This silo with fold `fold` of `folds` of its training rows held out: it trains on the others,
    /// and [`Split::Validation`] is that fold. The folds divide the rows by `seed`, alike for every
    /// `fold`. `None` where there are too few rows.
    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>>;

    /// This silo without each of the folds: as many folds as asked for, or as there are rows, or groups of rows such
    /// as persons. `None` where there are not even two.
    fn without_folds(&self, folds: usize, seed: u64) -> Option<Vec<Arc<dyn Learner>>> {
        (2..=folds).rev().find_map(|folds| {
            let each = (0..folds).map(|fold| self.holding_out(fold, folds, seed));
            each.collect()
        })
    }

    /// The rows of every step that [`Learner::train`] takes with this seed, by position among the
    /// training rows: for a strategy that takes the steps itself, with [`only`](Self::only).
    ///
    /// # Errors
    /// [`LearnError::NoRows`].
    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError>;

    /// This silo with these rows alone in one part, by position in it; a training goes through them in
    /// this order. `None` if it has no such rows.
    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>>;

    /// One plain step of length `rate` on training rows of which every part has a model of its own:
    /// every model goes against its gradient of the mean loss over the rows of all parts. For
    /// models in which the rows of a step influence each other, as batch normalisation does that
    /// takes its statistics from all of them. `None` where they do not: then a step of each part
    /// alone, shortened to its share of the rows, is the same. By default `None`.
    fn joint_step(
        &self,
        _parts: &[RowsOfModel<'_>],
        _personal: &Params,
        _rate: f64,
        _seed: u64,
    ) -> Option<Result<JointStep, LearnError>> {
        None
    }
}

/// Rows of a step and their model.
#[derive(Debug, Clone, Copy)]
pub struct RowsOfModel<'a> {
    /// The model that these rows pass through.
    pub model: &'a Params,
    /// Positions among the training rows; at least one.
    pub rows: &'a [u32],
}

/// Result of a [joint step](RowAccess::joint_step).
#[derive(Debug, Clone, PartialEq)]
pub struct JointStep {
    /// The models after it, in the order of the parts. Buffers, such as running statistics, are the
    /// same in all of them.
    pub models: Vec<Params>,
    /// The mean loss of all rows before it.
    pub loss: f64,
    /// The personal state after it.
    pub personal: Params,
}

/// Outputs of a model, row by row.
pub trait Outputs {
    /// The outputs for every row of a part: rows × k, row-major, before any softmax.
    ///
    /// # Errors
    /// As [`Learner::evaluate`].
    fn outputs(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError>;

    /// The metrics that [`Learner::evaluate`] gives of these [`outputs`](Self::outputs), wherever
    /// they come from; `model` holds the scale that they are on.
    ///
    /// # Errors
    /// As [`Learner::evaluate`].
    fn measure(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError>;

    /// Returns what these [`outputs`](Self::outputs) are worth row by row, of which
    /// [`measure`](Self::measure) gives the means; `model` holds the scale that they are on.
    ///
    /// # Errors
    /// As [`Learner::evaluate`].
    fn row_results(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<RowResults, LearnError>;

    /// Returns whether [`Learner::evaluate`] may give metrics beside `measured`, those of
    /// [`measure`](Self::measure) by name: a program's own, which do not follow from outputs. `false` by default.
    fn measures_beyond(&self, measured: &BTreeMap<String, f64>) -> bool {
        let _ = measured;
        false
    }

    /// The mean target of the training rows on the scale of `model`: one number or several, one per
    /// pixel, or for classes their fractions, for models of `width` outputs. With the means of
    /// several silos, weighted by their rows, it gives [`constant`](Self::constant) predictions.
    /// `None` where there is no such mean.
    fn mean_target(&self, model: &Params, personal: &Params, width: usize) -> Option<Vec<f64>>;

    /// The outputs for one row of a model that gives every row this mean target.
    fn constant(&self, mean_target: &[f64]) -> Vec<f64>;

    /// Name of the layer that makes the outputs, if these are linear in its tensors (weight and
    /// bias) for whatever the other layers hold: then a mixture of its values gives the same
    /// mixture of the outputs. `None` by default.
    fn output_layer(&self) -> Option<String> {
        None
    }
}

/// Classifiers over the same rows.
pub trait Classifiers {
    /// A classifier over the same rows that learns `labels` (one for every training row, each below
    /// `classes`, at least 1) by cross-entropy: k of its outputs is `classes`. On tables a
    /// perceptron with these hidden widths; a learner of other data takes a network that suits
    /// them. Its layout depends on `classes` and `hidden` only; its buffers, if any, are among
    /// those of this learner's local models; nothing of it is personal. It gives its [`Outputs`].
    fn classifier(&self, labels: &[u32], classes: usize, hidden: &[usize]) -> Arc<dyn Learner>;
}

/// Weights and draws of a stochastic model, which represents a row by a distribution instead of a
/// point (FedSR, Nguyen et al. 2022).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stochastic {
    /// Weight ≥ 0 of the mean length of a representation (L2R).
    pub length: f64,
    /// Weight ≥ 0 of the distance between a row's distribution and that of its class (CMI).
    pub distance: f64,
    /// Representations drawn of a row where the model is measured, at least 1.
    pub draws: u32,
}

/// Models that represent a row by a distribution.
pub trait StochasticModels {
    /// The learner of the same family, on the same rows, whose models are stochastic.
    fn stochastic(&self, options: &Stochastic) -> Arc<dyn Learner>;
}

/// The rows that a gradient is asked for at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitRows {
    /// One row.
    One,
    /// All rows of a group, such as those of a person.
    Group,
}

/// Gradients of single units, a row or all rows of a group: what a bound on what is told about one of them
/// needs.
pub trait UnitGradients: Send + Sync {
    /// Gives `with` the gradient of every unit's loss on the training rows, in the order of the model's values;
    /// that of a group is the sum of those of its rows. Returns the mean loss of a row, not a number where
    /// there is none.
    ///
    /// The model has the layout of the silo's own family, without what a strategy keeps beside it. A unit has
    /// the same numbers, bit for bit, whatever other rows there are.
    ///
    /// # Errors
    /// [`LearnError`]: wrong layout, rows without groups where those of groups are asked for. Never that there
    /// are no rows: whether there are any is nothing that a silo may show.
    fn unit_gradients(
        &self,
        model: &Params,
        unit: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError>;

    /// The rows of every unit, for a linear model that least squares finds. By default none: the model is
    /// another one.
    fn least_squares(&self) -> Option<&dyn LeastSquares> {
        None
    }
}

/// A row of a linear model, and the number that least squares fits it to.
pub type SquaresRow<'a> = (&'a [f32], f64);

/// Rows of a linear model that least squares finds: of one output, with weights of all features, then an
/// intercept.
pub trait LeastSquares {
    /// Gives `with` the rows of every unit among the training rows. The target is a number as it is, or ±2
    /// for one of two classes: for m = ±output the loss log(1 + e^(−m)) is log 2 − m/2 + m²/8 to second
    /// order, least where that of least squares with targets ±2 is least.
    ///
    /// # Errors
    /// [`LearnError`]: rows without groups where those of groups are asked for; never that there are no rows.
    fn unit_rows(
        &self,
        unit: UnitRows,
        with: &mut dyn FnMut(&[SquaresRow<'_>]),
    ) -> Result<(), LearnError>;
}
