//! A silo that took no part in the federation, and the model that it is given.

use std::ops::ControlFlow;

use super::{OwnRadius, State};
use crate::learner::{LearnError, Learner, Split, Training, Update};
use crate::params::Params;

/// A silo outside the federation that is to be given a model, from its own rows and the state that
/// the members adopted.
#[derive(Clone, Copy)]
pub struct Newcomer<'a> {
    /// Learner of the silo, [equipped](crate::strategy::Strategy::equip).
    pub learner: &'a dyn Learner,
    /// Personal state of the silo, the initial one.
    pub personal: &'a Params,
    /// Radius of the silo, where losses are robust.
    pub radius: &'a OwnRadius,
    /// Seed of the silo for the next round.
    pub seed: u64,
}

impl Newcomer<'_> {
    /// The model of `state` with the least loss on its training rows: robust within `radius`, where
    /// one is given. See [`least_loss`].
    ///
    /// # Errors
    /// None today; a method that trains to choose may fail.
    pub fn best_model(
        &self,
        state: &State,
        radius: Option<&OwnRadius>,
    ) -> Result<Params, LearnError> {
        let best = least_loss(&state.models, self.learner, self.personal, radius);
        Ok(state.models[best].clone())
    }

    /// Trains once from `start`.
    pub(crate) fn train(&self, start: &Params, training: &Training) -> Result<Update, LearnError> {
        let mut go_on = |_| ControlFlow::Continue(());
        let update = self
            .learner
            .train(start, self.personal, training, self.seed, &mut go_on)?;
        // What goes with a contribution is no part of the model.
        let shared = Params::gather(start.layout(), &[&update.shared]);
        let why = || LearnError::Failed("the training contributes no model".into());
        Ok(Update {
            shared: shared.ok_or_else(why)?,
            ..update
        })
    }
}

/// Place of the model with the least loss on a silo's training rows, the first of equals: robust
/// within `radius` where one is given and the learner knows a robust loss. A silo that cannot
/// measure has no reason to prefer one.
pub fn least_loss(
    models: &[Params],
    learner: &dyn Learner,
    personal: &Params,
    radius: Option<&OwnRadius>,
) -> usize {
    if models.len() < 2 {
        return 0;
    }
    let plain = |model: &Params| {
        let metrics = learner.evaluate(model, personal, Split::Train).ok()?;
        metrics.values.get("loss").copied()
    };
    let loss = |model: &Params| {
        let robust = |radius: &OwnRadius| {
            let radius = radius.get(learner, model, personal)?;
            learner.loss(model, personal, radius, Split::Train)
        };
        let loss = match radius.map(robust) {
            None | Some(Err(LearnError::Missing(_) | LearnError::Failed(_))) => plain(model),
            Some(loss) => loss.ok(),
        };
        loss.filter(|loss| !loss.is_nan()).unwrap_or(f64::INFINITY)
    };
    let mut best = (f64::INFINITY, 0);
    for (place, model) in models.iter().enumerate() {
        let loss = loss(model);
        if loss < best.0 {
            best = (loss, place);
        }
    }
    best.1
}
