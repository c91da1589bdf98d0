//! A toy learner for tests and examples: a quadratic loss with a known optimum.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use learn::{Metric, MetricName, RowCounts, Silo, Study};
use methods::learner::{
    Capabilities, Classifiers, GradientModifier, ModifiedGradients, Optimiser, Outputs, RobustFits,
    RobustLosses, RowAccess, Stochastic, StochasticModels,
};
use methods::robust::RadiusGrid;
use methods::{
    Layout, LearnError, Learner, Metrics, Params, Progress, Role, Split, TensorSpec, Training,
    Update, Watch,
};

/// A silo's data are a single point `c`. The loss of a model `w` is `‖w − c‖² / 2`, on training and
/// held-out data alike. An epoch is one gradient step: `w ← w − rate·(w − c)`. The mean of the
/// silos' points minimises the sum of their losses. The output of a model for the point is `w`
/// itself.
pub struct ToyLearner {
    layout: Arc<Layout>,
    centre: Vec<f32>,
    trainings: AtomicU64,
}

impl ToyLearner {
    /// The learner of the silo whose point is `centre`; the model is one tensor `w`.
    pub fn new(centre: &[f32]) -> Self {
        let tensor = TensorSpec::new("w", [centre.len()], Role::Weight);
        let layout = Layout::new(vec![tensor]).expect("one tensor has no equal names");
        Self::of(layout, centre)
    }

    /// The same with one tensor for every coordinate, so that strategies can treat some as
    /// personal.
    ///
    /// # Panics
    /// Unless there are as many names as coordinates, all different and ascending.
    pub fn layered(names: &[&str], centre: &[f32]) -> Self {
        let tensor = |name: &&str| TensorSpec::new(*name, [1], Role::Weight);
        let layout = Layout::new(names.iter().map(tensor).collect());
        let layout = layout.expect("different names");
        let ascending = layout.tensors().iter().map(|tensor| &tensor.name).eq(names);
        assert!(ascending && names.len() == centre.len(), "{names:?}");
        Self::of(layout, centre)
    }

    fn of(layout: Arc<Layout>, centre: &[f32]) -> Self {
        Self {
            layout,
            centre: centre.to_vec(),
            trainings: AtomicU64::new(0),
        }
    }

    /// The number of finished trainings.
    pub fn trainings(&self) -> u64 {
        self.trainings.load(Ordering::Relaxed)
    }

    /// For every value of the model, the value that the tensor of the same name has in `from`.
    fn values(&self, from: Option<&Params>) -> Vec<Option<f32>> {
        let tensor = |tensor: &TensorSpec| {
            let values = from.and_then(|from| from.tensor(&tensor.name));
            let at = move |at: usize| values.map(|values| values[at]);
            (0..tensor.len()).map(at).collect::<Vec<_>>()
        };
        self.layout.tensors().iter().flat_map(tensor).collect()
    }

    fn loss(&self, model: &Params) -> f64 {
        let pairs = model.values().iter().zip(&self.centre);
        pairs.map(|(w, c)| f64::from(w - c).powi(2)).sum::<f64>() / 2.0
    }
}

/// A study of toy silos with these points, and their learners.
pub fn toy_study(centres: &[Vec<f32>]) -> (Study, Vec<Arc<ToyLearner>>) {
    let learners: Vec<_> = centres
        .iter()
        .map(|centre| Arc::new(ToyLearner::new(centre)))
        .collect();
    (study(&learners), learners)
}

/// A study of toy silos with these learners.
pub fn study(learners: &[Arc<ToyLearner>]) -> Study {
    let silo = |(at, learner): (usize, &Arc<ToyLearner>)| Silo {
        name: format!("toy {at}"),
        learner: learner.clone(),
        rows: RowCounts {
            train: 1,
            validation: 0,
            test: 1,
        },
        preparation: None,
    };
    let silos = learners.iter().enumerate().map(silo).collect();
    let metric = Metric {
        name: MetricName::Loss,
        unit: String::new(),
    };
    Study {
        silos,
        metric,
        pooled: None,
        notes: Vec::new(),
    }
}

impl Learner for ToyLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, _: u64) -> Params {
        Params::zeros(&self.layout)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let plain = GradientModifier::none(start);
        self.train_modified(start, personal, training, &plain, seed, progress)
    }

    fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        let loss = self.loss(model);
        // A share that falls as the loss grows, for strategies that ask for one.
        let values = [("loss", loss), ("accuracy", 1.0 / (1.0 + loss))];
        Ok(Metrics {
            samples: 1,
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        })
    }

    fn samples(&self) -> u64 {
        1
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            summaries: None,
            robust: Some(self),
            robust_fits: Some(self),
            gradients: Some(self),
            row_access: Some(self),
            outputs: Some(self),
            classifiers: Some(self),
            stochastic: Some(self),
        }
    }
}

