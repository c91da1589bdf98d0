//! IFCA (Ghosh et al. 2020): every silo trains the model that does best on its own data.

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering::ifca::ifca;
use crate::learner::{LearnError, Split};
use crate::params::Params;
use crate::strategy::options::MethodSetting;
use crate::strategy::server::groups::multi_model::{
    InitialModels, ModelChoice, MultiModel, MultiModelOptions,
};
use crate::strategy::server::means::kept;
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{DecideError, LoadedManifest, Participant, State, Strategy, StrategyError};

/// Options of IFCA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ifca {
    /// Number of models. Default 2, a guess.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "models"))]
    pub models: usize,
    /// Weight of a silo's model in the mean of the model that it chose. Default equal, as in the
    /// authors' code.
    pub weight: WeightRule,
    /// The models that silos choose among in the first round. Default different random ones.
    pub start: InitialModels,
}

impl Default for Ifca {
    fn default() -> Self {
        Self {
            models: 2,
            weight: WeightRule::Equal,
            start: InitialModels::Random,
        }
    }
}

impl Ifca {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let models = MultiModelOptions {
            count: self.models,
            weight: self.weight,
            start: self.start,
        };
        MultiModel::build("ifca", setting, models, BestModel)
    }
}

/// Losses of every model on the silo's training rows, in one row.
pub(crate) fn losses(state: &State, participant: Participant<'_>) -> Result<Matrix, LearnError> {
    let mut losses = Matrix::zeros(1, state.models.len());
    for (loss, model) in losses.values_mut().iter_mut().zip(&state.models) {
        let metrics = participant
            .learner
            .evaluate(model, participant.personal, Split::Train)?;
        // One model that cannot be used must not keep the others from being chosen.
        let value = metrics.get("loss")?;
        *loss = if value.is_finite() { value } else { f64::MAX };
    }
    Ok(losses)
}

/// No model can be chosen by such losses.
pub(crate) fn unusable(error: impl ToString) -> LearnError {
    LearnError::Failed(format!("no model can be chosen: {}", error.to_string()))
}

struct BestModel;

impl ModelChoice for BestModel {
    fn start(
        &self,
        state: &State,
        participant: Participant<'_>,
    ) -> Result<(Params, u32), LearnError> {
        let best = ifca(&losses(state, participant)?).map_err(unusable)?[0];
        Ok((state.models[best as usize].clone(), best))
    }

    fn assign(&self, state: &State, manifest: &LoadedManifest) -> Result<Vec<u32>, DecideError> {
        kept(state, manifest)
    }
}
