//! The learner of a silo with its own rows, for any model family.
//!
//! [`TableLearner`] trains, evaluates and summarises; its capabilities are in modules of their own:
//! `robust` (robust losses and fits), `survival` (the baseline of times to an event), `exact` (fits by plain loss), `rows` (order of rows, single rows and folds), `outputs`
//! (outputs, classifiers), `stochastic` (models that represent a row by a distribution).

mod exact;
mod outputs;
mod robust;
mod rows;
mod stochastic;
mod survival;
mod units;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use methods::learner::{Capabilities, GradientModifier, Job, Summaries, Work};
use methods::robust::TransportCost;
use methods::{Layout, LearnError, Learner, Metrics, Params, Split, Training, Update, Watch};

use self::rows::RowOrder;
use super::fits;
use super::scale::ColumnScaling;
use super::training::{diverged, train};
use crate::data::{Prepared, Rows, Standardise, Target};
use crate::device::Device;
use crate::metrics::{measure, measure_survival};
use crate::models::{Loss, Model, ModelFit, NamedValues, RegressionLoss};
use crate::random::{shuffle, stream};

pub(crate) use self::rows::TrainingScript;

/// Trains a model of any family on a silo's rows. It has no personal state.
#[derive(Clone)]
pub struct TableLearner {
    train: Arc<Rows>,
    validation: Arc<Rows>,
    test: Arc<Rows>,
    unit: f64,
    model: Arc<dyn Model>,
    loss: Loss,
    /// The agreed time up to which survival is measured.
    horizon: Option<f64>,
    scale: Option<ColumnScaling>,
    transport_cost: TransportCost,
    order: RowOrder,
    domain: Option<u32>,
    layout: Arc<Layout>,
    device: Device,
}

impl TableLearner {
    pub(crate) fn new(
        data: Prepared,
        model: Box<dyn Model>,
        loss: Loss,
        standardise: Standardise,
        transport_cost: TransportCost,
    ) -> Self {
        let scale = scale_of(data.features, &data.target, standardise);
        let layout = layout_of(&*model, scale.as_ref());
        let horizon = match &data.target {
            Target::Survival { at, .. } => at.last().copied(),
            _ => None,
        };
        let Prepared {
            train,
            validation,
            test,
            preparation,
            ..
        } = data;
        let unit = preparation.target_deviation;
        Self {
            train,
            validation,
            test,
            unit,
            model: model.into(),
            loss,
            horizon,
            scale,
            transport_cost,
            order: RowOrder::Drawn,
            domain: None,
            layout,
            device: Device::cpu(),
        }
    }

