//! Strategies in which the lead has nothing to choose: the assignment follows from the state and
//! the manifest, and the models from the assignment.

use std::sync::Arc;

use super::{
    DecideError, Decision, EquipError, LoadedManifest, ModelEntry, Names, Newcomer, Objection,
    Outcome, OwnRadius, Participant, Plan, SettleError, State, Strategy, Watch,
};
use crate::learner::{LearnError, Learner, Task, Training, Update};
use crate::params::{Layout, Params};

/// A method that assigns every contribution by a fixed rule and then aggregates. Each one is a
/// [`Strategy`]: the lead's decision is the assignment, and a member checks it by computing the
/// assignment again.
///
/// Only [`name`](Self::name), [`training`](Self::training) and [`aggregate`](Self::aggregate) have
/// to be written; everything else has the default of a method with one model for all members.
pub trait AssignAndAggregate: Send + Sync {
    /// See [`Strategy::name`].
    fn name(&self) -> &'static str;

    /// See [`Strategy::names`].
    fn names(&self) -> Names {
        Names::Removed
    }

    /// The local training of a round.
    fn training(&self) -> &Training;

    /// Returns whether contributions come with their number of training rows.
    fn by_rows(&self) -> bool {
        false
    }

    /// See [`Strategy::draws_members`].
    fn draws_members(&self) -> bool {
        false
    }

    /// Returns who takes part in a round, see [`Plan::participants`].
    fn participants(&self, state: &State, round: u64) -> Option<Vec<u16>> {
        let _ = (state, round);
        None
    }

    /// See [`Strategy::equip`].
    ///
    /// # Errors
    /// [`EquipError`] if the method cannot work with this learner.
    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        Ok(learner)
    }

    /// See [`Strategy::can_take_part`].
    ///
    /// # Errors
    /// [`EquipError`]: what the silo lacks.
    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        let _ = (learner, radius);
        Ok(())
    }

    /// See [`Strategy::initial_state`].
    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        State::genesis(learner.initial(seed))
    }

    /// See [`Strategy::contribute`].
    ///
    /// # Errors
    /// [`LearnError`] if the learner cannot.
    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let _ = round;
        let update = participant.carry_out(&plan.task, participant.start(state)?, progress)?;
        Ok((participant.coalition, update))
    }

    /// See [`Strategy::keeps_numbers`].
    fn keeps_numbers(&self, round: u64) -> bool {
        let _ = round;
        false
    }

    /// Layout of every contribution, given the model's.
    fn contribution(&self, model: &Arc<Layout>) -> Arc<Layout> {
        model.clone()
    }

    /// See [`Strategy::admit`]: by default, with its number of rows where that is asked for.
    ///
    /// # Errors
    /// In one sentence, what is wrong with the contribution.
    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        let _ = round;
        entry.admit_rows(self.by_rows())
    }

    /// The coalition of every entry, in the order of the contribution list: by default coalition 0 for all. The same on
    /// every machine.
    ///
    /// # Errors
    /// [`DecideError`] if the manifest cannot be used.
    fn assign(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Vec<u32>, DecideError> {
        let _ = (state, round);
        if self.by_rows() {
            manifest.require_rows()?;
        }
        Ok(vec![0; manifest.entries.len()])
    }

    /// The rule of [`assign`](Self::assign) in one clause, for a member that refuses a decision.
    fn rule(&self) -> &'static str {
        "every entry belongs to coalition 0"
    }

    /// The state after the round. `assignment` has a number for every entry; nothing else is known
    /// of it. The same bits on every machine.
    ///
    /// # Errors
    /// [`SettleError`] if the manifest or the assignment cannot be used.
    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        round: u64,
    ) -> Result<State, SettleError>;

    /// See [`Strategy::unseen`].
    ///
    /// # Errors
    /// [`LearnError`] if it trains for that and cannot.
    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        let _ = round;
        newcomer.best_model(state, None)
    }
}

impl<M: AssignAndAggregate> Strategy for M {
    fn name(&self) -> &'static str {
        AssignAndAggregate::name(self)
    }

    fn names(&self) -> Names {
        AssignAndAggregate::names(self)
    }

    fn draws_members(&self) -> bool {
        AssignAndAggregate::draws_members(self)
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        AssignAndAggregate::equip(self, learner)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        AssignAndAggregate::can_take_part(self, learner, radius)
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        AssignAndAggregate::initial_state(self, learner, seed)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            participants: self.participants(state, round),
            weights: self.by_rows(),
            ..Plan::everyone(state, Task::Train(self.training().clone()))
        }
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        AssignAndAggregate::contribute(self, state, plan, round, participant, progress)
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        AssignAndAggregate::keeps_numbers(self, round)
    }

    fn expects(
        &self,
        _: &State,
        model: &Arc<Layout>,
        _: Option<&Arc<Layout>>,
        _: u64,
    ) -> Arc<Layout> {
        self.contribution(model)
    }

    fn layouts(&self, model: &Arc<Layout>, _: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        vec![self.contribution(model)]
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        AssignAndAggregate::admit(self, entry, round)
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        manifest.not_empty()?;
        Ok(Decision::fixed(self.assign(state, manifest, round)?))
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        manifest.not_empty()?;
        decision.must_be_fixed(&self.assign(state, manifest, round)?, self.rule())
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        manifest.not_empty()?;
        manifest.fits(&decision.assignment)?;
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: self.aggregate(state, manifest, &decision.assignment, round)?,
        })
    }

    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        AssignAndAggregate::unseen(self, state, round, newcomer)
    }
}
