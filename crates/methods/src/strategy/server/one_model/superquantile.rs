//! The superquantile (Pillutla et al. 2023): one model for the silos with the largest losses.

use serde::{Deserialize, Serialize};

use crate::aggregation::weights::{WeightsError, superquantile};
use crate::strategy::options::MethodSetting;
use crate::strategy::options::fraction;
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::server::one_model::self_weighted::{SelfReported, SelfWeighted, Weighing};
use crate::strategy::wrappers::report::ReportMetrics;
use crate::strategy::{Strategy, StrategyError};

/// Options of the superquantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Superquantile {
    /// Weight of a silo's loss in the distribution of losses.
    pub weight: WeightRule,
    /// Level θ: the share of the smallest losses that is left out of the mean. At 0 it is FedAvg.
    /// Default 0.5, a guess: the half with the larger losses.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub theta: f64,
}

impl Default for Superquantile {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            theta: 0.5,
        }
    }
}

impl Superquantile {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        fraction("theta", self.theta)?;
        Ok(Box::new(SelfWeighted {
            name: "superquantile",
            training: setting.training,
            by: self.clone(),
        }))
    }
}

impl Weighing for Superquantile {
    fn report(&self) -> ReportMetrics {
        ReportMetrics(&["loss"])
    }

    fn by_rows(&self) -> bool {
        self.weight == WeightRule::Exact
    }

    fn weights(&self, reported: &[SelfReported], _: u64) -> Result<Vec<f64>, WeightsError> {
        let losses: Vec<f64> = reported.iter().map(|one| one.values[0]).collect();
        let shares: Vec<f64> = reported.iter().map(|one| one.share).collect();
        superquantile(&losses, &shares, self.theta)
    }
}
