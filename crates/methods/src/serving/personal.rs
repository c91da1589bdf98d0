//! The parts of a model that a silo keeps to itself, where no round has trained them.
//!
//! A silo that is never drawn to train still adopts the common part of every round. Beside it stand the personal
//! parts of the start, which are drawn at random: what such a model predicts is worth nothing.

use serde::{Deserialize, Serialize};

use crate::learner::Learner;
use crate::params::Params;

/// Origin of the personal parts of a served model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PersonalParts {
    /// The rounds trained them, or the model has none.
    #[default]
    Trained,
    /// No round did, so they were trained around the common part at the end.
    TrainedAtTheEnd,
    /// Nothing did.
    NeverTrained,
}

impl PersonalParts {
    /// Returns what is to be said of them, as the end of a sentence; nothing where the rounds trained them.
    pub fn words(self) -> &'static str {
        match self {
            Self::Trained => "",
            Self::TrainedAtTheEnd => {
                "; no round had drawn this silo, so the parts that it keeps to itself were trained on its own rows at \
                 the end"
            }
            Self::NeverTrained => {
                "; no round has drawn this silo, so the parts that it keeps to itself were never trained: do not use \
                 it"
            }
        }
    }
}

/// Returns whether a model depends on a personal state that is still that of the start, drawn with this seed.
pub fn is_never_trained(
    equipped: &dyn Learner,
    (model, personal): (&Params, &Params),
    seed: u64,
) -> bool {
    let initial = equipped.initial_personal(seed);
    if personal.values().is_empty() || personal.hash() != initial.hash() {
        return false;
    }
    // What is the same for every seed says nothing yet, as a control variate; what the model does not depend on is
    // no part of it.
    let other = equipped.initial_personal(seed.wrapping_add(1));
    equipped.deployed(model, &initial) != equipped.deployed(model, &other)
}
