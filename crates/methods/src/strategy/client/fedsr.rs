//! FedSR (Nguyen et al. 2022): one model with short representations that are similar within a class.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Learner, Stochastic};
use crate::strategy::options::{Built, MethodSetting, at_least_one, not_negative};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Options of FedSR.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedSr {
    /// Weight of a silo's model in the mean. Default by training rows; the published code weighs
    /// all silos equally.
    pub weight: WeightRule,
    /// Weight of the mean length of a representation in the local objective (L2R). Default 0.01, as
    /// in the published code.
    #[schemars(range(min = 0))]
    pub length: f64,
    /// Weight of the distance between the distribution of a row's representation and that of its
    /// class, in the local objective (CMI). Default 0.001, as the published code advises.
    #[schemars(range(min = 0))]
    pub distance: f64,
    /// Number of representations drawn for a row when the model is evaluated. Default 20, as in the
    /// published code.
    #[schemars(range(min = 1), extend("x-unit" = "draws"))]
    pub draws: u32,
}

impl Default for FedSr {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            length: 0.01,
            distance: 0.001,
            draws: 20,
        }
    }
}

impl FedSr {
    /// Learners become stochastic before anything else is done to them.
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Built, StrategyError> {
        not_negative("length", self.length)?;
        not_negative("distance", self.distance)?;
        at_least_one("draws", self.draws.into())?;
        let strategy: Box<dyn Strategy> = Box::new(FedAvg::on(setting, self.weight));
        let by = self.clone();
        Ok(Built::from(strategy).within(|inner| {
            Box::new(WrappedStrategy {
                name: "fedsr",
                inner: inner.into(),
                by,
            })
        }))
    }
}

impl StrategyWrapper for FedSr {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let options = Stochastic {
            length: self.length,
            distance: self.distance,
            draws: self.draws,
        };
        Ok(inner.stochastic()?.stochastic(&options))
    }
}
