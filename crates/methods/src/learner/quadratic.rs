//! A learner without rows and with a known optimum, for tests and examples.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    Capabilities, Capability, Classifiers, GradientModifier, Job, LearnError, Learner, Metrics,
    Optimiser, Outputs, Progress, RobustFits, RobustLosses, RowAccess, RowResults, Split,
    Stochastic, StochasticModels, Training, UnitGradients, UnitRows, Update, Watch, Work,
    mixed_seed,
};
use crate::params::{Layout, Params, Role, TensorSpec};
use crate::robust::{RadiusGrid, Ridge};

/// A silo whose loss is `½ Σ hᵢ (wᵢ − cᵢ)²` of the trained values `w`, with a centre `c` and a
/// curvature `h` (1 by default), the same on training and on held-out data.
///
/// An epoch is one gradient step at the optimiser's rate; momentum and decay have no effect. A
/// training adds 1 to every value of a buffer. The learner has every capability except summaries,
/// as if the silo had one row whose outputs are the values of the model. A radius has no effect.
///
/// ```
/// use std::ops::ControlFlow;
/// use methods::learner::QuadraticLearner;
/// use methods::learner::{Optimiser, Training};
/// use methods::{Learner, Params};
///
/// let silo = QuadraticLearner::new(&[4.0]);
/// let optimiser = Optimiser::Sgd { rate: 0.5, momentum: 0.0, weight_decay: 0.0 };
/// let training = Training { epochs: 2, batch: 0, optimiser, decay: None };
/// let start = silo.initial(0);
/// let go_on = &mut |_| ControlFlow::Continue(());
/// let update = silo.train(&start, &Params::empty(), &training, 1, go_on)?;
/// assert_eq!(update.shared.values(), [3.0]);
/// # Ok::<(), methods::LearnError>(())
/// ```
#[derive(Debug, Clone)]
pub struct QuadraticLearner {
    layout: Arc<Layout>,
    /// Positions of the trained values in a model.
    trained: Vec<usize>,
    centre: Vec<f64>,
    curvature: Vec<f64>,
    samples: u64,
    domain: Option<u32>,
    lacks: Vec<Capability>,
    /// The value of an initial model at a position, by the seed.
    initial: fn(u64, usize) -> f32,
    /// The personal state before the first training.
    personal: Params,
    limit: f32,
    trainings: Arc<AtomicU64>,
}

impl QuadraticLearner {
    /// The learner of the silo with this centre. Its model is one tensor `w`.
    pub fn new(centre: &[f64]) -> Self {
        Self::with_layout(&one_tensor("w", centre.len()), centre)
    }

    /// A learner with a model of any layout.
    ///
    /// # Panics
    /// Unless the centre has one number for every value of the tensors that are no buffers.
    pub fn with_layout(layout: &Arc<Layout>, centre: &[f64]) -> Self {
        let tensors = layout.tensors().iter().enumerate();
        let trained = tensors.filter(|(_, tensor)| tensor.role != Role::Buffer);
        let trained: Vec<_> = trained.flat_map(|(at, _)| layout.range(at)).collect();
        assert_eq!(trained.len(), centre.len(), "numbers of the centre");
        Self {
            layout: layout.clone(),
            trained,
            centre: centre.to_vec(),
            curvature: vec![1.0; centre.len()],
            samples: 1,
            domain: None,
            lacks: vec![Capability::Summaries],
            initial: |seed, at| if at == 0 { (seed % 16) as f32 } else { 0.0 },
            personal: Params::empty(),
            limit: f32::INFINITY,
            trainings: Arc::default(),
        }
    }

    /// This learner with these curvatures, in the order of the centre.
    ///
    /// # Panics
    /// Unless there are as many as numbers of the centre.
    #[must_use]
    pub fn with_curvature(mut self, curvature: &[f64]) -> Self {
        assert_eq!(curvature.len(), self.centre.len(), "curvatures");
        self.curvature = curvature.to_vec();
        self
    }

