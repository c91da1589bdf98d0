//! A learner whose answers are known: quadratics with a known optimum, for tests and examples.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use learn::{Metric, MetricName, RowCounts, Silo, Study};
use methods::learner::Optimiser;
use methods::{
    Layout, LearnError, Learner, Metrics, Params, Progress, Role, Split, Task, TensorSpec, Update,
};

/// One silo's data are a single point `c`; the loss of a model `w` is `‖w − c‖² / 2`, on every part
/// of the data. An epoch is one gradient step: `w ← w − rate·(w − c)`. The mean of the silos'
/// points minimises the sum of their losses.
pub struct ToyLearner {
    layout: Arc<Layout>,
    centre: Vec<f32>,
    trainings: AtomicU64,
}

impl ToyLearner {
    /// The silo whose point this is.
    pub fn new(centre: &[f32]) -> Self {
        let tensor = TensorSpec::new("w", [centre.len()], Role::Weight);
        let layout = Layout::new(vec![tensor]).expect("one tensor has no equal names");
        Self {
            layout,
            centre: centre.to_vec(),
            trainings: AtomicU64::new(0),
        }
    }

    /// How often it was trained.
    pub fn trainings(&self) -> u64 {
        self.trainings.load(Ordering::Relaxed)
    }

    fn loss(&self, model: &Params) -> f64 {
        let pairs = model.values().iter().zip(&self.centre);
        pairs.map(|(w, c)| f64::from(w - c).powi(2)).sum::<f64>() / 2.0
    }
}

/// A study of toy silos, and the learners themselves.
pub fn toy_study(centres: &[Vec<f32>]) -> (Study, Vec<Arc<ToyLearner>>) {
    let learners: Vec<_> = centres
        .iter()
        .map(|centre| Arc::new(ToyLearner::new(centre)))
        .collect();
    let silo = |(at, learner): (usize, &Arc<ToyLearner>)| Silo {
        name: format!("toy {at}"),
        learner: learner.clone(),
        rows: RowCounts {
            train: 1,
            validation: 0,
            test: 1,
        },
    };
    let silos = learners.iter().enumerate().map(silo).collect();
    let metric = Metric {
        name: MetricName::Loss,
        unit: String::new(),
    };
    (Study { silos, metric }, learners)
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
        task: &Task,
        _: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        let Task::Train(training) = task else {
            return Err(LearnError::Unsupported(
                "a toy has nothing to summarise".into(),
            ));
        };
        let (Optimiser::Sgd { rate, .. } | Optimiser::Adam { rate, .. }) = training.optimiser;
        let mut values = start.values().to_vec();
        for epoch in 1..=training.epochs {
            for (w, c) in values.iter_mut().zip(&self.centre) {
                *w -= rate as f32 * (*w - c);
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

    fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        Ok(Metrics {
            samples: 1,
            values: [("loss".into(), self.loss(model))].into(),
        })
    }

    fn robust_loss(&self, model: &Params, _: f64) -> Result<f64, LearnError> {
        Ok(self.loss(model))
    }

    fn samples(&self) -> u64 {
        1
    }
}
