//! The learning part of an agreement as the bytes that the charter holds.

use learn::TaskConfig;
use methods::strategy::StrategyConfig;
use protocol::codec;

use crate::canonical::{Canonical, CanonicalError};

/// The part of an agreement that the protocol does not look into.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work<'a> {
    /// The learning task.
    pub task: &'a TaskConfig,
    /// The strategy with its options.
    pub strategy: &'a StrategyConfig,
    /// Largest ℓ2 norm of a contributed model; `None` for no bound.
    pub max_model_norm: Option<f64>,
    /// Seed of the initial model.
    pub seed: u64,
}

impl Work<'_> {
    /// The canonical bytes, for [`Charter::work`](protocol::charter::Charter::work).
    ///
    /// # Errors
    /// [`CanonicalError`]: a task or strategy with a table whose keys are not texts.
    pub fn encode(&self) -> Result<Vec<u8>, CanonicalError> {
        let mut strategy = Canonical::of(self.strategy)?;
        if let Canonical::Table(options) = &mut strategy {
            let scale = Canonical::Bool(self.strategy.standardise);
            options.insert("standardise".into(), scale);
        }
        let table = Canonical::table([
            ("task", Canonical::of(self.task)?),
            ("strategy", strategy),
            ("norm", Canonical::of(&self.max_model_norm)?),
            ("seed", Canonical::of(&self.seed)?),
        ]);
        Ok(codec::encode(&table))
    }
}
