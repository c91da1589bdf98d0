//! A silo with rows of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use methods::learner::Stochastic;
use methods::robust::network::{self, LayersError};
use methods::robust::radius::{RadiusSearch, choose_radius};
use methods::robust::{self, FitConfig, Norm, Radius, RobustError, RobustLoss};
use methods::{
    Layout, LearnError, Learner, Matrix, Metrics, Params, Progress, Pull, Split, Task, TensorSpec,
    Training, Update,
};
use serde::{Deserialize, Serialize};

use super::fits;
use super::scale::Scale;
use super::stochastic::StochasticLearner;
use super::training::{Order, batches, diverged, train};
use crate::data::{Prepared, Rows, Standardise, Target};
use crate::metrics::measure;
use crate::models::{Fit, Loss, Model, Named, RegressionLoss};

/// How the distance between rows is measured in robust losses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RobustConfig {
    /// The norm on (standardised) features, and target in a regression; `"l2"` by default.
    pub norm: Norm,
    /// What changing a label costs (κ in CS-RCFL, eqs. (14)–(15)), above 0; `inf` where labels are
    /// certain; 1 by default.
    pub label_cost: f64,
}

impl Default for RobustConfig {
    fn default() -> Self {
        Self {
            norm: Norm::default(),
            label_cost: 1.0,
        }
    }
}

/// Start weights and the order of rows by round, given instead of drawn.
pub(crate) struct Script {
    pub(crate) start: Named,
    /// For round 1, 2, …
    pub(crate) orders: Vec<Vec<u32>>,
}

/// Any model family on a silo's rows: trains, evaluates, summarises. Nothing is personal.
#[derive(Clone)]
pub struct TableLearner {
    train: Arc<Rows>,
    validation: Arc<Rows>,
    test: Arc<Rows>,
    unit: f64,
    model: Arc<dyn Model>,
    loss: Loss,
    scale: Option<Scale>,
    robust: RobustConfig,
    way: Way,
    domain: Option<u32>,
    layout: Arc<Layout>,
}

/// In which order it trains on its rows.
#[derive(Clone)]
enum Way {
    /// Drawn from the seed.
    Drawn,
    /// By the script.
    Script(Arc<Script>),
    /// The same, for a model that does not start where the script's does.
    Orders(Arc<Script>),
    /// As they stand.
    Standing,
}

impl TableLearner {
    pub(crate) fn new(
        data: Prepared,
        model: Box<dyn Model>,
        loss: Loss,
        standardise: Standardise,
        robust: RobustConfig,
    ) -> Self {
        let number = matches!(data.target, Target::Number { .. });
        let scale = matches!(standardise, Standardise::Federation)
            .then(|| Scale::new(data.features, number));
        let mut tensors = model.tensors();
        tensors.extend(scale.iter().flat_map(Scale::tensors).collect::<Vec<_>>());
        let layout = Layout::new(tensors).expect("families name their tensors differently");
        let Prepared {
            train,
            validation,
            test,
            unit,
            ..
        } = data;
        Self {
            train,
            validation,
            test,
            unit,
            model: model.into(),
            loss,
            scale,
            robust,
            way: Way::Drawn,
            domain: None,
            layout,
        }
    }

