//! DRFA (Deng, Kamani & Mahdavi 2020): one model for the worst mixture of members; members are drawn
//! by their weights.

use serde::{Deserialize, Serialize};

use crate::strategy::options::{MethodSetting, not_negative, require, share};
use crate::strategy::server::one_model::client_sampling::{ClientSampling, Losses, Participants};
use crate::strategy::server::one_model::minimax::Minimax;
use crate::strategy::{Strategy, StrategyError};
use crate::topology::Ascent;

/// Options of DRFA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Drfa {
    /// Number of draws, with probabilities λ and with replacement, of the members that train in a
    /// round; 0, the default: half the number of members, rounded up.
    #[schemars(extend("x-unit" = "draws"))]
    pub sample: usize,
    /// Members whose losses change λ. Default `{ uniform = 0 }`, as many as there are draws.
    pub losses: Losses,
    /// Step size of the members' weights λ (the paper's `γτ`, as one number), in weight per unit of
    /// loss. Default 0.1.
    #[schemars(range(min = 0))]
    pub rate: f64,
    /// Factor of the rate after every round. Default 1, as in the paper; published code has 0.9.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub decay: f64,
    /// Least weight of a member. Default 0; published code has 0.001.
    #[schemars(range(min = 0, max = 1))]
    pub lambda_floor: f64,
}

impl Default for Drfa {
    fn default() -> Self {
        Self {
            sample: 0,
            losses: Losses::Uniform(0),
            rate: 0.1,
            decay: 1.0,
            lambda_floor: 0.0,
        }
    }
}

impl Drfa {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let holds = self.decay > 0.0 && self.decay <= 1.0;
        require(holds, "decay", "above 0 and at most 1", self.decay)?;
        Ok(Box::new(Minimax {
            name: "drfa",
            training: setting.training,
            members: setting.members,
            sampling: ClientSampling {
                participants: Participants::Sample(self.sample),
                replacement: true,
                losses: self.losses,
                refresh: 0,
            },
            ascent: plain_ascent(self.rate, self.lambda_floor)?,
            decay: self.decay,
            learned_prior: None,
        }))
    }
}

/// A projected gradient step without a prior.
pub(crate) fn plain_ascent(rate: f64, floor: f64) -> Result<Ascent, StrategyError> {
    not_negative("rate", rate)?;
    share("lambda-floor", floor)?;
    Ok(Ascent {
        q: 0.0,
        rate,
        floor,
        ..Ascent::default()
    })
}