    /// This learner with this number of training rows in [`samples`](Learner::samples).
    #[must_use]
    pub fn with_samples(mut self, samples: u64) -> Self {
        self.samples = samples;
        self
    }

    /// This learner with all rows in this domain.
    #[must_use]
    pub fn in_domain(mut self, domain: Option<u32>) -> Self {
        self.domain = domain;
        self
    }

    /// This learner without these capabilities, for tests of strategies that need them. Without outputs
    /// it measures no accuracy.
    #[must_use]
    pub fn without(mut self, lacks: &[Capability]) -> Self {
        self.lacks.extend(lacks);
        self
    }

    /// This learner with a personal state: one number, `trainings`, to which a training adds 1.
    #[must_use]
    pub fn counting(mut self) -> Self {
        self.personal = Params::zeros(&one_tensor("trainings", 1));
        self
    }

    /// This learner, but the robust loss of a model with a value above `limit` panics, for tests of
    /// callers that go on after a panic.
    #[must_use]
    pub fn panicking_above(mut self, limit: f32) -> Self {
        self.limit = limit;
        self
    }

    /// The centre.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// The curvature, in the order of the centre.
    pub fn curvature(&self) -> &[f64] {
        &self.curvature
    }

    /// The number of finished trainings of this learner and its clones.
    pub fn trainings(&self) -> u64 {
        self.trainings.load(Ordering::Relaxed)
    }

    /// The loss of a model.
    pub fn loss(&self, model: &Params) -> f64 {
        self.loss_of(|at| model.values()[at].into())
    }

    fn loss_of(&self, value: impl Fn(usize) -> f64) -> f64 {
        let each = self.trained.iter().zip(&self.curvature).zip(&self.centre);
        each.map(|((&at, h), c)| 0.5 * h * (value(at) - c) * (value(at) - c))
            .sum()
    }

    /// For every value of the model, the value of the tensor of the same name in `from`.
    fn same_names(&self, from: Option<&Params>) -> Vec<Option<f64>> {
        let mut values = Vec::with_capacity(self.layout.len());
        for tensor in self.layout.tensors() {
            let found = from.and_then(|from| from.tensor(&tensor.name));
            values.extend((0..tensor.len()).map(|at| found.map(|found| found[at].into())));
        }
        values
    }

    fn fits(&self, model: &Params) -> Result<(), LearnError> {
        if *model.layout() == self.layout {
            return Ok(());
        }
        Err(LearnError::Layout {
            expected: self.layout.describe(),
            got: model.layout().describe(),
        })
    }

    /// The result of a training that ended with these values.
    fn update(&self, mut values: Vec<f64>, personal: &Params, metrics: Metrics) -> Update {
        for (at, tensor) in self.layout.tensors().iter().enumerate() {
            if tensor.role == Role::Buffer {
                let buffer = &mut values[self.layout.range(at)];
                buffer.iter_mut().for_each(|value| *value += 1.0);
            }
        }
        self.trainings.fetch_add(1, Ordering::Relaxed);
        let counts = !self.personal.values().is_empty();
        let personal = if counts {
            let counted = |into: &mut [f32]| {
                for (into, before) in into.iter_mut().zip(personal.values()) {
                    *into = before + 1.0;
                }
            };
            Params::build(personal.layout(), counted)
        } else {
            personal.clone()
        };
        let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
        Update {
            shared: Params::from_values(&self.layout, &values),
            personal,
            samples: self.samples,
            metrics,
        }
    }

