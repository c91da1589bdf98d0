//! A learner with one weight and a known optimum.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use methods::learner::RobustLosses;
use methods::{
    Capabilities, Layout, LearnError, Learner, Metrics, Params, Progress, Role, Split, TensorSpec,
    Training, Update, Watch,
};

/// Loss `(w − optimum)²`; a training moves half the way to the optimum. The personal state counts the
/// trainings.
pub(crate) struct Towards(pub(crate) f64);

static LAYOUT: LazyLock<Arc<Layout>> =
    LazyLock::new(|| Layout::new(vec![TensorSpec::new("w", [1], Role::Weight)]).unwrap());

impl Towards {
    pub(crate) fn model(weight: f32) -> Params {
        Params::from_values(&LAYOUT, &[weight])
    }

    /// One training from `weight`.
    pub(crate) fn step(&self, weight: f32) -> Params {
        Self::model((weight + self.0 as f32) / 2.0)
    }

    fn loss(&self, model: &Params) -> f64 {
        (f64::from(model.values()[0]) - self.0).powi(2)
    }
}

impl Learner for Towards {
    fn layout(&self) -> Arc<Layout> {
        LAYOUT.clone()
    }

    fn initial(&self, seed: u64) -> Params {
        Self::model(seed as f32)
    }

    fn initial_personal(&self, _: u64) -> Params {
        Self::model(0.0)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        _: &Training,
        _: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let loss = self.loss(start);
        if progress(Progress {
            step: 1,
            steps: 1,
            loss,
        })
        .is_break()
        {
            return Err(LearnError::Stopped);
        }
        Ok(Update {
            shared: self.step(start.values()[0]),
            personal: Self::model(personal.values()[0] + 1.0),
            samples: 1,
            metrics: Metrics {
                samples: 1,
                values: BTreeMap::from([("loss".into(), loss)]),
            },
        })
    }

    fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        let values = BTreeMap::from([("loss".into(), self.loss(model))]);
        Ok(Metrics { samples: 1, values })
    }

    fn samples(&self) -> u64 {
        1
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            robust: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl RobustLosses for Towards {
    /// Panics on one particular model, for tests of panics.
    fn robust_loss(&self, model: &Params, _: &Params, _: f64, _: Split) -> Result<f64, LearnError> {
        assert!(model.values()[0] < 1000.0, "that far out");
        Ok(self.loss(model))
    }
}
