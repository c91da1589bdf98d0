//! What is learned and how, as the bytes that the charter holds.

use learn::TaskConfig;
use methods::strategy::StrategyConfig;
use protocol::codec;

use crate::canonical::{Canonical, CanonicalError};

/// The part of an agreement that the protocol does not look into.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work<'a> {
    /// What is learned.
    pub task: &'a TaskConfig,
    /// How.
    pub strategy: &'a StrategyConfig,
    /// Bound on the norm of a contribution; `None`: any.
    pub norm: Option<f64>,
    /// Seed of the initial model.
    pub seed: u64,
}

impl Work<'_> {
    /// The canonical bytes: for [`Charter::work`](protocol::charter::Charter::work).
    ///
    /// # Errors
    /// [`CanonicalError`]: a task or strategy with a table whose keys are no texts.
    pub fn encode(&self) -> Result<Vec<u8>, CanonicalError> {
        let table = Canonical::table([
            ("task", Canonical::of(self.task)?),
            ("strategy", Canonical::of(self.strategy)?),
            ("norm", Canonical::of(&self.norm)?),
            ("seed", Canonical::of(&self.seed)?),
        ]);
        Ok(codec::encode(&table))
    }
}
