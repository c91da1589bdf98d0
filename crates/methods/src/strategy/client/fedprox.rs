//! FedProx (Li et al. 2020): a proximal term keeps local training near the start model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Capability, GradientModifier, Job, LearnError, Learner, Update, Watch};
use crate::strategy::options::{MethodSetting, not_negative};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner,
};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Options of FedProx.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedProx {
    /// Weight of a silo's model in the mean.
    pub weight: WeightRule,
    /// Strength μ of the proximal term `μ/2·‖w − w_start‖²` in the local objective, where `w_start`
    /// is the model of the round's start. At 0 it is FedAvg. Default 0.01; the paper tries 0.001,
    /// 0.01, 0.1 and 1.
    #[schemars(range(min = 0))]
    pub mu: f64,
}

impl Default for FedProx {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            mu: 0.01,
        }
    }
}

impl FedProx {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        not_negative("mu", self.mu)?;
        Ok(Box::new(WrappedStrategy {
            name: "fedprox",
            inner: Arc::new(FedAvg::on(setting, self.weight)),
            by: Proximal { mu: self.mu },
        }))
    }
}

/// Local training with a proximal term towards the start model.
#[derive(Clone, Copy)]
struct Proximal {
    mu: f64,
}

impl StrategyWrapper for Proximal {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        Ok(WrappedLearner::equip(inner, *self)?)
    }
}

impl LearnerWrapper for Proximal {
    fn needs(&self) -> &'static [Capability] {
        match self.mu {
            0.0 => &[],
            _ => &[Capability::ModifiedGradients],
        }
    }

    fn uses_up(&self) -> &'static [Capability] {
        MODIFIES_GRADIENTS
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let proximal = GradientModifier {
            mu: self.mu,
            ..GradientModifier::none(job.start)
        };
        job.modified(&proximal).run(inner, progress)
    }
}