impl ModifiedGradients for ToyLearner {
    fn train_modified(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        modifier: &GradientModifier<'_>,
        _: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (Optimiser::Sgd { rate, .. } | Optimiser::Adam { rate, .. }) = training.optimiser;
        let rate = rate as f32;
        let anchor = self.values(Some(modifier.anchor));
        let shift = self.values(modifier.shift);
        let frozen = modifier.frozen.map(|frozen| {
            let zeros = |tensor: &TensorSpec| frozen.position(&tensor.name).is_some();
            Params::zeros(&self.layout.select(|tensor| zeros(tensor)))
        });
        let frozen = self.values(frozen.as_ref());
        let mut values = start.values().to_vec();
        for epoch in 1..=training.epochs {
            for (at, w) in values.iter_mut().enumerate() {
                let towards = anchor[at].map_or(0.0, |anchor| modifier.mu as f32 * (*w - anchor));
                let slope = *w - self.centre[at] + towards + shift[at].unwrap_or(0.0);
                *w -= match frozen[at] {
                    None => rate * slope,
                    Some(_) => 0.0,
                };
            }
            let now = Progress {
                step: epoch.into(),
                steps: training.epochs.into(),
                loss: self.loss(&Params::from_values(&self.layout, &values)),
            };
            if progress(now).is_break() {
                return Err(LearnError::Stopped);
            }
        }
        self.trainings.fetch_add(1, Ordering::Relaxed);
        let shared = Params::from_values(&self.layout, &values);
        let loss = self.loss(&shared);
        let metrics = Metrics {
            samples: 1,
            values: [("loss".into(), loss)].into(),
        };
        Ok(Update {
            shared,
            personal: personal.clone(),
            samples: 1,
            metrics,
        })
    }
}

impl RobustLosses for ToyLearner {
    /// The radius has no effect.
    fn robust_loss(&self, model: &Params, _: &Params, _: f64, _: Split) -> Result<f64, LearnError> {
        Ok(self.loss(model))
    }
}

impl RobustFits for ToyLearner {
    /// Minimises `‖w − c‖² / 2 + ridge/2·‖w‖²`; the radius has no effect.
    fn robust_fit(
        &self,
        _: &Params,
        personal: &Params,
        _: f64,
        ridge: f64,
    ) -> Result<Update, LearnError> {
        let shrunk = self.centre.iter().map(|c| c / (1.0 + ridge as f32));
        let fitted = Params::from_values(&self.layout, &shrunk.collect::<Vec<_>>());
        Ok(Update::kept(&fitted, personal, 1))
    }

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

impl RowAccess for ToyLearner {
    /// One point is too few.
    fn holding_out(&self, _: usize, _: usize, _: u64) -> Option<Arc<dyn Learner>> {
        None
    }

    fn batches(&self, training: &Training, _: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        Ok(vec![vec![0]; training.epochs as usize])
    }

    fn only(&self, _: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        (rows == [0]).then(|| Arc::new(Self::of(self.layout.clone(), &self.centre)) as _)
    }
}

impl Outputs for ToyLearner {
    fn outputs(&self, model: &Params, _: &Params, _: Split) -> Result<Vec<f64>, LearnError> {
        Ok(model.values().iter().map(|&value| value.into()).collect())
    }

    fn measure(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let values: Vec<f32> = outputs.iter().map(|&value| value as f32).collect();
        let model = Params::from_values(model.layout(), &values);
        self.evaluate(&model, personal, split)
    }
}

impl Classifiers for ToyLearner {
    /// One output per class, trained towards 1 for the label and 0 otherwise.
    fn classifier(&self, labels: &[u32], classes: usize, _: &[usize]) -> Arc<dyn Learner> {
        let vote = |class| f32::from(u8::from(labels.first() == Some(&class)));
        let votes: Vec<f32> = (0..classes as u32).map(vote).collect();
        Arc::new(Self::new(&votes))
    }
}

impl StochasticModels for ToyLearner {
    /// There is no representation to make stochastic: the same learner.
    fn stochastic(&self, _: &Stochastic) -> Arc<dyn Learner> {
        Arc::new(Self::of(self.layout.clone(), &self.centre))
    }
}
