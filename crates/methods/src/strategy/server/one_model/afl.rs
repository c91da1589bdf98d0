//! Agnostic federated learning (Mohri, Sivek & Suresh 2019): the model of the worst mixture, by
//! everybody in every round.

use serde::{Deserialize, Serialize};

use crate::learner::Training;
use crate::strategy::server::one_model::client_sampling::Turnout;
use crate::strategy::server::one_model::drfa::plain_ascent;
use crate::strategy::server::one_model::minimax::Minimax;
use crate::strategy::{Strategy, StrategyError};

/// Options of AFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Afl {
    /// `γ_λ` ≥ 0: how far λ goes, in weight per unit of loss. Default 0.1, a guess.
    pub rate: f64,
    /// Nobody's weight falls below this, from 0, the default, to 1.
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
    /// For a federation of so many members.
    pub(crate) fn build(
        &self,
        training: Training,
        members: usize,
    ) -> Result<Box<dyn Strategy>, StrategyError> {
        Ok(Box::new(Minimax {
            name: "afl",
            training,
            members,
            turnout: Turnout::everybody(),
            ascent: plain_ascent(self.rate, self.lambda_floor)?,
            decay: 1.0,
            learning: None,
        }))
    }
}
