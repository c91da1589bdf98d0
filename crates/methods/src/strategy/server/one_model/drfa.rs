//! DRFA (Deng, Kamani & Mahdavi 2020): the model of the worst mixture, by few members in a round.

use serde::{Deserialize, Serialize};

use crate::learner::Training;
use crate::strategy::catalogue::{not_negative, require};
use crate::strategy::server::one_model::client_sampling::{Losses, Participants, Turnout};
use crate::strategy::server::one_model::minimax::Minimax;
use crate::strategy::{Strategy, StrategyError};
use crate::topology::Ascent;

/// Options of DRFA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Drfa {
    /// Draws of who trains, by λ and with replacement; 0, the default: half as many as there are
    /// members, rounded up.
    pub sample: usize,
    /// Whose losses move λ: `{ uniform = u }`, drawn evenly; by default as many as draws. Or
    /// `"all"`.
    pub losses: Losses,
    /// `γτ` ≥ 0, in one number: how far λ goes, in weight per unit of loss. Default 0.1.
    pub rate: f64,
    /// What the rate is multiplied by after every round, above 0 and at most 1. Default 1, as in
    /// the paper; published code has 0.9.
    pub decay: f64,
    /// Nobody's weight falls below this, from 0, the default, to 1; published code has 0.001.
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
    /// For a federation of so many members.
    pub(crate) fn build(
        &self,
        training: Training,
        members: usize,
    ) -> Result<Box<dyn Strategy>, StrategyError> {
        let holds = self.decay > 0.0 && self.decay <= 1.0;
        require(holds, "decay", "above 0 and at most 1", self.decay)?;
        Ok(Box::new(Minimax {
            name: "drfa",
            training,
            members,
            turnout: Turnout {
                participants: Participants::Sample(self.sample),
                replacement: true,
                losses: self.losses,
                refresh: 0,
            },
            ascent: plain_ascent(self.rate, self.lambda_floor)?,
            decay: self.decay,
            learning: None,
        }))
    }
}

/// A projected gradient step without a prior.
pub(crate) fn plain_ascent(rate: f64, floor: f64) -> Result<Ascent, StrategyError> {
    not_negative("rate", rate)?;
    let holds = (0.0..=1.0).contains(&floor);
    require(holds, "lambda-floor", "from 0 to 1", floor)?;
    Ok(Ascent {
        q: 0.0,
        rate,
        floor,
        ..Ascent::default()
    })
}
