//! FeSEM (Xie et al. 2021): every silo belongs to the centre nearest to what it trained.

use serde::{Deserialize, Serialize};

use crate::clustering::fesem::assign;
use crate::learner::LearnError;
use crate::params::Params;
use crate::strategy::options::MethodSetting;
use crate::strategy::server::groups::multi_model::{
    First, ModelChoice, MultiModel, MultiModelOptions, distances,
};
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{DecideError, LoadedManifest, Participant, State, Strategy, StrategyError};

/// Options of FeSEM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fesem {
    /// Number of models (centres). Default 2, a guess.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "models"))]
    pub models: usize,
    /// Weight of a silo's model in the mean of its centre. Default equal.
    pub weight: WeightRule,
    /// How silos are assigned to the centres in the first round. Default k-means.
    pub start: First,
}

impl Default for Fesem {
    fn default() -> Self {
        Self {
            models: 2,
            weight: WeightRule::Equal,
            start: First::KMeans,
        }
    }
}

impl Fesem {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let models = MultiModelOptions {
            count: self.models,
            weight: self.weight,
            start: self.start.into(),
        };
        MultiModel::build("fesem", setting, models, Nearest)
    }
}

struct Nearest;

impl ModelChoice for Nearest {
    fn start(
        &self,
        state: &State,
        participant: Participant<'_>,
    ) -> Result<(Params, u32), LearnError> {
        Ok((participant.start(state)?.clone(), participant.coalition))
    }

    fn assign(&self, state: &State, manifest: &LoadedManifest) -> Result<Vec<u32>, DecideError> {
        let distances = distances(manifest, state.models.iter());
        assign(&distances).map_err(DecideError::unusable)
    }
}
