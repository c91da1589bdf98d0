//! FedAvg (McMahan et al. 2017): one model for all members, the mean of theirs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::aggregation::Aggregation;
use crate::learner::Training;
use crate::strategy::options::{MethodSetting, fraction};
use crate::strategy::server::means::coalition_means;
use crate::strategy::server::one_model::momentum::ServerMomentum;
use crate::strategy::wrappers::strategy_wrapper::WrappedStrategy;
use crate::strategy::{
    AssignAndAggregate, LoadedManifest, ModelEntry, SettleError, State, Strategy, StrategyError,
};

/// How models weigh in a mean.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WeightRule {
    /// Proportional to the number of training rows, which is sent with the contribution. An exact
    /// number may reveal the author of a contribution without a name.
    #[default]
    Exact,
    /// Equal for all silos. No number of rows is sent.
    Equal,
}

/// Options of FedAvg.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedAvgOptions {
    /// Weight of a silo's model in the mean.
    pub weight: WeightRule,
    /// Momentum of the global model: the share of its last change that every change keeps. Default 0.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub momentum: f64,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

impl FedAvgOptions {
    /// Without momentum.
    pub fn weighing(weight: WeightRule) -> Self {
        Self {
            weight,
            momentum: 0.0,
        }
    }

    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let beta = self.momentum;
        fraction("momentum", beta)?;
        let plain = FedAvg::on(setting, self.weight);
        if beta == 0.0 {
            return Ok(Box::new(plain));
        }
        Ok(Box::new(WrappedStrategy {
            name: "fedavg",
            inner: Arc::new(plain),
            by: ServerMomentum { beta },
        }))
    }
}

/// Options of methods that average as FedAvg does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Averaging {
    /// Weight of a silo's model in the mean.
    pub weight: WeightRule,
}

impl Averaging {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        Ok(Box::new(FedAvg::on(setting, self.weight)))
    }
}

/// `θ ← Σ n_k θ_k / Σ n_k` over all contributions of a round, trained locally from `θ`.
#[derive(Debug, Clone)]
pub struct FedAvg {
    /// What a member does in a round.
    pub training: Training,
    /// True if models weigh by training rows, as in the paper; else all alike. An exact number of
    /// rows may reveal the silo of a nameless contribution.
    pub weighted: bool,
    /// What takes the place of the mean.
    pub rule: Aggregation,
}

impl FedAvg {
    /// With models that weigh by this rule.
    pub fn new(training: Training, weight: WeightRule) -> Self {
        Self {
            training,
            weighted: weight == WeightRule::Exact,
            rule: Aggregation::Mean,
        }
    }

    pub(crate) fn on(setting: MethodSetting, weight: WeightRule) -> Self {
        Self {
            rule: setting.rule,
            ..Self::new(setting.training, weight)
        }
    }
}

impl AssignAndAggregate for FedAvg {
    fn name(&self) -> &'static str {
        "fedavg"
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn by_rows(&self) -> bool {
        self.weighted
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        _: u64,
    ) -> Result<State, SettleError> {
        if self.weighted {
            manifest.require_rows()?;
        }
        let weight = |entry: &ModelEntry| entry.share(self.weighted);
        let models = coalition_means(&self.rule, manifest, assignment, &[], 1, weight)?;
        Ok(state.with(models))
    }
}