    /// A learner with the training rows of all of these, which are of one task; each row as its own
    /// silo scales it. Nothing is held out, and the rows have no common domain. Rows with a time to an event are at
    /// risk together, whichever silo they are from.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn pooled(learners: &[&Self]) -> Self {
        let first = learners.first().expect("at least one silo");
        let rows: Vec<&Rows> = learners.iter().map(|learner| &*learner.train).collect();
        Self {
            train: Arc::new(Rows::concat(&rows)),
            validation: Arc::default(),
            test: Arc::default(),
            unit: first.unit,
            model: first.model.clone(),
            loss: first.loss,
            horizon: first.horizon,
            scale: first.scale.clone(),
            transport_cost: first.transport_cost,
            order: RowOrder::Drawn,
            domain: None,
            layout: first.layout.clone(),
            device: first.device.clone(),
        }
    }

    /// This learner with given start weights and orders of rows. The seed of a training is then the round.
    pub(crate) fn follow(mut self, script: TrainingScript) -> Self {
        self.order = RowOrder::Script(Arc::new(script));
        self
    }

    /// This learner with the domain of its rows.
    pub(crate) fn within(mut self, domain: Option<u32>) -> Self {
        self.domain = domain;
        self
    }

    /// This learner, computing on `device`. What it draws and what it starts from stays the same; what is
    /// computed may differ in the last bits.
    #[must_use]
    pub fn on(&self, device: &Device) -> Self {
        Self {
            model: self.model.on(device),
            device: device.clone(),
            ..self.clone()
        }
    }

    /// Returns whether every model has the same metrics on the test rows of both: these are the same rows in memory,
    /// and unit and device are the same. Both learn one task, so loss and family of models are the same too.
    pub(crate) fn tests_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.test, &other.test)
            && self.unit.to_bits() == other.unit.to_bits()
            && self.device.name() == other.device.name()
    }

    /// This silo with the targets of its training rows shuffled: what a silo learns from whose labels are
    /// wrong, for simulations of one.
    pub fn with_shuffled_targets(&self, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..self.train.len()).collect();
        shuffle(&mut stream(seed, "wrong labels"), &mut order);
        Self {
            train: Arc::new(self.train.with_targets_of(&order)),
            ..self.clone()
        }
    }

    /// Numbers per row.
    pub(crate) fn features(&self) -> usize {
        self.train.width()
    }

    /// The rows of a part on the scale of `model`; `None` where there are none.
    pub(crate) fn rows_of(&self, model: &Params, split: Split) -> Option<Cow<'_, Rows>> {
        Some(self.scaled(model, self.part(split).ok()?))
    }

    /// The loss, in a word.
    pub(crate) fn loss_name(&self) -> &'static str {
        match self.loss {
            Loss::Regression(RegressionLoss::Squared) => "squared",
            Loss::Regression(RegressionLoss::Absolute) => "absolute",
            Loss::Logistic => "logistic",
            Loss::Softmax => "softmax",
            Loss::Dice { .. } => "dice",
            Loss::Cox => "cox",
        }
    }

    pub(super) fn part(&self, split: Split) -> Result<&Rows, LearnError> {
        let (rows, name) = match split {
            Split::Train => (&self.train, "training"),
            Split::Validation => (&self.validation, "validation"),
            Split::Test => (&self.test, "test"),
        };
        if rows.is_empty() {
            Err(LearnError::NoRows(name))
        } else {
            Ok(rows)
        }
    }

    /// Rows on the scale that `model` is meant for.
    pub(super) fn scaled<'a>(&self, model: &Params, rows: &'a Rows) -> Cow<'a, Rows> {
        match &self.scale {
            None => Cow::Borrowed(rows),
            Some(scale) => scale.apply(model, rows),
        }
    }

    fn params(&self, base: impl FnOnce(&mut [f32]), named: NamedValues) -> Params {
        Params::build(&self.layout, |into| {
            base(into);
            for (name, values) in named {
                let index = self.layout.position(&name).expect("a tensor of this model");
                into[self.layout.range(index)].copy_from_slice(&values);
            }
        })
    }

    fn fit(
        &self,
        start: &Params,
        training: &Training,
        modifier: Option<&GradientModifier<'_>>,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        fits(&self.layout, start)?;
        let optimiser = &training.optimiser;
        let fit = self.model.fit(start, self.loss, optimiser, modifier, seed);
        let (trained, loss) = self.run(fit, start, training, seed, progress)?;
        let trained = self.params(|into| into.copy_from_slice(start.values()), trained);
        Ok(self.update(trained, [("loss".into(), loss)].into()))
    }

    /// Runs a training. Returns the trained values and the loss.
    pub(super) fn run(
        &self,
        mut fit: Box<dyn ModelFit>,
        start: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<(NamedValues, f64), LearnError> {
        let rows = self.scaled(start, &self.train);
        let mut steps = 0;
        let loss = train(
            &mut *fit,
            &rows,
            training,
            self.order_of(seed)?,
            &mut |at| {
                steps = at.step;
                progress(at)
            },
        )?;
        let trained = fit.finish();
        if trained
            .iter()
            .any(|(_, values)| values.iter().any(|value| !value.is_finite()))
        {
            return Err(diverged(steps, &training.optimiser));
        }
        Ok((trained, loss))
    }

    /// The metrics of these outputs of `rows`, which are on the scale of `model`.
    pub(super) fn measured(&self, model: &Params, outputs: &[f64], rows: &Rows) -> Metrics {
        if self.loss == Loss::Cox {
            let basis = self.survival_basis(model, outputs, rows);
            return measure_survival(outputs, rows, basis.as_ref());
        }
        measure(self.loss, outputs, rows, self.unit_of(model))
    }

    /// The size of one unit of the target, as `model` scales it, in the target's own units.
    fn unit_of(&self, model: &Params) -> f64 {
        let scale = self.scale.as_ref();
        scale.map_or(self.unit, |scale| scale.unit(model))
    }

    fn update(&self, shared: Params, values: BTreeMap<String, f64>) -> Update {
        let samples = self.samples();
        Update {
            shared,
            personal: Params::empty(),
            samples,
            metrics: Metrics { samples, values },
        }
    }
}

