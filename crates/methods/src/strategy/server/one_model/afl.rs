//! Agnostic federated learning (Mohri, Sivek & Suresh 2019): one model for the worst mixture of
//! members; all members train in every round.

use serde::{Deserialize, Serialize};

use crate::strategy::options::MethodSetting;
use crate::strategy::server::one_model::client_sampling::ClientSampling;
use crate::strategy::server::one_model::drfa::plain_ascent;
use crate::strategy::server::one_model::minimax::Minimax;
use crate::strategy::{Strategy, StrategyError};

/// Options of AFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Afl {
    /// Step size γ_λ of the members' weights λ, in weight per unit of loss. Default 0.1, a guess.
    #[schemars(range(min = 0))]
    pub rate: f64,
    /// Least weight of a member. Default 0.
    #[schemars(range(min = 0, max = 1))]
    pub lambda_floor: f64,
}

impl Default for Afl {
    fn default() -> Self {
        Self {
            rate: 0.1,
            lambda_floor: 0.0,
        }
    }
}

impl Afl {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        Ok(Box::new(Minimax {
            name: "afl",
            training: setting.training,
            members: setting.members,
            sampling: ClientSampling::all_members(),
            ascent: plain_ascent(self.rate, self.lambda_floor)?,
            decay: 1.0,
            learned_prior: None,
        }))
    }
}
