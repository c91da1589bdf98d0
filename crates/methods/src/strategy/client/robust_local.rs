//! Robust local models (Konti et al. 2024, eq. (1)): the baseline that CS-RCFL is compared with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{LearnError, Learner, Training, Update};
use crate::strategy::catalogue::not_negative;
use crate::strategy::server::groups::local::Local;
use crate::strategy::{
    DecideError, Decision, EquipError, Objection, Outcome, OwnRadius, Plan, SettleError, Sheet,
    Site, State, Strategy, StrategyError, Watch,
};

/// Options of robust local models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RobustLocal {
    /// ρ ≥ 0: half of it times the squared norm of the weights is added to the robust loss.
    /// Default 0, as in the paper.
    pub ridge: f64,
}

impl RobustLocal {
    pub(crate) fn build(&self, training: Training) -> Result<Box<dyn Strategy>, StrategyError> {
        not_negative("ridge", self.ridge)?;
        Ok(Box::new(Fitted {
            ridge: self.ridge,
            local: Local { training },
        }))
    }
}

/// Everybody alone, with a fit instead of a training.
struct Fitted {
    ridge: f64,
    local: Local,
}

impl Strategy for Fitted {
    fn name(&self) -> &'static str {
        "robust-local"
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        learner.robust_fits()?;
        Ok(learner)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        Ok(radius.suits(learner)?)
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.local.keeps_numbers(round)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        self.local.plan(state, round)
    }

    /// The fit starts from nothing: of the start model it keeps the buffers.
    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        site: Site<'_>,
        _: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let place = site.place;
        let (learner, personal) = (place.learner, place.personal);
        let start = self.start(state, plan, round, place)?;
        let radius = site.radius.get(learner, &start.model, personal)?;
        let fits = learner.robust_fits()?;
        let update = fits.robust_fit(&start.model, personal, radius, self.ridge)?;
        Ok((start.coalition, update))
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        self.local.decide(state, sheet, round)
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        self.local.check(state, sheet, decision, round)
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        self.local.settle(state, sheet, decision, round)
    }
}
