//! `[charter]` of a scenario: the rules of the rounds, with defaults.

use std::time::Duration;

use agreement::Span;
use methods::robust::Radius;
use serde::Deserialize;

/// Rules of the rounds: times, minimum numbers, bounds.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CharterConfig {
    /// The unit of all timers: how long a message may take between members on a bad day. Between
    /// 10 ms and 10 minutes, in whole milliseconds.
    pub beat: Span,
    /// Number of beats that a round waits for a slow member before it goes on without it.
    #[schemars(range(min = 1), extend("x-unit" = "beats"))]
    pub patience: u32,
    /// Number of beats after which the members replace a lead whose round is not final. Without
    /// it: twice the patience, and one beat for each of f + 4 phases, where f is the number of
    /// Byzantine members that a federation of this size tolerates.
    #[schemars(range(min = 4), extend("x-unit" = "beats"))]
    pub limit: Option<u32>,
    /// Fewest contributions that a round may have. Without it: 2f + 1, or more than half of the
    /// members where that is more.
    #[schemars(range(min = 1), extend("x-unit" = "contributions"))]
    pub minimum: Option<u16>,
    /// Number of final rounds whose models a member keeps for others to fetch.
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub keep: u32,
    /// Largest Euclidean norm of a contribution; without it, any finite one is accepted.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub norm: Option<f64>,
    /// Every silo's robustness radius, in standardised units: a number, or a rule that chooses one.
    pub radius: Radius,
}

impl Default for CharterConfig {
    /// Beats of five seconds, as for institutions on slow lines; the rest are guesses.
    fn default() -> Self {
        Self {
            beat: Span(Duration::from_secs(5)),
            patience: 12,
            limit: None,
            minimum: None,
            keep: 3,
            norm: None,
            radius: Radius::default(),
        }
    }
}

impl CharterConfig {
    /// Beats after which a view ends, among `n` members.
    pub fn limit_for(&self, n: usize) -> u32 {
        let f = n.saturating_sub(1) as u32 / 3;
        self.limit.unwrap_or(2 * self.patience + f + 4)
    }

    /// Fewest contributions of a round, among `n` members.
    pub fn minimum_for(&self, n: usize) -> u16 {
        let f = n.saturating_sub(1) / 3;
        self.minimum
            .unwrap_or((2 * f + 1).max(n / 2 + 1).min(n) as u16)
    }
}
