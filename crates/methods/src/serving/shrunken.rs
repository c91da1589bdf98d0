//! A model of a silo's own rows whose weights are shrunken towards a model of the federation.
//!
//! A ridge regression whose penalty pulls towards the global model in place of 0, or, in Bayes' words, the
//! most probable model with a normal prior around the common one. With a strong ridge it is the global model
//! with an intercept of the silo's own, with a weak one the silo's local model; its own rows say which, by
//! cross-validation.

use std::ops::ControlFlow;

use super::FIT_ROWS;
use crate::learner::{Capability, ExactFit, Job, LearnError, Learner, Work};
use crate::params::Params;
use crate::robust::Ridge;

/// The exact fit to the training rows of `learner` whose ridge pulls the weights towards those of `model`;
/// the intercept is free. The strength of the ridge is that which the rows make
/// [plausible](crate::robust::ridge::choose_ridge).
///
/// # Errors
/// [`LearnError`]: the learner has no exact fits or too many rows for them, or the solver finds none.
pub fn shrunken(
    learner: &dyn Learner,
    (model, personal): &(Params, Params),
) -> Result<(Params, Params), LearnError> {
    if !learner.has(Capability::ExactFits) || learner.samples() > FIT_ROWS {
        let why = "the model has no exact fits, or too many rows for them";
        return Err(LearnError::Failed(why.into()));
    }
    let fit = ExactFit {
        ridge: Ridge::default(),
        around_start: true,
    };
    let job = Job::without_draws(model, personal, Work::ExactFit(&fit));
    let update = job.run(learner, &mut |_| ControlFlow::Continue(()))?;
    Ok((update.shared, update.personal))
}
