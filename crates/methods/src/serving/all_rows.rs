//! One model of the rows of all silos, a reference that no federation may make.

use crate::learner::{Capability, ExactFit, Job, LearnError, Learner, Optimiser, Split, Work};
use crate::params::Params;
use crate::robust::Ridge;
use std::ops::ControlFlow;

use super::alone::Alone;

/// Most numbers, of all rows together, that are fitted exactly: a fit takes about 30 seconds for as many.
const MOST_NUMBERS: u64 = 1_000_000;
/// Most numbers for which a ridge is chosen by cross-validation, which takes fifty fits.
const MOST_NUMBERS_CHOSEN: u64 = 100_000;
/// The ridge of an exact fit of numbers whose columns depend on each other, so that without one
/// there is no single fit: small enough to leave the outputs as they are.
const LEAST_RIDGE: f64 = 1e-6;
/// The ridge of classes that columns separate, where rows are too many for a choice.
const WEAK_RIDGE: f64 = 1e-4;

/// The model of least loss on the rows of `learner`, which are those of all silos, as a training
/// without a federation has it; shows the model after every round.
///
/// A learner with exact fits (linear and logistic models) minimises the loss plus half of the training's
/// weight decay times the squared weights exactly: what a training in steps with that decay would come
/// to in the end. `after_round` sees the one model. Without weight decay such a fit
/// may not exist, where columns separate the labels: then the ridge is chosen by cross-validation on
/// these rows. Or it is not unique, where columns depend on each other: then the ridge is the least
/// that makes it so. All other models, and those of more than a million numbers in all rows, are
/// trained for as many rounds as a federation.
///
/// # Errors
/// [`LearnError`] of the learner.
pub fn model_of_all_rows(
    learner: &dyn Learner,
    alone: &Alone,
    mut after_round: impl FnMut(&Params),
) -> Result<Params, LearnError> {
    match exact(learner, alone) {
        Some(model) => {
            after_round(&model);
            Ok(model)
        }
        None => alone
            .train_watched(learner, after_round)
            .map(|(model, _)| model),
    }
}

/// The exact fit; `None` where the learner has none, the rows are too many, or the solver finds none.
fn exact(learner: &dyn Learner, alone: &Alone) -> Option<Params> {
    if !learner.has(Capability::ExactFits) {
        return None;
    }
    let (training, _) = alone.training()?;
    let (Optimiser::Sgd { weight_decay, .. } | Optimiser::Adam { weight_decay, .. }) =
        training.optimiser;
    let numbers = learner.samples() * learner.layout().trained().len() as u64;
    if numbers > MOST_NUMBERS {
        return None;
    }
    let personal = learner.initial_personal(alone.initial);
    let few = numbers <= MOST_NUMBERS_CHOSEN;
    let more = match has_classes(learner, (&alone.start, &personal)) {
        true if few => Ridge::default(),
        true => Ridge::Fixed(WEAK_RIDGE),
        false => Ridge::Fixed(LEAST_RIDGE),
    };
    let mut fitted = [Ridge::Fixed(weight_decay), more].into_iter().map(|ridge| {
        let fit = ExactFit {
            ridge,
            around_start: false,
        };
        let job = Job::without_draws(&alone.start, &personal, Work::ExactFit(&fit));
        job.run(learner, &mut |_| ControlFlow::Continue(())).ok()
    });
    fitted.find_map(|update| update.map(|update| update.shared))
}

/// Returns whether a model gives its training rows chances of classes.
fn has_classes(learner: &dyn Learner, (model, personal): (&Params, &Params)) -> bool {
    let split = Split::Train;
    let results = learner.outputs().ok().and_then(|outputs| {
        let values = outputs.outputs(model, personal, split).ok()?;
        outputs.row_results(model, personal, &values, split).ok()
    });
    results.is_some_and(|results| results.classes() > 1)
}
