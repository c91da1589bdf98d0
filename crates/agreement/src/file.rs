//! `federation.toml` as it is written: the tables and keys of the file.

use std::collections::BTreeMap;

use methods::strategy::StrategyConfig;
use protocol::parameters::{Privacy, RoundMode};
use questions::QuestionMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use task::TaskConfig;

use crate::question::AgreedQuestion;
use crate::rotation::RotationName;
use crate::serving::ServingTable;
use crate::span::Span;
use crate::verification::VerificationName;

/// The agreement of a federation. Every member has the same file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FederationFile {
    /// Format of this file and of the members' messages. An amendment may raise it, once the programs
    /// of all members speak the new one.
    #[serde(default = "first")]
    #[schemars(range(min = 1, max = 3))]
    pub(crate) format: u32,
    /// Human-readable name of the federation.
    pub(crate) name: String,
    /// Number of rounds to learn, a first round that agrees on a common scale included.
    #[schemars(range(min = 1))]
    pub(crate) rounds: u64,
    /// Seed of the initial model.
    #[serde(default)]
    pub(crate) seed: u64,
    /// Hash of the state that the first round starts from, as 64 hexadecimal digits. It follows
    /// from `task`, `strategy`, `seed` and `continues`; a node refuses to start when it computes another one.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub(crate) start: String,
    /// The model of an earlier federation that the first round starts from, instead of the initial
    /// model. `rota federation continue` writes this table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<ContinuesTable>,
    /// Rules of the rounds: times, minimum numbers, sizes.
    pub(crate) protocol: ProtocolTable,
    /// Visibility of contributions to other members. Without it: every model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) privacy: Option<PrivacyTable>,
    /// The learning task: data and model.
    pub(crate) task: TaskConfig,
    /// The strategy and its options.
    pub(crate) strategy: StrategyConfig,
    /// Questions about the rows of all members, one table `[[question]]` for each, answered in this order in
    /// rounds before those that learn: `reason`, and the keys of a question as in the file of `rota ask`, but for
    /// `sites` and `mode`. `rota federation ask` adds one. An amendment may add more behind those that there are;
    /// `rounds` holds the most rounds that each takes, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub(crate) question: Vec<AgreedQuestion>,
    /// Choice of the model that each member serves in the end. Without it, every member decides alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) serving: Option<ServingTable>,
    /// The members, one table `[[member]]` for each, in the order of the roster. `rota federation add`
    /// adds one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "member")]
    pub(crate) silo: Vec<SiloTable>,
}

/// The format of a file without the key. It stays the same for ever, because ids depend on it.
pub(crate) fn first() -> u32 {
    1
}

/// The model of an earlier federation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ContinuesTable {
    /// Human-readable name of the earlier federation.
    pub(crate) name: String,
    /// Its id, as 64 hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub(crate) federation: String,
    /// The round after which the model was adopted.
    #[schemars(range(min = 1))]
    pub(crate) round: u64,
    /// Hash of the final block of that round, as 64 hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub(crate) block: String,
    /// Hash of the model's tensors, as 64 hexadecimal digits. Every member needs the file; its node
    /// finds `start.safetensors` beside the agreement, or by `start-model` in node.toml.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub(crate) model: String,
    /// Visibility of contributions to members of the earlier federation, as in `[privacy]`. Without it: every
    /// model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// The groups whose models were added up without noise before, as in `[privacy]`: who is in one is added up
    /// with the same others, or with nobody. Without any: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) group: Vec<BTreeMap<String, u64>>,
}

