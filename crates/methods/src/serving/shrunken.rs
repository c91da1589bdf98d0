//! A model of a silo's own rows whose weights are shrunken towards a model of the federation.
//!
//! A ridge regression whose penalty pulls towards the global model in place of 0, or, in Bayes' words, the
//! most probable model with a normal prior around the common one. With a strong ridge it is the global model
//! with an intercept of the silo's own, with a weak one the silo's local model; its own rows say which, by
//! cross-validation.

use std::ops::ControlFlow;

use super::FIT_ROWS;
use super::folds::{loss, without_folds};
use super::rule::{TriedWay, Way, plausible_ridge};
use crate::learner::{Capability, ExactFit, Job, LearnError, Learner, Work};
use crate::params::Params;
use crate::robust::Ridge;

/// Strengths of the ridge that are tried. With the largest the weights hardly leave the global model's.
const RIDGES: [f64; 7] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0];

/// The exact fit to the training rows of `learner` whose ridge pulls the weights towards those of `model`;
/// the intercept is free. The strength of the ridge is the mean of those tried that the folds make plausible.
///
/// # Errors
/// [`LearnError`]: the learner has no exact fits or too many rows for them, its rows cannot be divided, or
/// the solver finds none.
pub fn shrunken(
    learner: &dyn Learner,
    model: &(Params, Params),
    (folds, seed): (usize, u64),
) -> Result<(Params, Params), LearnError> {
    let failed = |why: &str| LearnError::Failed(why.into());
    if !learner.has(Capability::ExactFits) || learner.samples() > FIT_ROWS {
        return Err(failed("there are no exact fits to so many rows"));
    }
    let without = without_folds(learner, folds, seed);
    let without = without.ok_or_else(|| failed("its rows cannot be divided into folds"))?;
    let held_out = without.iter();
    let held_out = held_out.map(|one| learner.samples().saturating_sub(one.samples()) as f64);
    let rows: Vec<f64> = held_out.collect();
    let count = rows.iter().sum();
    let tried = RIDGES.iter().filter_map(|&ridge| {
        let losses = without.iter().map(|one| {
            let fitted = fit(&**one, model, ridge).ok()?;
            loss(&**one, &fitted, count).ok()
        });
        let losses = losses.collect::<Option<_>>()?;
        let way = Way::Fit { radius: 0.0, ridge };
        Some(TriedWay { way, losses })
    });
    let tried: Vec<TriedWay> = tried.collect();
    let ridge = plausible_ridge(&tried, &rows, None);
    fit(
        learner,
        model,
        ridge.ok_or_else(|| failed("no fit was found"))?,
    )
}

fn fit(
    learner: &dyn Learner,
    (model, personal): &(Params, Params),
    ridge: f64,
) -> Result<(Params, Params), LearnError> {
    let fit = ExactFit {
        ridge: Ridge::Fixed(ridge),
        around_start: true,
    };
    let job = Job::without_draws(model, personal, Work::ExactFit(&fit));
    let update = job.run(learner, &mut |_| ControlFlow::Continue(()))?;
    Ok((update.shared, update.personal))
}