    fn steps(
        &self,
        job: Job<'_>,
        training: &Training,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let metrics = self.evaluate(job.start, job.personal, Split::Train)?;
        let (Optimiser::Sgd { rate, .. } | Optimiser::Adam { rate, .. }) = training.optimiser;
        let none = GradientModifier::none(job.start);
        let modifier = job.work.modifier().unwrap_or(&none);
        let anchor = self.same_names(Some(modifier.anchor));
        let shift = self.same_names(modifier.shift);
        let frozen = modifier.frozen.map(|frozen| {
            let of_model = |tensor: &&TensorSpec| frozen.position(&tensor.name).is_some();
            Params::zeros(&self.layout.select(of_model))
        });
        let frozen = self.same_names(frozen.as_ref());
        let mut values: Vec<f64> = job
            .start
            .values()
            .iter()
            .map(|&value| value.into())
            .collect();
        for epoch in 1..=training.epochs {
            let each = self.trained.iter().zip(&self.curvature).zip(&self.centre);
            for ((&at, h), c) in each.filter(|((at, _), _)| frozen[**at].is_none()) {
                let w = values[at];
                let mut slope = h * (w - c);
                slope += anchor[at].map_or(0.0, |anchor| modifier.mu * (w - anchor));
                slope += shift[at].unwrap_or(0.0);
                values[at] = w - rate * slope;
            }
            let now = Progress {
                step: epoch.into(),
                steps: training.epochs.into(),
                loss: self.loss_of(|at| values[at]),
            };
            if progress(now).is_break() {
                return Err(LearnError::Stopped);
            }
        }
        Ok(self.update(values, job.personal, metrics))
    }

    /// The minimum of the loss plus `ridge/2·‖w − c‖²`, where c is the start or 0.
    fn fit(&self, job: Job<'_>, ridge: f64, around_start: bool) -> Result<Update, LearnError> {
        let metrics = self.evaluate(job.start, job.personal, Split::Train)?;
        let mut values: Vec<f64> = job
            .start
            .values()
            .iter()
            .map(|&value| value.into())
            .collect();
        for ((&at, h), c) in self.trained.iter().zip(&self.curvature).zip(&self.centre) {
            let centre = if around_start { values[at] } else { 0.0 };
            values[at] = (h * c + ridge * centre) / (h + ridge);
        }
        Ok(self.update(values, job.personal, metrics))
    }
}

fn one_tensor(name: &str, len: usize) -> Arc<Layout> {
    let tensor = TensorSpec::new(name, [len], Role::Weight);
    Layout::new(vec![tensor]).expect("one tensor has no equal names")
}

impl Learner for QuadraticLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    /// The first value is the remainder of the seed by 16, so that seeds differ; the others are 0.
    /// A classifier's votes are all drawn from the seed.
    fn initial(&self, seed: u64) -> Params {
        Params::build(&self.layout, |values| {
            for (at, value) in values.iter_mut().enumerate() {
                *value = (self.initial)(seed, at);
            }
        })
    }

    fn initial_personal(&self, _: u64) -> Params {
        self.personal.clone()
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
        match job.work {
            Work::Train { training, .. } => self.steps(job, training, progress),
            Work::RobustFit { ridge, .. } => self.fit(job, ridge, false),
            Work::ExactFit(fit) => {
                let ridge = match &fit.ridge {
                    Ridge::Fixed(ridge) => *ridge,
                    Ridge::CrossValidated(search) => search.grid.first().copied().unwrap_or(0.0),
                };
                self.fit(job, ridge, fit.around_start)
            }
            Work::Keep => Ok(Update::kept(job.start, job.personal, self.samples)),
        }
    }

    /// The loss; and an accuracy, which falls as the loss grows, if the learner has outputs.
    fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        self.fits(model)?;
        let loss = self.loss(model);
        let mut metrics = Metrics {
            samples: self.samples,
            values: [("loss".to_owned(), loss)].into(),
        };
        if !self.lacks.contains(&Capability::Outputs) {
            let accuracy = ("accuracy".to_owned(), 1.0 / (1.0 + loss));
            metrics.values.extend([accuracy]);
        }
        Ok(metrics)
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn domain(&self) -> Option<u32> {
        self.domain
    }

    fn capabilities(&self) -> Capabilities<'_> {
        let has = |capability| !self.lacks.contains(&capability);
        Capabilities {
            summaries: None,
            robust: has(Capability::RobustLosses).then_some(self as _),
            robust_fits: has(Capability::RobustFits).then_some(self as _),
            exact_fits: has(Capability::ExactFits),
            gradients: has(Capability::ModifiedGradients),
            row_access: has(Capability::RowAccess).then_some(self as _),
            outputs: has(Capability::Outputs).then_some(self as _),
            classifiers: has(Capability::Classifiers).then_some(self as _),
            stochastic: has(Capability::StochasticModels).then_some(self as _),
            units: has(Capability::UnitGradients).then_some(self as _),
            linear_rows: None,
            answers: None,
        }
    }
}