/// Rules of the rounds: times, minimum numbers, sizes.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProtocolTable {
    /// The unit of all timers: how long a message may take between members on a bad day. Between
    /// 10 ms and 10 minutes, in whole milliseconds.
    pub(crate) heartbeat: Span,
    /// Number of heartbeats that a round waits for a slow member before it continues without it.
    #[schemars(range(min = 1), extend("x-unit" = "heartbeats"))]
    #[serde(rename = "straggler-timeout")]
    pub(crate) patience: u32,
    /// Number of heartbeats after which the members replace a lead whose block is not final. At least
    /// twice the patience and half a heartbeat for each of f + 4 phases. Without it: twice the patience,
    /// and one heartbeat for each of f + 4 phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4), extend("x-unit" = "heartbeats"))]
    pub(crate) view_timeout: Option<u32>,
    /// Fewest contributions that a round may have: at least 2f + 1, at most the number of members.
    /// Without it: 2f + 1, or more than half of the members where that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-unit" = "contributions"))]
    pub(crate) min_contributions: Option<u16>,
    /// Number of final rounds whose models a member keeps for others to fetch.
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub(crate) keep_rounds: u32,
    /// Largest size of a contribution, in bytes.
    #[schemars(range(min = 1), extend("x-unit" = "bytes"))]
    pub(crate) blob_limit: u64,
    /// True if members on one local network find each other by multicast DNS, which makes them
    /// visible to every machine on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) discovery: bool,
    /// Largest ℓ2 norm of a contributed model, over weights and biases; without it, any finite model
    /// is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) max_model_norm: Option<f64>,
    /// Largest share of the sum of weights that one contribution may have; larger weights are lowered
    /// to it before models are averaged. Without it, any share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub(crate) max_weight: Option<f64>,
    /// Rule for the lead of each round.
    #[serde(default)]
    pub(crate) rotation: RotationName,
    /// Checks that a member makes before it votes.
    #[serde(default)]
    pub(crate) verification: VerificationName,
    /// Names of authors on the contributions that members evaluate. A strategy that keeps state for each
    /// member needs "shown".
    pub(crate) names: EntryNames,
    /// Audience of a node's status: the round that it is in, its current activity, its connections, its
    /// version, and the room on its disk. Without it, only the institution that runs the node.
    #[serde(default, skip_serializing_if = "StatusFor::is_own")]
    pub(crate) status: StatusFor,
}

/// Names of authors on contributions.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EntryNames {
    /// Only the lead of a round knows who contributed what.
    Removed,
    /// Every member knows who contributed what.
    Shown,
}

/// Audience of a node's status, which has nothing of data and models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusFor {
    /// Only the institution that runs it.
    #[default]
    Own,
    /// Every member, on one page and screen for all nodes.
    Members,
}

impl StatusFor {
    pub(crate) fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// One member.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SiloTable {
    /// Name of the institution, different from all others.
    pub(crate) name: String,
    /// Its public key, as 64 hexadecimal digits: what `rota identity show` prints.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub(crate) key: String,
    /// Most training rows that its contributions may claim, which are their weight where models are
    /// averaged by rows. Part of the federation's id. Without it, any number up to 2^53.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(crate) rows: Option<u64>,
    /// Addresses at which the others reach its node, such as "/dns/rota.example.org/udp/4001/quic-v1".
    /// They may change, so they are not part of the federation's id. None by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<String>,
}

