//! A strategy whose leads decide otherwise: for simulations of leads that do not decide as they should.

use std::sync::Arc;

use super::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{Decision, Sheet, Strategy};

struct Altered<F>(F);

impl<F: Fn(&Sheet, Decision) -> Decision + Send + Sync> StrategyWrapper for Altered<F> {
    fn decide(&self, sheet: &Sheet, decision: Decision) -> Decision {
        self.0(sheet, decision)
    }
}

/// The strategy, but its leads decide otherwise: `alter` gets the sheet and the decision that the strategy
/// makes of it, and returns the decision that the lead proposes. Members check it as before.
pub fn with_altered_decisions(
    strategy: Arc<dyn Strategy>,
    alter: impl Fn(&Sheet, Decision) -> Decision + Send + Sync + 'static,
) -> Arc<dyn Strategy> {
    Arc::new(WrappedStrategy {
        name: strategy.name(),
        inner: strategy,
        by: Altered(alter),
    })
}
