//! Scores of the models of a round by a silo, on its own data.

use methods::strategy::Scored;
use methods::{Params, Scores};
use protocol::Hash;
use protocol::effects::WorkError;

use super::{LastTraining, OwnState, RoundBase, participant};
use crate::config::SiloConfig;

/// The losses of these models on the silo's own data. Models of a round are scored with the personal
/// state after the silo's own training for it, if it `trained`. They are asked for one after the other.
///
/// # Errors
/// [`WorkError`]: a model is not here, or none of them can be evaluated.
pub fn score(
    config: &SiloConfig,
    base: &RoundBase,
    own: &OwnState,
    trained: Option<&LastTraining>,
    models: impl IntoIterator<Item = (Hash, Result<Params, WorkError>)>,
) -> Result<Vec<(Hash, f64)>, WorkError> {
    let round = base.next();
    let trained = trained.filter(|trained| trained.round == round);
    let after = trained.map_or(&own.personal, |training| &training.personal);
    let participant = participant(config, round, own.coalition, &own.personal);
    let plan = base.plan(config);
    // The radius follows from the agreed state, not from any contribution.
    if let Some(agreed) = base.state.models.first() {
        let personal = &own.personal.params;
        let radius = participant.radius.get(&*config.learner, agreed, personal);
        radius.map_err(|error| WorkError::Refused(error.to_string()))?;
    }
    let (mut losses, mut unusable) = (Vec::new(), None);
    for (blob, model) in models {
        let model = model?;
        let scored = Scored {
            model: &model,
            personal: &after.params,
            own: trained.is_some_and(|training| training.blob == blob),
        };
        let (strategy, state) = (&config.strategy, &base.state);
        let loss = strategy.score(state, plan, round, participant, scored);
        let loss = loss.map_err(|error| error.to_string());
        let finite = |loss: f64| {
            let why = || format!("expected a finite loss of model {blob}, found {loss}");
            loss.is_finite().then_some(loss).ok_or_else(why)
        };
        // A model that cannot be evaluated gets the largest loss, so that the others are still scored.
        let loss = loss.and_then(finite).unwrap_or_else(|why| {
            unusable.get_or_insert((0, why)).0 += 1;
            Scores::LARGEST
        });
        losses.push((blob, loss));
    }
    match unusable {
        // If no model can be evaluated, the models are not the reason.
        Some((all, why)) if all == losses.len() => Err(WorkError::Refused(why)),
        _ => Ok(losses),
    }
}
