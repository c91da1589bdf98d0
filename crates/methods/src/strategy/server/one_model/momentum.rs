//! Server momentum (FedAvgM; Hsu, Qi & Brown 2019, *Measuring the Effects of Non-Identical Data
//! Distribution for Federated Visual Classification*, section 4.3): the mean change of a round is
//! added to a velocity, and the global model moves by the velocity.

use super::one_model;
use crate::params::Params;
use crate::strategy::wrappers::strategy_wrapper::StrategyWrapper;
use crate::strategy::{LoadedManifest, Outcome, SettleError, State};

/// Name of the velocity in the state.
const VELOCITY: &str = "momentum.velocity";

/// `v ← βv + θ̄ − θ` and `θ ← θ + v`, where `θ̄` is the mean of a round. Buffers are those of the mean.
#[derive(Clone)]
pub(crate) struct ServerMomentum {
    /// β in [0, 1).
    pub(crate) beta: f64,
}

impl StrategyWrapper for ServerMomentum {
    fn adopt(
        &self,
        before: &State,
        _: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let (start, mean) = one_model(&before.models, &after.state.models)?;
        let layout = start.layout();
        let former = before.tables.get(VELOCITY).and_then(|kept| kept.first());
        let (mut model, mut velocity) = (mean.values().to_vec(), vec![0.0; layout.len()]);
        for at in layout.trained_ranges().flatten() {
            let former = former.map_or(0.0, |former| f64::from(former.values()[at]));
            let start = f64::from(start.values()[at]);
            let moved = self.beta * former + (f64::from(model[at]) - start);
            velocity[at] = moved as f32;
            model[at] = (start + moved) as f32;
        }
        let [model, velocity] = [model, velocity].map(|all| Params::from_values(layout, &all));
        let mut after = after.clone();
        after.state.models = vec![model];
        after.state.tables.insert(VELOCITY.into(), vec![velocity]);
        Ok(after)
    }
}
