//! Fit of a silo's model in a round: by training in steps, or by an exact fit.

use serde::{Deserialize, Serialize};

use super::options::require;
use super::{Participant, Plan, State, StrategyError, Watch};
use crate::learner::{
    Capability, ExactFit, Job, LearnError, Learner, MissingCapability, Task, Training, Update, Work,
};
use crate::params::Params;
use crate::robust::Ridge;

/// The option `fit`: how silos find their models.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FitRule {
    /// By the steps of `training`, from the model of the silo's coalition.
    #[default]
    Trained,
    /// By a solver, to the least loss with a ridge; `training` is not used. For linear models with
    /// absolute or squared loss, and logistic ones.
    Exact,
    /// As `"exact"` where the model has exact fits, otherwise as `"trained"`.
    ExactIfPossible,
}

/// Fit of a silo's model.
#[derive(Debug, Clone, PartialEq)]
pub enum Fitting {
    /// By this training.
    Trained(Training),
    /// By an exact fit; the training only says what a round is expected to cost.
    Exact(Training, ExactFit),
    /// By an exact fit where the learner has one, otherwise by this training.
    ExactIfPossible(Training, ExactFit),
}

impl Fitting {
    /// From the options `fit` and `ridge`.
    pub(crate) fn new(
        rule: FitRule,
        ridge: &Ridge,
        around_start: bool,
        training: Training,
    ) -> Result<Self, StrategyError> {
        let allowed = "a number of at least 0, or { folds, grid } with at least 2 folds and \
                       ascending numbers of at least 0";
        let got = serde_json::to_string(ridge).unwrap_or_default();
        require(ridge.is_valid(), "ridge", allowed, got)?;
        let fit = ExactFit {
            ridge: ridge.clone(),
            around_start,
        };
        Ok(match rule {
            FitRule::Trained => Self::Trained(training),
            FitRule::Exact => Self::Exact(training, fit),
            FitRule::ExactIfPossible => Self::ExactIfPossible(training, fit),
        })
    }

    /// The training of the plan.
    pub fn training(&self) -> &Training {
        let (Self::Trained(training)
        | Self::Exact(training, _)
        | Self::ExactIfPossible(training, _)) = self;
        training
    }

    /// The task of the plan.
    pub(crate) fn task(&self) -> Task {
        Task::Train(self.training().clone())
    }

    /// Returns how this learner finds its model in a round of a plan, whose learning rate may have fallen.
    pub(crate) fn of(&self, task: &Task, learner: &dyn Learner) -> Self {
        let training = match task {
            Task::Train(training) => training,
            Task::Summarise | Task::Keep | Task::Answer(_) => self.training(),
        };
        match self {
            Self::Trained(_) => Self::Trained(training.clone()),
            Self::ExactIfPossible(..) if !learner.has(Capability::ExactFits) => {
                Self::Trained(training.clone())
            }
            Self::Exact(_, fit) | Self::ExactIfPossible(_, fit) => {
                Self::Exact(training.clone(), fit.clone())
            }
        }
    }

    /// Refuses a learner that has no such fits.
    pub(crate) fn suits(&self, learner: &dyn Learner) -> Result<(), MissingCapability> {
        match self {
            Self::Trained(_) | Self::ExactIfPossible(..) => Ok(()),
            Self::Exact(..) => learner.capabilities().require(&[Capability::ExactFits]),
        }
    }

    /// Steps that it takes on this many rows, where that is known without the learner.
    pub(crate) fn steps(&self, rows: u64) -> u64 {
        match self {
            Self::Trained(training) => training.steps(rows),
            Self::Exact(..) | Self::ExactIfPossible(..) => 0,
        }
    }

    /// A participant's part in a round with this plan: the model that it finds from that of its own
    /// coalition.
    pub(crate) fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let start = participant.start(state)?;
        let fit = self.of(&plan.task, participant.learner);
        let update = fit.update(participant, start, progress)?;
        Ok((participant.coalition, update))
    }

    /// The model of a participant, from `start`.
    pub(crate) fn update(
        &self,
        participant: Participant<'_>,
        start: &Params,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let Participant {
            learner,
            personal,
            seed,
            ..
        } = participant;
        let trained = |training| Job::train(start, personal, training, seed);
        let fitted = |fit| Job::without_draws(start, personal, Work::ExactFit(fit));
        let job = match self {
            Self::Trained(training) => trained(training),
            Self::Exact(_, fit) => fitted(fit),
            Self::ExactIfPossible(_, fit) if learner.has(Capability::ExactFits) => fitted(fit),
            Self::ExactIfPossible(training, _) => trained(training),
        };
        job.run(learner, progress)
    }
}
