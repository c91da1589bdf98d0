//! Parts of an outcome that a silo keeps.

use methods::strategy::least_loss;

use super::{OwnState, Personal};
use crate::config::SiloConfig;
use crate::outcome::Settled;

/// A silo's own state after an outcome. `position` is that of its entry; `trained` its personal state
/// after a training that went into an outcome. A silo without an entry `stays` in its coalition if the
/// outcome numbers the coalitions as before.
pub fn adopt(
    config: &SiloConfig,
    settled: &Settled,
    before: OwnState,
    trained: Option<Personal>,
    position: Option<usize>,
    stays: bool,
) -> OwnState {
    let models = &settled.state.models;
    let personal = trained.unwrap_or(before.personal);
    let assigned = position.and_then(|at| settled.document.assignment.get(at).copied());
    let kept = stays.then_some(before.coalition);
    let has_model = |coalition: &u32| (*coalition as usize) < models.len();
    // A silo without an entry joins the coalition whose model has the least loss on its own rows.
    let best = || {
        let (learner, radius) = (&*config.learner, Some(&config.radius));
        least_loss(models, learner, &personal.params, radius) as u32
    };
    let coalition = assigned
        .filter(has_model)
        .or(kept.filter(has_model))
        .unwrap_or_else(best);
    OwnState {
        round: settled.document.round,
        coalition,
        personal,
    }
}
