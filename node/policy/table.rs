//! The table `[policy]` of `node.toml` as it is written.

use std::path::PathBuf;

use agreement::{Mode, Routine};
use questions::disclosure::AnswerRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hours::Hours;

/// The ledger of an institution, or that it has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum LedgerKey {
    /// Its file.
    File(PathBuf),
    /// `false`: rounds with noise are not counted.
    Counts(bool),
}

/// Limits of the institution for its own node, below the agreement, which cannot override them. A node whose policy
/// refuses votes as before, and contributes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PolicyTable {
    /// Kinds of changes of the agreement that the institution follows without signing the new one:
    /// `"rounds"` (fewer, or more where they have no noise), `"addresses"`, `"training-epochs"` (of the training in a
    /// round), `"members"` (that come or go, if f, the number of faulty members that is tolerated, does not fall;
    /// where contributions are masked, that go). By default these four. `"questions"` are those that members ask:
    /// the node answers them as far as `questions` allows. What weakens the agreement, or spends more
    /// of its bound, is none of them. After any other change the node contributes nothing until the institution
    /// has signed.
    #[serde(default = "every_routine")]
    #[serde(rename = "auto-approve")]
    pub(crate) approve: Vec<Routine>,
    /// Modes of privacy under which the node takes part: `"clear"`, `"secure-aggregation"`, `"differential-privacy"`. By default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "allowed-modes")]
    pub(crate) modes: Option<Vec<Mode>>,
    /// Names of strategies under which the node takes part, as `rota strategies` lists them. By default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "allowed-strategies")]
    pub(crate) strategies: Option<Vec<String>>,
    /// The other institutions with which the node takes part, by their public keys. By default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "allowed-peers")]
    pub(crate) peers: Option<Vec<String>>,
    /// Fewest training rows of this institution with which the node takes part, by default 20 where there is
    /// a table `[policy]`. Who sees that it refuses learns that there are fewer. With noise the rows that it has
    /// declared count, and `rota check` says where it has fewer.
    #[serde(default = "fewest_rows")]
    #[serde(rename = "min-rows")]
    pub(crate) fewest_rows: u64,
    /// In secure-aggregation rounds, the fewest authors of a sum, by default 3.
    #[serde(default = "smallest_sum")]
    #[serde(rename = "min-sum-size")]
    pub(crate) smallest_sum: u16,
    /// Members that may collude without learning this institution's model: the agreement has to
    /// withstand as many. Refuses rounds in clear. By default any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) colluders: Option<u16>,
    /// The file of the ledger of the source of the rows, outside of the state folder. Every contribution has a
    /// line in it. `rota federation join`, `sign` and `rota ledger new` make it. `false`: there is none, and
    /// rounds with noise are not counted, which every page of this node says. By default there is none, and the
    /// node contributes to no round with noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ledger: Option<LedgerKey>,
    /// With `ledger`: largest ε of all contributions from the source together, in all federations: one row or
    /// person more or less changes the probability of whatever was opened by a factor of at most e^ε, except
    /// for `delta`, as long as no more members collude than each agreement's `colluders`; `epsilon-all-collude`
    /// limits what holds if all do. Refuses rounds without noise. By default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) epsilon: Option<f64>,
    /// With `ledger`: largest ε_alone of all contributions from the source together: the bound that is left
    /// where all other institutions collude. It is larger than ε (`epsilon`). Refuses rounds
    /// without noise. By default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[serde(rename = "epsilon-all-collude")]
    pub(crate) epsilon_alone: Option<f64>,
    /// With `ledger`: δ, about the probability with which ε and ε_alone may be exceeded, by default 1e-5. It
    /// should be far below one part in the number of rows or persons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-30, max = 0.1))]
    pub(crate) delta: Option<f64>,
    /// Columns of which nothing may leave, by their agreed names or those in the files: the node takes part in
    /// no federation whose task reads one. By default none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "forbidden-columns")]
    pub(crate) never_leave: Vec<String>,
    /// Most bytes of a model that the node sends in a round. By default any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "max-bytes-per-round")]
    pub(crate) bytes_a_round: Option<u64>,
    /// Times of the day in UTC at which the node begins to train for a round, such as "22:00-06:00". By default any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "training-hours-utc")]
    pub(crate) hours: Vec<Hours>,
    /// Limits of the questions of the agreement: `kinds`, `forbidden-columns`, `cuts` of filters, `smallest-cell`,
    /// `largest-share` and `unknowns-per-number`, which holds for a strategy that opens sums of statistics, too. The
    /// institution answers those that it has approved, or all where `approve` has `"questions"`. By default every kind
    /// and column, with cells of at least 5 rows.
    #[serde(default, skip_serializing_if = "crate::policy::is_default")]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub(crate) questions: AnswerRules,
}

fn every_routine() -> Vec<Routine> {
    Routine::ALL.to_vec()
}

fn fewest_rows() -> u64 {
    20
}

fn smallest_sum() -> u16 {
    3
}

/// Of a file without the table: nothing is refused.
impl Default for PolicyTable {
    fn default() -> Self {
        Self {
            approve: every_routine(),
            modes: None,
            strategies: None,
            peers: None,
            fewest_rows: 0,
            smallest_sum: 0,
            colluders: None,
            ledger: None,
            epsilon: None,
            epsilon_alone: None,
            delta: None,
            never_leave: Vec::new(),
            bytes_a_round: None,
            hours: Vec::new(),
            questions: AnswerRules::default(),
        }
    }
}