/// The common scale, where there is one.
fn scale_of(features: usize, target: &Target, standardise: Standardise) -> Option<ColumnScaling> {
    let number = matches!(target, Target::Number { .. } | Target::Numbers { .. });
    matches!(standardise, Standardise::Federation).then(|| ColumnScaling::new(features, number))
}

/// Layout of the models of a task.
pub(crate) fn family_layout(
    model: &dyn Model,
    features: usize,
    target: &Target,
    standardise: Standardise,
) -> Arc<Layout> {
    layout_of(model, scale_of(features, target, standardise).as_ref())
}

/// Layout of a family's models, with the buffers of the common scale.
fn layout_of(model: &dyn Model, scale: Option<&ColumnScaling>) -> Arc<Layout> {
    let mut tensors = model.tensors();
    tensors.extend(scale.map(ColumnScaling::tensors).into_iter().flatten());
    Layout::by_depth(tensors).expect("families name their tensors differently")
}

impl Learner for TableLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        match self.order {
            RowOrder::Script(_) | RowOrder::ScriptOrders(_) => round,
            RowOrder::Drawn | RowOrder::Standing => methods::learner::mixed_seed(silo_seed, round),
        }
    }

    fn initial(&self, seed: u64) -> Params {
        let mut named = match &self.order {
            RowOrder::Script(script) => script.start.clone(),
            RowOrder::ScriptOrders(_) | RowOrder::Drawn | RowOrder::Standing => {
                self.model.initial(seed)
            }
        };
        named.extend(self.scale.iter().flat_map(ColumnScaling::initial));
        self.params(|_| (), named)
    }

    fn train(
        &self,
        start: &Params,
        _personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.fit(start, training, None, seed, progress)
    }

    fn learn(&self, job: Job<'_>, progress: &mut Watch<'_>) -> Result<Update, LearnError> {
        match job.work {
            // Without a change not even a zero is added.
            Work::Train { training, .. } => {
                let modifier = job.work.modifier();
                self.fit(job.start, training, modifier, job.seed, progress)
            }
            Work::RobustFit { radius, ridge } => self.robust_fit(job, radius, ridge),
            Work::ExactFit(fit) => self.exact_fit(job, fit),
            Work::Keep => Ok(Update::kept(job.start, job.personal, self.samples())),
        }
    }

    fn evaluate(
        &self,
        model: &Params,
        _personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        Ok(self.measured(model, &self.model.outputs(model, &rows), &rows))
    }

    fn samples(&self) -> u64 {
        self.train.len() as u64
    }

    fn domain(&self) -> Option<u32> {
        self.domain
    }

    fn row_domains(&self) -> Option<Vec<u32>> {
        match self.domain {
            Some(domain) => Some(vec![domain; self.train.len()]),
            None => self.train.domains().map(<[u32]>::to_vec),
        }
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            summaries: self.scale.is_some().then_some(self as _),
            robust: self.has_robust_losses().then_some(self as _),
            robust_fits: self.has_robust_fits().then_some(self as _),
            exact_fits: self.exact_loss().is_some(),
            gradients: true,
            row_access: Some(self),
            outputs: Some(self),
            classifiers: Some(self),
            stochastic: self.stochastic_widths().map(|_| self as _),
            units: self.has_unit_gradients().then_some(self as _),
            linear_rows: self.exact_loss().map(|_| self as _),
            answers: None,
        }
    }
}

impl Summaries for TableLearner {
    fn summary_layout(&self) -> Arc<Layout> {
        let scale = self.scale.as_ref();
        let scale = scale.expect("summaries are a capability of a common scale only");
        scale.summary_layout().clone()
    }

    fn summarise(&self) -> Result<Params, LearnError> {
        let scale = self.scale.as_ref();
        let scale = scale.expect("summaries are a capability of a common scale only");
        Ok(scale.summarise(self.part(Split::Train)?))
    }
}

#[cfg(test)]
mod tests;
