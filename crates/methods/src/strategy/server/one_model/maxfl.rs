//! MaxFL (Cho et al. 2022): a model that as many silos as possible prefer to their own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::aggregation::step;
use crate::aggregation::weights::{WeightsError, maxfl_steps};
use crate::learner::{LearnError, Learner, Split, Update};
use crate::params::Params;
use crate::strategy::options::MethodSetting;
use crate::strategy::options::{positive, require};
use crate::strategy::server::one_model::maxfl_joins::Joins;
use crate::strategy::server::one_model::self_weighted::{SelfReported, SelfWeighted, Weighing};
use crate::strategy::wrappers::report::ReportMetrics;
use crate::strategy::wrappers::self_reported::{SelfReport, equip};
use crate::strategy::{EquipError, SettleError, Strategy, StrategyError};

/// Options of MaxFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MaxFl {
    /// Behaviour of a silo that the global model does not appeal to.
    pub variant: Appeal,
    /// Step size η_g of the global model; a longer step could leave the range of the contributed
    /// models. Default 1.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub rate: f64,
    /// Constant ε of the step `Σ q_k Δ_k / (Σ q_k + ε)`: the step is shorter when the total weight
    /// `Σ q_k` of the undecided silos is small compared with ε. Default 1.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub epsilon: f64,
    /// Number of first rounds that compute a plain mean. Default 1: in the first round silos measure
    /// the loss that they reach alone, and no model is near it yet.
    #[schemars(extend("x-unit" = "rounds"))]
    pub warm_up: u64,
}

/// Behaviour of a silo to which the global model does not appeal.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Appeal {
    /// It takes part. Silos weigh less the more clearly they prefer one of the two models (Cho et al.
    /// 2022).
    #[default]
    Cho,
    /// It trains alone, the variant in HCCT's experiments (Sun et al. 2024). The other options have
    /// no effect.
    Joins,
}

impl Default for MaxFl {
    fn default() -> Self {
        Self {
            variant: Appeal::default(),
            rate: 1.0,
            epsilon: 1.0,
            warm_up: 1,
        }
    }
}

impl MaxFl {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let holds = self.rate > 0.0 && self.rate <= 1.0;
        require(holds, "rate", "above 0 and at most 1", self.rate)?;
        positive("epsilon", self.epsilon)?;
        let name = "maxfl";
        Ok(match self.variant {
            Appeal::Cho => Box::new(SelfWeighted {
                name,
                training: setting.training,
                by: self.clone(),
            }),
            Appeal::Joins => Box::new(SelfWeighted {
                name,
                training: setting.training,
                by: Joins,
            }),
        })
    }
}

impl Weighing for MaxFl {
    fn report(&self) -> ReportMetrics {
        Requirement.report()
    }

    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        equip(Requirement, inner)
    }

    fn weights(&self, reported: &[SelfReported], round: u64) -> Result<Vec<f64>, WeightsError> {
        if round <= self.warm_up {
            return Ok(vec![1.0 / reported.len() as f64; reported.len()]);
        }
        let losses: Vec<f64> = reported.iter().map(|one| one.values[0]).collect();
        let required: Vec<f64> = reported.iter().map(|one| one.values[1]).collect();
        maxfl_steps(&losses, &required, self.rate, self.epsilon)
    }

    fn combine(&self, start: &Params, models: &[(&Params, f64)]) -> Result<Params, SettleError> {
        Ok(step(start, models)?)
    }
}

/// The loss of the start model on the own training rows, and the loss that the silo requires:
/// that of the model which its first training led to, without anybody else.
struct Requirement;

impl SelfReport for Requirement {
    fn report(&self) -> ReportMetrics {
        ReportMetrics(&["loss", "required"])
    }

    fn kept(&self) -> &'static [&'static str] {
        &["known", "required"]
    }

    fn measure(
        &self,
        learner: &dyn Learner,
        start: &Params,
        personal: &Params,
        reached: &Update,
        kept: &mut [f32],
    ) -> Result<Vec<f64>, LearnError> {
        let loss = |model: &Params, personal: &Params| {
            let metrics = learner.evaluate(model, personal, Split::Train)?;
            metrics.get("loss")
        };
        let (known, required) = (0, 1);
        if kept[known] == 0.0 {
            kept[known] = 1.0;
            kept[required] = loss(&reached.shared, &reached.personal)? as f32;
        }
        Ok(vec![loss(start, personal)?, kept[required].into()])
    }
}
