//! A silo with canaries among its units.

use std::sync::Arc;

use methods::learner::{
    Capabilities, LearnError, Learner, Metrics, Split, Training, UnitGradients, UnitRows, Update,
    Watch,
};
use methods::params::{Layout, Params};

/// A learner that has canaries beside its own rows: units whose gradient is one large number. It gives gradients of
/// units and nothing else beyond the core.
pub(super) struct PlantedCanaries {
    pub(super) inner: Arc<dyn Learner>,
    /// The coordinate of each canary.
    pub(super) coordinates: Vec<usize>,
    /// The number.
    pub(super) length: f64,
}

impl Learner for PlantedCanaries {
    fn layout(&self) -> Arc<Layout> {
        self.inner.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.inner.initial(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.inner.train(start, personal, training, seed, progress)
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.inner.evaluate(model, personal, split)
    }

    fn samples(&self) -> u64 {
        self.inner.samples() + self.coordinates.len() as u64
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            units: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl UnitGradients for PlantedCanaries {
    fn unit_gradients(
        &self,
        model: &Params,
        unit: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError> {
        let loss = self.inner.units()?.unit_gradients(model, unit, with)?;
        let mut gradient = vec![0.0; model.values().len()];
        for &coordinate in &self.coordinates {
            gradient[coordinate] = self.length;
            with(&gradient);
            gradient[coordinate] = 0.0;
        }
        Ok(loss)
    }
}
