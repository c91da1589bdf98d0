//! `[protocol]` of a scenario: the rules of the rounds, with defaults.

use std::time::Duration;

use methods::robust::Radius;
use serde::Deserialize;

use crate::agreement::{LINE_MBIT, default_min_contributions, default_view_timeout, models_take};
use crate::rotation::RotationName;
use crate::span::Span;
use crate::verification::VerificationName;

/// Patience in heartbeats of a scenario that does not say it, where its models are small.
const PATIENCE: u32 = 12;

/// Rules of the rounds: times, minimum numbers, bounds.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ProtocolConfig {
    /// The unit of all timers: how long a message may take between members on a bad day. Between
    /// 10 ms and 10 minutes, in whole milliseconds.
    pub heartbeat: Span,
    /// Number of heartbeats that a round waits for a slow member before it continues without it. Without it:
    /// 12, or as many as the models of all other members take over the simulated links, if that is
    /// longer.
    #[schemars(range(min = 1), extend("x-unit" = "heartbeats"))]
    #[serde(rename = "straggler-timeout")]
    pub patience: Option<u32>,
    /// Number of heartbeats after which the members replace a lead whose block is not final. Without
    /// it: twice the patience, and one heartbeat for each of f + 4 phases, where f is the number of
    /// Byzantine members that a federation of this size tolerates.
    #[schemars(range(min = 4), extend("x-unit" = "heartbeats"))]
    pub view_timeout: Option<u32>,
    /// Fewest contributions that a round may have. Without it: 2f + 1, or more than half of the
    /// members where that is more.
    #[schemars(range(min = 1), extend("x-unit" = "contributions"))]
    pub min_contributions: Option<u16>,
    /// Number of final rounds whose models a member keeps for others to fetch.
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub keep_rounds: u32,
    /// Largest ℓ2 norm of a contributed model, over weights and biases; without it, any finite model
    /// is accepted.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_model_norm: Option<f64>,
    /// Largest share of the sum of weights that one contribution may have; larger weights are lowered
    /// to it before models are averaged. Without it, any share.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub max_weight: Option<f64>,
    /// True if every silo declares its training rows in the agreement, and may claim no more than
    /// that, as the members of a federation should (`rows` of `[[member]]` in federation.toml).
    pub rows_declared: bool,
    /// Who leads when.
    pub rotation: RotationName,
    /// Who checks a round before it counts.
    pub verification: VerificationName,
    /// Every silo's robustness radius, in standardised units: a number, or a rule that chooses one.
    pub radius: Radius,
}

impl Default for ProtocolConfig {
    /// Beats of five seconds, as for institutions on slow lines; the rest are guesses.
    fn default() -> Self {
        Self {
            heartbeat: Span(Duration::from_secs(5)),
            patience: None,
            view_timeout: None,
            min_contributions: None,
            keep_rounds: 3,
            max_model_norm: None,
            max_weight: None,
            rows_declared: false,
            rotation: RotationName::default(),
            verification: VerificationName::default(),
            radius: Radius::default(),
        }
    }
}

impl ProtocolConfig {
    /// Patience in heartbeats, where models are small.
    pub fn usual_patience(&self) -> u32 {
        self.patience.unwrap_or(PATIENCE)
    }

    /// Patience in heartbeats, in a federation of `n` members whose models have up to `bytes` bytes, over
    /// links of this bandwidth. A member fetches the models of all others before it signs for a round,
    /// so a shorter patience leaves out members that did nothing wrong.
    pub fn patience_for(&self, n: usize, bytes: u64, bandwidth_mbit: f64) -> u32 {
        self.patience.unwrap_or_else(|| {
            // What a member sends to one other delays what it sends to the next.
            let line = LINE_MBIT.min(bandwidth_mbit / 2.0);
            let heartbeats =
                models_take(bytes, n, line).as_secs_f64() / self.heartbeat.0.as_secs_f64();
            PATIENCE.max(heartbeats.ceil() as u32)
        })
    }

    /// Beats after which the members replace a lead, in a federation of `n` members with this patience.
    pub fn view_timeout_for(&self, n: usize, patience: u32) -> u32 {
        self.view_timeout
            .unwrap_or(default_view_timeout(patience, n))
    }

    /// Fewest contributions that a round may have, in a federation of `n` members.
    pub fn min_contributions_for(&self, n: usize) -> u16 {
        self.min_contributions
            .unwrap_or(default_min_contributions(n))
    }
}
