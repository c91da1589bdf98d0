//! Robust local models (Konti et al. 2024, eq. (1)): the baseline that CS-RCFL is compared with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Job, LearnError, Learner, Training, Update, Work};
use crate::strategy::options::{MethodSetting, not_negative};
use crate::strategy::server::groups::local::Local;
use crate::strategy::{
    AssignAndAggregate, DecideError, EquipError, LoadedManifest, OwnRadius, Participant, Plan,
    SettleError, State, Strategy, StrategyError, Watch,
};

/// Options of robust local models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RobustLocal {
    /// Strength ρ of the ridge penalty: ρ/2 times the squared norm of the weights is added to the
    /// robust loss. Default 0, as in the paper.
    #[schemars(range(min = 0))]
    pub ridge: f64,
}

impl RobustLocal {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        not_negative("ridge", self.ridge)?;
        Ok(Box::new(FittedLocal {
            ridge: self.ridge,
            local: Local::new(setting),
        }))
    }
}

/// Local models that are fitted instead of trained.
struct FittedLocal {
    ridge: f64,
    local: Local,
}

impl AssignAndAggregate for FittedLocal {
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

    fn training(&self) -> &Training {
        self.local.fit.training()
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        AssignAndAggregate::keeps_numbers(&self.local, round)
    }

    /// The fit does not depend on the values of the start model, of which it keeps the buffers.
    fn contribute(
        &self,
        state: &State,
        _: &Plan,
        _: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let Participant {
            learner, personal, ..
        } = participant;
        let start = participant.start(state)?;
        let radius = participant.radius.get(learner, start, personal)?;
        let work = Work::RobustFit {
            radius,
            ridge: self.ridge,
        };
        let update = Job::without_draws(start, personal, work).run(learner, progress)?;
        Ok((participant.coalition, update))
    }

    fn assign(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Vec<u32>, DecideError> {
        self.local.assign(state, manifest, round)
    }

    fn rule(&self) -> &'static str {
        self.local.rule()
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        round: u64,
    ) -> Result<State, SettleError> {
        self.local.aggregate(state, manifest, assignment, round)
    }
}
