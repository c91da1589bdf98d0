//! A model of the federation, adapted to the rows of one silo after the last round.
//!
//! The released model does not change, and what follows from it and the own rows stays at the silo: a bound on
//! the release stays as it is.

use super::Candidate;
use super::intercept::with_own_intercept;
use super::shrunken::shrunken;
use crate::learner::{LearnError, Learner};
use crate::params::Params;

/// Adaptation of a model of the federation to a silo's own rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adaptation {
    /// With an intercept of its own, see [`with_own_intercept`].
    OwnIntercept,
    /// By an exact fit to its own rows whose weights are shrunken towards the model, see [`shrunken`].
    Shrunken,
}

impl Adaptation {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::OwnIntercept, Self::Shrunken];

    /// The candidate for serving that it makes.
    pub fn candidate(self) -> Candidate {
        match self {
            Self::OwnIntercept => Candidate::OwnIntercept,
            Self::Shrunken => Candidate::Shrunken,
        }
    }

    /// The model, adapted to the training rows of `learner`.
    ///
    /// # Errors
    /// [`LearnError`]: the silo has no training rows, or its learner cannot adapt the model so.
    pub fn adapt(
        self,
        learner: &dyn Learner,
        model: &(Params, Params),
    ) -> Result<(Params, Params), LearnError> {
        if learner.samples() == 0 {
            return Err(LearnError::NoRows("train"));
        }
        match self {
            Self::OwnIntercept => with_own_intercept(learner, model),
            Self::Shrunken => shrunken(learner, model),
        }
    }
}
