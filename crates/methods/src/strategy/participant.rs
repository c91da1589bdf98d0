//! A silo that takes part in a round: what it learns with, and what it keeps to itself.

use std::sync::{Arc, OnceLock};

use super::State;
use crate::learner::{Capability, LearnError, Learner, MissingCapability, Split, Task, Update};
use crate::params::Params;
use crate::robust::Radius;

pub use crate::learner::Watch;

/// A silo that takes part in a round.
#[derive(Clone, Copy)]
pub struct Participant<'a> {
    /// Position of the silo in the roster.
    pub member: u16,
    /// The coalition that the silo belongs to.
    pub coalition: u32,
    /// Learner of the silo, [equipped](super::Strategy::equip).
    pub learner: &'a dyn Learner,
    /// Personal state of the silo before the round.
    pub personal: &'a Params,
    /// Robustness radius of the silo.
    pub radius: &'a OwnRadius,
    /// Seed of the silo for this round.
    pub seed: u64,
}

impl Participant<'_> {
    /// The model of its coalition, from which it starts.
    ///
    /// # Errors
    /// [`LearnError::Failed`] if the state has no model of that number.
    pub fn start<'s>(&self, state: &'s State) -> Result<&'s Params, LearnError> {
        let coalition = self.coalition;
        state.models.get(coalition as usize).ok_or_else(|| {
            LearnError::Failed(format!("coalition {coalition} has no model to start from"))
        })
    }

    /// Carries out `task` from `start`.
    ///
    /// # Errors
    /// [`LearnError`] if its learner cannot.
    pub fn carry_out(
        &self,
        task: &Task,
        start: &Params,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.learner
            .carry_out(start, self.personal, task, self.seed, progress)
    }

    /// The robust loss of a model within its radius.
    ///
    /// # Errors
    /// [`LearnError`] if its learner knows no robust loss.
    pub fn robust_loss(&self, scored: Scored<'_>) -> Result<f64, LearnError> {
        let Scored {
            model, personal, ..
        } = scored;
        let radius = self.radius.get(self.learner, model, personal)?;
        self.learner.loss(model, personal, radius, Split::Train)
    }
}

/// One model of a cross-evaluation, at a silo that scores it.
#[derive(Debug, Clone, Copy)]
pub struct Scored<'a> {
    /// The model.
    pub model: &'a Params,
    /// The personal state that goes with the models of this round: as the silo's own training
    /// left it.
    pub personal: &'a Params,
    /// True if the silo contributed this model itself.
    pub own: bool,
}

/// A silo's radius: a rule, and the value that it gives on the silo's rows, computed when it is
/// first asked for. Clones share that value.
#[derive(Debug, Clone, Default)]
pub struct OwnRadius {
    rule: Radius,
    known: Arc<OnceLock<f64>>,
}

impl<R: Into<Radius>> From<R> for OwnRadius {
    fn from(rule: R) -> Self {
        Self {
            rule: rule.into(),
            known: Arc::default(),
        }
    }
}

impl OwnRadius {
    /// Refuses a learner that cannot measure losses within this radius.
    ///
    /// # Errors
    /// [`MissingCapability`]: robust losses for a radius above 0, robust fits for one that is
    /// chosen by cross-validation.
    pub fn suits(&self, learner: &dyn Learner) -> Result<(), MissingCapability> {
        let needed: &[Capability] = match self.rule {
            Radius::Fixed(0.0) => &[],
            Radius::Fixed(_) | Radius::ByRows(_) => &[Capability::RobustLosses],
            Radius::CrossValidated(_) => &[Capability::RobustLosses, Capability::RobustFits],
        };
        learner.capabilities().require(needed)
    }

    /// The radius, ≥ 0. The first call computes it on rows as `model` scales them; every model of
    /// a federation scales them alike.
    ///
    /// # Errors
    /// [`LearnError`] if the learner cannot carry out the rule on this model's scale.
    pub fn get(
        &self,
        learner: &dyn Learner,
        model: &Params,
        personal: &Params,
    ) -> Result<f64, LearnError> {
        if let Some(&known) = self.known.get() {
            return Ok(known);
        }
        let radius = learner.radius(model, personal, &self.rule)?;
        Ok(*self.known.get_or_init(|| radius))
    }
}
