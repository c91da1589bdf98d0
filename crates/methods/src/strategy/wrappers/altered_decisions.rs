//! A strategy whose leads decide otherwise: for simulations of leads that do not decide as they should.

use std::sync::Arc;

use super::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{Decision, LoadedManifest, Strategy};

struct Altered<F>(F);

impl<F: Fn(&LoadedManifest, Decision) -> Decision + Send + Sync> StrategyWrapper for Altered<F> {
    fn decide(&self, manifest: &LoadedManifest, decision: Decision) -> Decision {
        self.0(manifest, decision)
    }
}

/// The strategy, but its leads decide otherwise: `alter` gets the manifest and the decision that the strategy
/// makes of it, and returns the decision that the lead proposes. Members check it as before.
pub fn with_altered_decisions(
    strategy: Arc<dyn Strategy>,
    alter: impl Fn(&LoadedManifest, Decision) -> Decision + Send + Sync + 'static,
) -> Arc<dyn Strategy> {
    Arc::new(WrappedStrategy {
        name: strategy.name(),
        inner: strategy,
        by: Altered(alter),
    })
}
