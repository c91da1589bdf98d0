//! Wraps a strategy to add a method that changes only what silos do, what they contribute, what a lead
//! decides, or the model that comes out.

use std::sync::Arc;

use crate::learner::{LearnError, Learner, Update};
use crate::merging::MergeTree;
use crate::params::{Layout, Params};
use crate::strategy::{
    DecideError, Decision, EquipError, LoadedManifest, ModelEntry, Names, Newcomer, Objection,
    Outcome, OwnRadius, Participant, Plan, Scored, SettleError, State, Strategy, Watch,
};

/// What a method changes in another one: how silos learn, what they contribute, what a lead decides,
/// which models come out. By default nothing.
pub(crate) trait StrategyWrapper: Send + Sync {
    /// The learner of a silo, see [`Strategy::equip`].
    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        Ok(learner)
    }

    /// See [`Strategy::can_take_part`].
    fn can_take_part(&self, learner: &dyn Learner) -> Result<(), EquipError> {
        let _ = learner;
        Ok(())
    }

    /// Returns whether the method draws the members of rounds, see [`Strategy::draws_members`].
    fn draws_members(&self) -> bool {
        false
    }

    /// The state before the first round, given that of the wrapped strategy.
    fn begin(&self, state: State, seed: u64) -> State {
        let _ = seed;
        state
    }

    /// The members that take part in a round, given the state and the plan of the wrapped strategy;
    /// `None`: those that it names.
    fn take_part(&self, state: &State, plan: &Plan, round: u64) -> Option<Vec<u16>> {
        let _ = (state, plan, round);
        None
    }

    /// The plan of a round, given that of the wrapped strategy.
    fn plan(&self, plan: Plan, round: u64) -> Plan {
        let _ = round;
        plan
    }

    /// Layout of a contribution, given that of the models.
    fn contribution(&self, model: &Arc<Layout>) -> Arc<Layout> {
        model.clone()
    }

    /// Refuses a contribution that cannot be used, with the reason in one sentence; see
    /// [`Strategy::admit`].
    fn admit(&self, entry: &ModelEntry) -> Result<(), String> {
        let _ = entry;
        Ok(())
    }

    /// The decision that a lead proposes, given that of the wrapped strategy.
    fn decide(&self, manifest: &LoadedManifest, decision: Decision) -> Decision {
        let _ = manifest;
        decision
    }

    /// The outcome that members adopt, from the state before, the manifest, and the outcome of the
    /// wrapped strategy.
    fn adopt(
        &self,
        before: &State,
        manifest: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let _ = (before, manifest);
        Ok(after)
    }

    /// Returns whether the federation ends with this state, see [`Strategy::ends`].
    fn ends(&self, state: &State) -> bool {
        let _ = state;
        false
    }
}

/// A strategy with a wrapper around it.
pub(crate) struct WrappedStrategy<V> {
    pub(crate) name: &'static str,
    pub(crate) inner: Arc<dyn Strategy>,
    pub(crate) by: V,
}

impl<V: StrategyWrapper> Strategy for WrappedStrategy<V> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn names(&self) -> Names {
        self.inner.names()
    }

    fn draws_members(&self) -> bool {
        self.by.draws_members() || self.inner.draws_members()
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.inner.equip(self.by.equip(learner)?)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        self.by.can_take_part(learner)?;
        self.inner.can_take_part(learner, radius)
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        self.by.begin(self.inner.initial_state(learner, seed), seed)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        let mut plan = self.by.plan(self.inner.plan(state, round), round);
        let drawn = self.by.take_part(state, &plan, round);
        plan.participants = drawn.or(plan.participants);
        plan
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        self.inner
            .contribute(state, plan, round, participant, progress)
    }

    fn score(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        self.inner.score(state, plan, round, participant, scored)
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.inner.keeps_numbers(round)
    }

    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        summary: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        let model = self.by.contribution(model);
        self.inner.expects(state, &model, summary, round)
    }

    fn layouts(&self, model: &Arc<Layout>, summary: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        self.inner.layouts(&self.by.contribution(model), summary)
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        self.by.admit(entry)?;
        self.inner.admit(entry, round)
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        let decision = self.inner.decide(state, manifest, round)?;
        Ok(self.by.decide(manifest, decision))
    }

    fn merge_tree(
        &self,
        state: &State,
        manifest: &dyn Fn() -> Option<LoadedManifest>,
        round: u64,
    ) -> Option<MergeTree> {
        self.inner.merge_tree(state, manifest, round)
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        self.inner.check(state, manifest, decision, round)
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        let after = self.inner.settle(state, manifest, decision, round)?;
        self.by.adopt(state, manifest, after)
    }

    fn ends(&self, state: &State) -> bool {
        self.by.ends(state) || self.inner.ends(state)
    }

    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        self.inner.unseen(state, round, newcomer)
    }
}
