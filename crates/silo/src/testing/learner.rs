//! The learner of test silos: one weight with a known optimum.

use methods::Params;
use methods::learner::{Learner, QuadraticLearner};

/// The values above which measuring a model panics.
const LIMIT: f32 = 1000.0;

/// The learner of the silo with this optimum. With the training of [`config`](super::config) its
/// weight goes half the way; its personal state counts the trainings.
pub(crate) fn learner(optimum: f64) -> QuadraticLearner {
    QuadraticLearner::new(&[optimum])
        .counting()
        .panicking_above(LIMIT)
}

/// The model with this weight.
pub(crate) fn model(weight: f32) -> Params {
    Params::from_values(&learner(0.0).layout(), &[weight])
}

/// The personal state after this number of trainings.
pub(crate) fn trained(times: f32) -> Params {
    Params::from_values(learner(0.0).initial_personal(0).layout(), &[times])
}
