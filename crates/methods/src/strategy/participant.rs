//! What a silo brings to a round: its place, and what it keeps to itself.

use std::sync::{Arc, OnceLock};

use super::{Plan, State, Strategy};
use crate::learner::{Capability, LearnError, Learner, MissingCapability, Split, Update};
use crate::params::Params;
use crate::robust::Radius;

pub use crate::learner::Watch;

/// A silo whose part in a round begins.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Its place in the roster.
    pub member: u16,
    /// The coalition that it belongs to.
    pub coalition: u32,
    /// What it learns with, [equipped](Strategy::equip).
    pub learner: &'a dyn Learner,
    /// Its personal state.
    pub personal: &'a Params,
}

/// A silo at work in a round.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// Its place; the personal state is that before the round.
    pub place: Place<'a>,
    /// Its robustness radius.
    pub radius: &'a OwnRadius,
    /// Its seed for this round.
    pub seed: u64,
}

/// One model of a cross-evaluation, at a silo that scores it.
#[derive(Debug, Clone, Copy)]
pub struct Scored<'a> {
    /// The model.
    pub model: &'a Params,
    /// The personal state that goes with the models of this round: as the silo's own training
    /// left it.
    pub personal: &'a Params,
    /// Whether the silo contributed this model itself.
    pub own: bool,
}

/// A silo's radius: a rule, and what it comes to on the silo's rows, worked out when it is first
/// asked for. Clones share that.
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

    /// The radius, ≥ 0. The first call works it out on rows as `model` scales them; every model of
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

/// A silo's part in a round, from the start that the strategy names: what
/// [`Strategy::contribute`] does by default.
pub(crate) fn begin_and_train<S: Strategy + ?Sized>(
    strategy: &S,
    state: &State,
    plan: &Plan,
    round: u64,
    site: Site<'_>,
    progress: &mut Watch<'_>,
) -> Result<(u32, Update), LearnError> {
    let place = site.place;
    let start = strategy.start(state, plan, round, place)?;
    let update = place.learner.carry_out(
        &start.model,
        place.personal,
        &start.task,
        site.seed,
        progress,
    )?;
    Ok((start.coalition, update))
}

/// The robust loss of a model within the silo's radius: what [`Strategy::score`] does by default.
pub(crate) fn robust_loss(site: Site<'_>, scored: Scored<'_>) -> Result<f64, LearnError> {
    let (
        learner,
        Scored {
            model, personal, ..
        },
    ) = (site.place.learner, scored);
    let radius = site.radius.get(learner, model, personal)?;
    learner.loss(model, personal, radius, Split::Train)
}