/// Its rows are all equal.
impl UnitGradients for QuadraticLearner {
    fn unit_gradients(
        &self,
        model: &Params,
        _: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError> {
        self.fits(model)?;
        let mut gradient = vec![0.0; model.values().len()];
        for ((&at, h), c) in self.trained.iter().zip(&self.curvature).zip(&self.centre) {
            gradient[at] = h * (f64::from(model.values()[at]) - c);
        }
        (0..self.samples).for_each(|_| with(&gradient));
        Ok(self.loss(model))
    }
}

impl RobustLosses for QuadraticLearner {
    fn robust_loss(&self, model: &Params, _: &Params, _: f64, _: Split) -> Result<f64, LearnError> {
        let within = model.values().iter().all(|value| *value <= self.limit);
        assert!(within, "a value is above the limit");
        Ok(self.loss(model))
    }
}

impl RobustFits for QuadraticLearner {
    /// The first of the grid.
    fn cross_validated_radius(
        &self,
        _: &Params,
        _: &Params,
        search: &RadiusGrid,
    ) -> Result<f64, LearnError> {
        Ok(search.grid.first().copied().unwrap_or(0.0))
    }
}

impl RowAccess for QuadraticLearner {
    /// One row is too few.
    fn holding_out(&self, _: usize, _: usize, _: u64) -> Option<Arc<dyn Learner>> {
        None
    }

    fn batches(&self, training: &Training, _: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        Ok(vec![vec![0]; training.epochs as usize])
    }

    fn only(&self, _: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        (rows == [0]).then(|| Arc::new(self.clone()) as _)
    }
}

impl Outputs for QuadraticLearner {
    fn outputs(&self, model: &Params, _: &Params, _: Split) -> Result<Vec<f64>, LearnError> {
        Ok(model.values().iter().map(|&value| value.into()).collect())
    }

    fn measure(
        &self,
        _: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let values: Vec<f32> = outputs.iter().map(|&value| value as f32).collect();
        let model = Params::from_values(&self.layout, &values);
        self.evaluate(&model, personal, split)
    }

    /// One row, which has no target.
    fn row_results(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<RowResults, LearnError> {
        let metrics = self.measure(model, personal, outputs, split)?;
        let each = metrics.values.into_iter();
        Ok(RowResults {
            scores: each.map(|(name, value)| (name, vec![value])).collect(),
            ..RowResults::default()
        })
    }

    fn mean_target(&self, _: &Params, _: &Params, _: usize) -> Option<Vec<f64>> {
        None
    }

    fn constant(&self, mean_target: &[f64]) -> Vec<f64> {
        mean_target.to_vec()
    }
}

impl Classifiers for QuadraticLearner {
    /// One tensor `votes` with an output per class, whose centre is 1 for the label and 0 otherwise.
    fn classifier(&self, labels: &[u32], classes: usize, _: &[usize]) -> Arc<dyn Learner> {
        let vote = |class| f64::from(u8::from(labels.first() == Some(&class)));
        let votes: Vec<f64> = (0..classes as u32).map(vote).collect();
        Arc::new(Self {
            initial: |seed, at| (mixed_seed(seed, at as u64 + 1) % 7) as f32,
            ..Self::with_layout(&one_tensor("votes", classes), &votes)
        })
    }
}

impl StochasticModels for QuadraticLearner {
    /// There is no representation to make stochastic: the same learner.
    fn stochastic(&self, _: &Stochastic) -> Arc<dyn Learner> {
        Arc::new(self.clone())
    }
}
