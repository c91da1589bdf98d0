//! A method as what it changes in another one.

use std::sync::Arc;

use crate::learner::{LearnError, Learner, Update};
use crate::params::{Layout, Params};
use crate::strategy::{
    DecideError, Decision, Entry, EquipError, Names, Newcomer, Objection, Outcome, OwnRadius,
    Place, Plan, Scored, SettleError, Sheet, Site, Start, State, Strategy, Watch,
};

/// What a method changes in another: how silos learn, what they contribute, what becomes of the
/// models. By default nothing.
pub(crate) trait StrategyWrapper: Send + Sync {
    /// What silos learn with, see [`Strategy::equip`].
    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        Ok(learner)
    }

    /// See [`Strategy::can_take_part`].
    fn can_take_part(&self, learner: &dyn Learner) -> Result<(), EquipError> {
        let _ = learner;
        Ok(())
    }

    /// Layout of a contribution, given that of the models.
    fn contribution(&self, model: &Arc<Layout>) -> Arc<Layout> {
        model.clone()
    }

    /// What the members adopt, from the state before and what the other method makes of `sheet`.
    fn adopt(&self, before: &State, sheet: &Sheet, after: Outcome) -> Result<Outcome, SettleError> {
        let _ = (before, sheet);
        Ok(after)
    }
}

/// A strategy with a variation.
pub(crate) struct WrappedStrategy<V> {
    pub(crate) name: &'static str,
    pub(crate) inner: Box<dyn Strategy>,
    pub(crate) by: V,
}

impl<V: StrategyWrapper> Strategy for WrappedStrategy<V> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn names(&self) -> Names {
        self.inner.names()
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.inner.equip(self.by.equip(learner)?)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        self.by.can_take_part(learner)?;
        self.inner.can_take_part(learner, radius)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        self.inner.plan(state, round)
    }

    fn start(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        place: Place<'_>,
    ) -> Result<Start, LearnError> {
        self.inner.start(state, plan, round, place)
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        site: Site<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        self.inner.contribute(state, plan, round, site, progress)
    }

    fn score(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        site: Site<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        self.inner.score(state, plan, round, site, scored)
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.inner.keeps_numbers(round)
    }

    fn expects(
        &self,
        model: &Arc<Layout>,
        summary: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        let model = self.by.contribution(model);
        self.inner.expects(&model, summary, round)
    }

    fn admit(&self, entry: &Entry, round: u64) -> Result<(), String> {
        self.inner.admit(entry, round)
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        self.inner.decide(state, sheet, round)
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        self.inner.check(state, sheet, decision, round)
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        let after = self.inner.settle(state, sheet, decision, round)?;
        self.by.adopt(state, sheet, after)
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
