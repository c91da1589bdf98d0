//! Chooses the model that a silo serves, on its own rows.
//!
//! A silo that is unlike the others may do better with a model of its own than with the model of
//! the federation. So it compares candidates: the best model that it can train alone, one that it fits
//! robustly, the model of its coalition, that model tuned on its own rows, and the mean of all
//! coalitions' models; where rounds have noise, also the model of its coalition with an
//! [intercept of its own](with_own_intercept), and a fit to its own rows [shrunken](fn@shrunken) towards it.
//! It serves another model than its own only where the advantage is larger than its standard error. No data leave the silo.
//!
//! Validation rows, if the task holds some out, serve to compare the candidates: no model has seen
//! them. Elsewhere they are compared by k-fold cross-validation on the training rows. Whatever the
//! silo trains for this never sees the fold that it is measured on: models trained alone, tuned
//! models, and the personal state beside a coalition's model (personal layers, a model of its own),
//! which is trained anew around that model without the fold. The coalition's model itself was trained
//! on the silo's rows, among others, so its loss there is too low. How much a training on these rows
//! lowers it is known for the model that the silo trains alone: its loss with the fold and without.
//! The silo's share of that difference, one in the number of members, is added to the loss of the
//! coalition's model. A model that no other silo shares is not compared by cross-validation.
//!
//! If the measurements of all silos are known, as in a simulation, or sums of them, as where members of a federation
//! [agreed](TogetherRounds) to open these, they decide [`Together`].

mod adapted;
mod adopted;
mod all_rows;
mod alone;
mod compared;
mod comparison;
mod folds;
mod intercept;
mod local;
mod personal;
mod rule;
mod shrunken;
mod together;

use serde::{Deserialize, Serialize};

use crate::params::Params;

pub use adapted::Adaptation;
pub use adopted::{alone_start, mean_of_coalitions, members_of};
pub use all_rows::model_of_all_rows;
pub use alone::Alone;
pub use compared::ComparedModels;
pub use comparison::{CandidateComparison, VALIDATION_ROWS, comparable};
pub use intercept::with_own_intercept;
pub use local::{Effort, FIT_ROWS, Fitted, LocalModels, TUNING_FOLDS, Tuned, WORK};
pub use personal::{PersonalParts, is_never_trained};
pub use rule::Way;
pub use shrunken::shrunken;
pub use together::{NotTogether, Together, TogetherRounds, TogetherStage};

/// Choice of the model that a silo serves at the end, on its own rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ServeConfig {
    /// Number of folds of the cross-validation, at least 2; or 0 for no comparison.
    pub folds: usize,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self { folds: 5 }
    }
}

impl ServeConfig {
    /// Returns whether the number of folds can be used.
    ///
    /// # Errors
    /// A description of the allowed numbers.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.folds {
            1 => Err("must be at least 2, or 0 for no comparison"),
            _ => Ok(()),
        }
    }
}

/// The origin of a model that a silo may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// Trained alone, by the best of several ways.
    Local,
    /// Fitted robustly alone: of least worst-case loss within a radius around its rows.
    Robust,
    /// The model of its coalition.
    Coalition,
    /// The mean of all coalitions' models, by the number of their members.
    Global,
    /// The coalition's model, trained on by the silo.
    FineTuned,
    /// The coalition's model with an intercept of the silo's own, where rounds have noise.
    OwnIntercept,
    /// An exact fit to its own rows, shrunken towards the coalition's model, where rounds have noise.
    Shrunken,
}

impl Candidate {
    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Local => "the model that it trains alone",
            Self::Robust => "the model that it fits robustly alone",
            Self::Coalition => "the model of its coalition",
            Self::Global => "the mean of all coalitions' models",
            Self::FineTuned => "the model of its coalition, tuned on its own rows",
            Self::OwnIntercept => "the model of its coalition, with an intercept of its own",
            Self::Shrunken => {
                "the model that it fits to its own rows, shrunken towards that of its coalition"
            }
        }
    }

    /// Returns whether the silo makes it alone, with its plain learner.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Local | Self::Robust)
    }

    /// Returns whether it is the model of its coalition, or made of it.
    pub fn is_of_coalition(self) -> bool {
        !self.is_own() && self != Self::Global
    }
}

/// The rows that candidates are compared on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparedOn {
    /// Validation rows, which no model has seen.
    ValidationRows,
    /// Folds of the training rows.
    Folds,
    /// Nothing: there were too few rows, they are not here (a program reads them), or nobody asked.
    Nothing,
}

impl ComparedOn {
    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::ValidationRows => "by its own validation rows",
            Self::Folds => "by cross-validation on its own rows",
            Self::Nothing => "no comparison",
        }
    }
}

/// The loss of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The candidate.
    pub candidate: Candidate,
    /// Mean loss over all rows, each in the fold that holds it, smoothed with one row more of each class, and
    /// with what is added because the model has seen them.
    pub loss: f64,
    /// Difference by which that is less than the loss of the local model.
    pub advantage: f64,
    /// Standard error of the advantage, over the folds or over the validation rows.
    pub error: f64,
    /// The advantage for [deciding together](Together); 0 for certain in notes of before it was kept.
    #[serde(default)]
    pub together: Advantage,
    /// Number of these folds, or of validation rows (groups, where rows have them).
    #[serde(default)]
    pub parts: u64,
    /// Correction that was added to the loss because the model was trained on these rows, among others.
    pub seen: f64,
}

/// An advantage over the local model as it counts where silos decide together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Advantage {
    /// Difference by which the mean loss is less than that of the local model, with one row more of each class than the
    /// silo has, or than 50 rows where it has fewer. Less a selection bias for a model of one of several coalitions.
    pub mean: f64,
    /// Its standard error, over the validation rows, or over the folds with what these have in common: a training on one
    /// shares rows with those on the others.
    pub error: f64,
}

/// The model that a silo serves, and the comparison behind the choice.
#[derive(Debug, Clone)]
pub struct Served {
    /// The choice.
    pub candidate: Candidate,
    /// Rows that the candidates were compared on.
    pub on: ComparedOn,
    /// The comparison, the local model first; empty where the silo has too few rows to compare, and
    /// serves its coalition's model.
    pub measured: Vec<Measured>,
    /// The model and the personal state: of the plain learner where the choice
    /// [is its own](Candidate::is_own), otherwise as the strategy equips the silo.
    pub model: (Params, Params),
    /// Origin of its personal parts.
    pub personal: PersonalParts,
}

/// The candidate with the least loss of those whose advantage over the local model is larger than
/// its standard error; the local model where there is none. Of equals the first.
pub fn choose(measured: &[Measured]) -> Candidate {
    let mut best = (f64::INFINITY, Candidate::Local);
    for one in measured {
        let ahead = one.candidate != Candidate::Local && one.advantage > one.error;
        if ahead && one.loss < best.0 {
            best = (one.loss, one.candidate);
        }
    }
    best.1
}
