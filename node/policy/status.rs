//! State of a ledger, for `rota status`, `rota check` and `rota ledger show`.

use ledger::LedgerContents;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::SourceLimits;

/// State of the ledger of the institution's source: of all federations together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct LedgerStatus {
    /// The name of the source.
    pub source: String,
    /// Privacy unit: `row`, or `person:` and a column.
    pub unit: String,
    /// Contributions.
    pub lines: u64,
    /// Of these, the ones without noise, which bound nothing.
    pub without_noise: u64,
    /// Of these, the ones that only other members know of: `rota ledger reconcile` added them.
    #[serde(default, skip_serializing_if = "none")]
    pub reconciled: u64,
    /// ε of all contributions so far, rounded up, or "no bound".
    pub epsilon: String,
    /// ε_alone of all contributions so far, rounded up, or "no bound".
    #[serde(rename = "epsilon_all_collude")]
    pub epsilon_alone: String,
    /// δ of both.
    pub delta: f64,
    /// Largest ε that the policy allows. Absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "max_epsilon")]
    pub most_epsilon: Option<f64>,
    /// Largest ε_alone that the policy allows. Absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "max_epsilon_all_collude")]
    pub most_epsilon_alone: Option<f64>,
}

/// Returns whether there are none.
fn none(count: &u64) -> bool {
    *count == 0
}

impl LedgerStatus {
    /// Of these contents.
    pub(crate) fn of(source: &SourceLimits, contents: &LedgerContents) -> Self {
        let limits = &source.limits;
        let bound = contents.bound(limits.delta);
        Self {
            source: contents.source.name.clone(),
            unit: contents.source.unit.to_string(),
            lines: contents.lines.len() as u64,
            without_noise: contents.without_noise() as u64,
            reconciled: contents.reconciled() as u64,
            epsilon: bound.epsilon().to_string(),
            epsilon_alone: bound.alone().to_string(),
            delta: limits.delta.value(),
            most_epsilon: limits.epsilon,
            most_epsilon_alone: limits.alone,
        }
    }

    /// One line of text.
    pub fn text(&self) -> String {
        let of = |limit: Option<f64>| limit.map_or(String::new(), |most| format!(" of {most}"));
        let without = match self.without_noise {
            0 => String::new(),
            some => format!(", {some} of them without noise"),
        };
        let reconciled = match self.reconciled {
            0 => String::new(),
            some => format!(", {some} of them known of other members alone"),
        };
        format!(
            "{} (unit {}): {}{without}{reconciled}; epsilon {}{}, epsilon_alone {}{} if all others collude, \
             delta {:e}",
            self.source,
            self.unit,
            formatting::numbers::plural(self.lines as usize, "contribution"),
            self.epsilon,
            of(self.most_epsilon),
            self.epsilon_alone,
            of(self.most_epsilon_alone),
            self.delta
        )
    }
}