    /// A learner with the training rows of all of these, which are of one task; each row as its own
    /// silo scales it. Nothing is held out, and the rows are of no one domain.
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
            scale: first.scale.clone(),
            robust: first.robust,
            way: Way::Drawn,
            domain: None,
            layout: first.layout.clone(),
        }
    }

    /// With start weights and orders given; the seed of a training is then the round.
    pub(crate) fn follow(mut self, script: Script) -> Self {
        self.way = Way::Script(Arc::new(script));
        self
    }

    /// With the domain that its rows are said to be of.
    pub(crate) fn within(mut self, domain: Option<u32>) -> Self {
        self.domain = domain;
        self
    }

    pub(super) fn part(&self, split: Split) -> Result<&Rows, LearnError> {
        let (rows, name) = match split {
            Split::Train => (&self.train, "training"),
            Split::Validation => (&self.validation, "validation"),
            Split::Test => (&self.test, "test"),
        };
        if rows.len() == 0 {
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

    fn params(&self, base: impl FnOnce(&mut [f32]), named: Named) -> Params {
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
        pull: Option<&Pull<'_>>,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        fits(&self.layout, start)?;
        let optimiser = &training.optimiser;
        let fit = self.model.fit(start, self.loss, optimiser, pull, seed);
        let (trained, loss) = self.run(fit, start, training, seed, progress)?;
        let trained = self.params(|into| into.copy_from_slice(start.values()), trained);
        Ok(self.update(trained, [("loss".into(), loss)].into()))
    }

    /// Carries a training through; the trained values, and the loss.
    pub(super) fn run(
        &self,
        mut fit: Box<dyn Fit>,
        start: &Params,
        training: &Training,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(Named, f64), LearnError> {
        let rows = self.scaled(start, &self.train);
        let mut steps = 0;
        let loss = train(&mut *fit, &rows, training, self.order(seed)?, &mut |at| {
            steps = at.step;
            progress(at)
        })?;
        let trained = fit.finish();
        if trained
            .iter()
            .any(|(_, values)| values.iter().any(|value| !value.is_finite()))
        {
            return Err(diverged(steps, &training.optimiser));
        }
        Ok((trained, loss))
    }

    /// Widths from the features to the classes, where dense layers sort rows into classes.
    pub(super) fn class_widths(&self) -> Option<&[usize]> {
        self.model.widths().filter(|_| self.loss == Loss::Softmax)
    }

    /// What the model carries of the common scale, and where that starts.
    pub(super) fn scale_tensors(&self) -> Vec<TensorSpec> {
        self.scale.iter().flat_map(Scale::tensors).collect()
    }

    pub(super) fn scale_initial(&self) -> Named {
        self.scale.iter().flat_map(Scale::initial).collect()
    }

    /// The metrics of these outputs of `rows`, which are on the scale of `model`.
    pub(super) fn measured(&self, model: &Params, outputs: &[f64], rows: &Rows) -> Metrics {
        let scale = self.scale.as_ref();
        let unit = scale.map_or(self.unit, |scale| scale.unit(model));
        measure(self.loss, outputs, rows, unit)
    }

    /// The order of rows that goes with a seed.
    fn order(&self, seed: u64) -> Result<Order<'_>, LearnError> {
        let script = match &self.way {
            Way::Drawn => return Ok(Order::Seeded(seed)),
            Way::Standing => return Ok(Order::Standing),
            Way::Script(script) | Way::Orders(script) => script,
        };
        let given = seed
            .checked_sub(1)
            .and_then(|at| script.orders.get(at as usize));
        let given = given.ok_or_else(|| {
            let rounds = script.orders.len();
            LearnError::Unsupported(format!(
                "the order of rows is given for rounds 1 to {rounds}, not for {seed}"
            ))
        })?;
        Ok(Order::Given(given))
    }

    /// The same silo with other rows in one part.
    fn with(&self, split: Split, rows: Rows) -> Self {
        let mut other = self.clone();
        let part = match split {
            Split::Train => &mut other.train,
            Split::Validation => &mut other.validation,
            Split::Test => &mut other.test,
        };
        *part = Arc::new(rows);
        other
    }

    /// The same silo with some rows of one part alone.
    pub(super) fn picked(&self, split: Split, rows: &[u32]) -> Option<Self> {
        let part = self.part(split).ok()?;
        if rows.iter().any(|&row| row as usize >= part.len()) {
            return None;
        }
        let mut other = self.with(split, part.pick(rows));
        if split == Split::Train {
            other.way = Way::Standing;
        }
        Some(other)
    }

    /// The same silo with a fold of its training rows in the place of those for validation.
    pub(super) fn without_fold(&self, fold: usize, folds: usize, seed: u64) -> Option<Self> {
        let (rest, out) = self.train.without_fold(fold, folds, seed)?;
        let mut other = self.with(Split::Train, rest).with(Split::Validation, out);
        // A script is about all rows.
        other.way = Way::Drawn;
        Some(other)
    }

    /// The worst loss within `radius`: exact for a linear output, an upper bound for a network.
    fn worst(
        &self,
        model: &Params,
        outputs: &[f64],
        targets: &[f32],
        radius: f64,
    ) -> Result<Result<RobustLoss, RobustError>, LearnError> {
        let RobustConfig { norm, label_cost } = self.robust;
        let each = outputs.iter().zip(targets);
        let residuals = || -> Vec<f64> { each.clone().map(|(f, &y)| f64::from(y) - f).collect() };
        let margins = || -> Vec<f64> {
            let margin = |(f, &y): (&f64, &f32)| if y > 0.5 { *f } else { -f };
            each.clone().map(margin).collect()
        };
        let layers = || self.model.layers(model).ok_or_else(no_loss);
        let slope = |slope: Result<f64, LayersError>| {
            slope.map_err(|error| LearnError::Unsupported(error.to_string()))
        };
        Ok(match (self.loss, self.model.slope(model)) {
            (Loss::Regression(RegressionLoss::Absolute), Some(theta)) => {
                robust::linear(&residuals(), &theta, radius, norm)
            }
            (Loss::Regression(RegressionLoss::Absolute), None) => {
                let layers = layers()?;
                // The bound is for rows with one number to hit.
                if layers.last().is_some_and(|last| last.rows() > 1) {
                    return Err(no_loss());
                }
                let slope = slope(network::slope(&layers, norm))?;
                network::absolute(&residuals(), slope, radius, norm)
            }
            (Loss::Logistic, Some(theta)) => {
                robust::logistic(&margins(), &theta, radius, label_cost, norm)
            }
            (Loss::Logistic, None) => {
                let slope = slope(network::slope(&layers()?, norm))?;
                network::logistic(&margins(), slope, radius, label_cost)
            }
            (Loss::Softmax, _) => {
                let slope = slope(network::slope_between(&layers()?, norm))?;
                let labels: Vec<usize> = targets.iter().map(|&class| class as usize).collect();
                network::cross_entropy(outputs, &labels, slope, radius, label_cost)
            }
            (Loss::Regression(RegressionLoss::Squared) | Loss::Dice { .. }, _) => {
                return Err(no_loss());
            }
        })
    }

    /// The training rows, as `model` scales them, and what is fitted to them robustly.
    fn to_fit(
        &self,
        model: &Params,
        ridge: f64,
    ) -> Result<(robust::Samples, FitConfig), LearnError> {
        let rows = self.scaled(model, self.part(Split::Train)?);
        let RobustConfig { norm, label_cost } = self.robust;
        if self.model.slope(model).is_none() {
            return Err(no_fit());
        }
        let features = Matrix::from_fn(rows.len(), rows.width(), |row, column| {
            f64::from(rows.features(row)[column])
        });
        let targets: Vec<f64> = rows.targets().iter().map(|&y| f64::from(y)).collect();
        let (rows, loss) = match self.loss {
            Loss::Regression(RegressionLoss::Absolute) => (
                robust::Samples::new(features, targets),
                robust::Loss::Absolute,
            ),
            Loss::Logistic => (
                robust::Samples::labelled(features, &targets),
                robust::Loss::Logistic { label_cost },
            ),
            Loss::Regression(RegressionLoss::Squared) | Loss::Softmax | Loss::Dice { .. } => {
                return Err(no_fit());
            }
        };
        let rows = rows.map_err(|error| LearnError::Unsupported(error.to_string()))?;
        let config = FitConfig {
            loss,
            norm,
            ridge,
            intercept: true,
        };
        Ok((rows, config))
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

fn no_loss() -> LearnError {
    LearnError::Unsupported(
        "a robust loss is known for absolute loss and for classes, of models whose layers are \
         dense: use one of these, or radius 0"
            .into(),
    )
}

fn no_fit() -> LearnError {
    LearnError::Unsupported(
        "robust fits are known for linear models with absolute loss and for logistic models: use \
         one of these, or a radius that is a number"
            .into(),
    )
}

impl Learner for TableLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn summary_layout(&self) -> Option<Arc<Layout>> {
        self.scale
            .as_ref()
            .map(|scale| scale.summary_layout().clone())
    }

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        match self.way {
            Way::Script(_) | Way::Orders(_) => round,
            Way::Drawn | Way::Standing => methods::learner::mixed_seed(silo_seed, round),
        }
    }

    fn initial(&self, seed: u64) -> Params {
        let mut named = match &self.way {
            Way::Script(script) => script.start.clone(),
            Way::Orders(_) | Way::Drawn | Way::Standing => self.model.initial(seed),
        };
        named.extend(self.scale_initial());
        self.params(|_| (), named)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        task: &Task,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        match task {
            Task::Train(training) => self.fit(start, training, None, seed, progress),
            Task::Keep => Ok(Update::kept(start, personal, self.samples())),
            Task::Summarise => {
                let Some(scale) = &self.scale else {
                    return Err(LearnError::Unsupported(
                        "nothing is to be summarised: only `standardise = \"federation\"` is a common step".into(),
                    ));
                };
                let summary = scale.summarise(self.part(Split::Train)?);
                Ok(self.update(summary, BTreeMap::new()))
            }
        }
    }

    fn train_pulled(
        &self,
        start: &Params,
        _personal: &Params,
        training: &Training,
        pull: &Pull<'_>,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        // Not even a zero is added where nothing changes.
        let pull = (!pull.is_plain()).then_some(pull);
        self.fit(start, training, pull, seed, progress)
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

    fn robust_loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
    ) -> Result<f64, LearnError> {
        self.robust_loss_on(model, personal, radius, Split::Train)
    }

    fn robust_loss_on(
        &self,
        model: &Params,
        _personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        let outputs = self.model.outputs(model, &rows);
        if radius == 0.0 {
            let mut slopes = vec![0.0; outputs.len()];
            return Ok(self.loss.mean(&outputs, rows.targets(), &mut slopes));
        }
        let robust = self.worst(model, &outputs, rows.targets(), radius)?;
        robust
            .map(|robust| robust.loss)
            .map_err(|error| LearnError::Unsupported(error.to_string()))
    }

    fn radius(&self, model: &Params, _personal: &Params, rule: &Radius) -> Result<f64, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.part(Split::Train)?.len();
        match rule {
            Radius::Fixed(radius) => Ok(*radius),
            Radius::ByRows(two) => Ok(two.radius(rows)),
            Radius::CrossValidated(search) => {
                let (rows, config) = self.to_fit(model, 0.0)?;
                let search = RadiusSearch {
                    radii: search.grid.clone(),
                    folds: search.folds.min(rows.len()),
                    // The rows themselves are in no order that others know.
                    seed: 0,
                    one_standard_error: search.one_standard_error,
                };
                let chosen = choose_radius(&rows, &config, &search);
                chosen
                    .map(|chosen| chosen.radius)
                    .map_err(|error| LearnError::Unsupported(format!("the radius: {error}")))
            }
        }
    }

    fn robust_fit(
        &self,
        start: &Params,
        personal: &Params,
        radius: f64,
        ridge: f64,
    ) -> Result<Update, LearnError> {
        fits(&self.layout, start)?;
        let (rows, config) = self.to_fit(start, ridge)?;
        let fit = robust::fit(&rows, radius, &config)
            .map_err(|error| LearnError::Unsupported(format!("the robust fit: {error}")))?;
        let fitted = self.model.of_linear(&fit.model).ok_or_else(no_fit)?;
        let fitted = self.params(|into| into.copy_from_slice(start.values()), fitted);
        Ok(Update {
            personal: personal.clone(),
            ..self.update(fitted, [("loss".into(), fit.robust.empirical)].into())
        })
    }

    fn samples(&self) -> u64 {
        self.train.len() as u64
    }

    fn domain(&self) -> Option<u32> {
        self.domain
    }

    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        Some(Arc::new(self.without_fold(fold, folds, seed)?))
    }

    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        batches(&self.train, training, self.order(seed)?)
    }

    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        Some(Arc::new(self.picked(split, rows)?))
    }

    fn outputs(
        &self,
        model: &Params,
        _personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        Ok(self.model.outputs(model, &rows))
    }

    fn measure(
        &self,
        model: &Params,
        _personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        Ok(self.measured(model, outputs, &rows))
    }

    fn output_layer(&self) -> Option<String> {
        self.model.output_layer()
    }

    fn classifier(
        &self,
        labels: &[u32],
        classes: usize,
        hidden: &[usize],
    ) -> Option<Arc<dyn Learner>> {
        let features = self.train.width();
        let model = self.model.classifier(features, classes, hidden);
        let scale = self.scale.as_ref().map(Scale::of_labelled);
        let mut tensors = model.tensors();
        tensors.extend(scale.iter().flat_map(Scale::tensors).collect::<Vec<_>>());
        let layout = Layout::new(tensors).expect("families name their tensors differently");
        let none = |rows: &Rows| Arc::new(rows.labelled(&vec![0; rows.len()]));
        let way = match &self.way {
            Way::Script(script) => Way::Orders(script.clone()),
            other => other.clone(),
        };
        Some(Arc::new(Self {
            train: Arc::new(self.train.labelled(labels)),
            validation: none(&self.validation),
            test: none(&self.test),
            unit: 1.0,
            model,
            loss: Loss::Softmax,
            scale,
            robust: self.robust,
            way,
            domain: self.domain,
            layout,
        }))
    }

    fn stochastic(&self, options: &Stochastic) -> Option<Arc<dyn Learner>> {
        Some(Arc::new(StochasticLearner::new(self, *options)?))
    }
}

#[cfg(test)]
mod tests;
