//! Training without a federation, as the silos of one train.

use std::ops::{ControlFlow, RangeInclusive};

use crate::learner::{LearnError, Learner, Task, Training};
use crate::params::Params;

/// Training without a federation, for as many rounds as one.
#[derive(Debug, Clone)]
pub struct Alone {
    /// The model to start from.
    pub start: Params,
    /// Seed of the initial personal state.
    pub initial: u64,
    /// The task of every round; a decay of its learning rate counts these rounds.
    pub task: Task,
    /// The silo's seed.
    pub seed: u64,
    /// The rounds.
    pub rounds: RangeInclusive<u64>,
}

impl Alone {
    /// Trains.
    ///
    /// # Errors
    /// [`LearnError`] of the learner.
    pub fn train(&self, learner: &dyn Learner) -> Result<(Params, Params), LearnError> {
        self.train_watched(learner, |_| ())
    }

    /// Trains, and shows the model after every round.
    ///
    /// # Errors
    /// [`LearnError`] of the learner.
    pub fn train_watched(
        &self,
        learner: &dyn Learner,
        mut after_round: impl FnMut(&Params),
    ) -> Result<(Params, Params), LearnError> {
        let mut model = self.start.clone();
        let mut personal = learner.initial_personal(self.initial);
        for round in self.rounds.clone() {
            (model, personal) = self.step(learner, &model, &personal, round)?;
            after_round(&model);
        }
        Ok((model, personal))
    }

    /// A given model, with the personal state trained around it: from the initial state, for as
    /// many rounds, the model itself being the same in each. Without personal state, the model as it
    /// is.
    ///
    /// # Errors
    /// [`LearnError`] of the learner.
    pub fn around(
        &self,
        learner: &dyn Learner,
        model: &Params,
    ) -> Result<(Params, Params), LearnError> {
        let mut personal = learner.initial_personal(self.initial);
        if !personal.values().is_empty() {
            for round in self.rounds.clone() {
                (_, personal) = self.step(learner, model, &personal, round)?;
            }
        }
        Ok((model.clone(), personal))
    }

    pub(super) fn step(
        &self,
        learner: &dyn Learner,
        model: &Params,
        personal: &Params,
        round: u64,
    ) -> Result<(Params, Params), LearnError> {
        let before = round.saturating_sub(*self.rounds.start());
        let task = match &self.task {
            Task::Train(training) => Task::Train(training.at(before + 1)),
            other => other.clone(),
        };
        self.carry_out(learner, (model, personal), &task, round)
    }

    /// Carries out a task with the seed of a round.
    pub(super) fn carry_out(
        &self,
        learner: &dyn Learner,
        (model, personal): (&Params, &Params),
        task: &Task,
        round: u64,
    ) -> Result<(Params, Params), LearnError> {
        let seed = learner.seed(self.seed, round);
        let mut go_on = |_| ControlFlow::Continue(());
        let update = learner.carry_out(model, personal, task, seed, &mut go_on)?;
        Ok((update.shared, update.personal))
    }

    /// The training of a round, and the epochs of all rounds.
    pub(super) fn training(&self) -> Option<(&Training, u64)> {
        let Task::Train(training) = &self.task else {
            return None;
        };
        let rounds = (self.rounds.end() + 1).saturating_sub(*self.rounds.start());
        Some((training, rounds * u64::from(training.epochs)))
    }
}