/// Visibility of contributions to other members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrivacyTable {
    /// Visible values: every contributed model, only sums of groups, or only sums with noise.
    pub(crate) mode: Mode,
    /// Members of a federation with secure aggregation that may collude, leads among them, and still learn
    /// nothing but the sums; with noise `epsilon` holds as long as no more do. At least 1, at most 2q − n − 1.
    /// Without it: f, or 1 where f is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-unit" = "members"))]
    pub(crate) colluders: Option<u16>,
    /// Fewest institutions of a group. A group needs at least two more than `colluders`, too. Without it: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3), extend("x-unit" = "members"))]
    #[serde(rename = "min-sum-size")]
    pub(crate) smallest_sum: Option<u16>,
    /// The groups whose models are added up, a table `[[privacy.group]]` for each: names of members with
    /// their weights in the sum, whole numbers of which none is above half of all. A group takes part in a
    /// round only if all of its members are ready. Without any: one group of all members with equal weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) group: Vec<BTreeMap<String, u64>>,
    /// Institutions whose updates become visible because an amendment changes the groups: the difference of a
    /// sum before and one after tells them. Every institution of the groups that change has to approve such an
    /// amendment, also one that leaves. Without it: none, and groups stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) shows: Vec<String>,
    /// Fewest institutions of a differentially private sum: more than `colluders`, at most `min-contributions`. The fewer, the
    /// more noise each has to add. Without it: `min-contributions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2), extend("x-unit" = "members"))]
    #[serde(rename = "min-authors")]
    pub(crate) fewest_authors: Option<u16>,
    /// Summands of differentially private sums. Without it: `"gradients"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "mechanism")]
    pub(crate) release: Option<ReleaseName>,
    /// Whose presence the noise hides: `"row"`, or `{ person = "COLUMN" }` for a person with all rows that
    /// name this person in that column. Without it: `"row"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "privacy-unit")]
    pub(crate) unit: Option<UnitName>,
    /// Norm to which the gradient of every unit is clipped before the noise, with `mechanism = "gradients"`. Without
    /// it: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[serde(rename = "clipping-norm")]
    pub(crate) clip: Option<f64>,
    /// With `mechanism = "sufficient-statistics"`: the norm R to which every row is shortened, together with a 1 for the intercept,
    /// which stays. Above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1e20), extend("exclusiveMinimum" = 1))]
    #[serde(rename = "max-row-norm")]
    pub(crate) rows_norm: Option<f64>,
    /// With `mechanism = "sufficient-statistics"` and a linear model: the size Y that no target exceeds; one that does is brought to
    /// it. With the logistic model it is 2, because the classes count as targets of −2 and 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-20, max = 1e20))]
    #[serde(rename = "max-target")]
    pub(crate) targets_within: Option<f64>,
    /// With `mechanism = "sufficient-statistics"`: the ridge, which pulls all weights and the intercept towards 0, so that noise does
    /// not decide the model where rows say little. It is added to the eigenvalues of the mean of x·xᵀ. Without
    /// it: as large as the eigenvalues that the noise makes, by agreed numbers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-100, max = 1e100))]
    pub(crate) ridge: Option<f64>,
    /// Standard deviation of the noise of one sum, in largest changes of it by one unit. `epsilon` may say it
    /// instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0078125, max = 1048575))]
    #[serde(rename = "noise-multiplier")]
    pub(crate) z: Option<f64>,
    /// Bound that all rounds together keep to: one unit more or less changes the probability of whatever was
    /// opened by a factor of at most e^epsilon, except for `delta`. The noise follows from it and from `rounds`,
    /// and an agreement in force says `noise-multiplier`. In an agreement that replaces another one it is what is left: a bound
    /// for the rounds still to come, to which pages and ledgers add what was told before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1000))]
    pub(crate) epsilon: Option<f64>,
    /// Probability with which `epsilon` may be exceeded. Above 1 / (10 · rows), with the rows that all members
    /// declare together, there is a warning; above 1 / rows nobody signs or approves the agreement. Without it:
    /// 0.00001.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-30, max = 0.1))]
    pub(crate) delta: Option<f64>,
}

/// Summands of differentially private sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReleaseName {
    /// In every round one gradient of all rows.
    #[serde(rename = "gradients")]
    Steps,
    /// In the only round sums of products of the columns, from which a linear or logistic model is solved.
    #[serde(rename = "sufficient-statistics")]
    Once,
}

/// Whose presence the noise hides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UnitName {
    /// One row.
    Row,
    /// A person with all rows that name this person in this column.
    Person(String),
}

/// Values that are opened in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every contributed model.
    Clear,
    /// Sums of the groups, and no single model.
    #[serde(rename = "secure-aggregation")]
    Masked,
    /// Sums of all ready members, to which each has added noise.
    #[serde(rename = "differential-privacy")]
    MaskedNoised,
}

impl Mode {
    /// That of an agreement on privacy.
    pub fn of(privacy: &Privacy) -> Self {
        match privacy.mode() {
            RoundMode::Clear | RoundMode::Named => Self::Clear,
            RoundMode::Masked(_) => Self::Masked,
            RoundMode::Noised(..) => Self::MaskedNoised,
        }
    }

    /// The mode of questions in such a federation.
    pub fn of_questions(self) -> QuestionMode {
        match self {
            Self::Clear => QuestionMode::Clear,
            Self::Masked => QuestionMode::Masked,
            Self::MaskedNoised => QuestionMode::Noised,
        }
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Masked => "secure-aggregation",
            Self::MaskedNoised => "differential-privacy",
        }
    }
}
