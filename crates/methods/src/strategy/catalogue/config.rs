//! A strategy and its options, as a charter writes them.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::aggregation::{Aggregation, AggregationError};
use crate::learner::Training;
use crate::strategy::catalogue::{STRATEGIES, build};
use crate::strategy::{
    Afl, Cfl, Ditto, Drfa, FedCg, FedCollab, FedFa, FedOpt, FedProx, FedRep, FedSr, Fesem, Flsc,
    Hcct, HcctE, Ifca, MaxFl, PFedGraph, RobustLocal, Scaffold, Superquantile, Tfl, WeightRule,
};

/// A strategy and its options, as in a charter: one table with the name, the options of that
/// method, and the options that go with every method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyConfig {
    /// The method, by `name`, and its own options.
    #[serde(flatten)]
    pub method: Method,
    /// Whether a common scale is agreed on in a round of its own first.
    pub standardise: bool,
    /// Tensors and layers that stay with each silo, by name; or [`LAST_LAYER`](crate::strategy::LAST_LAYER),
    /// [`NORM_LAYERS`](crate::strategy::NORM_LAYERS), [`INTERCEPT`](crate::strategy::INTERCEPT).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub personal: Vec<String>,
    /// What takes the place of the mean wherever models of a coalition become one:
    /// `{ name = "coordinate-median" }` and others, see [`Aggregation`]. In a coalition too small
    /// for what the rule counts on it is the coordinate median. Robust rules want equal weights.
    #[serde(skip_serializing_if = "is_mean")]
    pub aggregation: Aggregation,
    /// Local training of a round.
    pub training: Training,
}

fn is_mean(rule: &Aggregation) -> bool {
    *rule == Aggregation::Mean
}

/// The options that go with every method, and whether they must be given.
const COMMON: [&str; 4] = ["training", "standardise", "personal", "aggregation"];

/// A method and its own options; all have defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// [`FedAvg`](crate::strategy::server::one_model::fedavg::FedAvg).
    #[serde(rename = "fedavg")]
    FedAvg {
        /// How models weigh.
        #[serde(default)]
        weight: WeightRule,
    },
    /// [`Local`](crate::strategy::server::groups::local::Local).
    Local {},
    /// [`CsRcfl`](crate::strategy::server::groups::cs_rcfl::CsRcfl).
    CsRcfl {
        /// Number of coalitions, from 1 to the number of members, or `"auto"`, which takes two
        /// rounds to form them. Default 2, a guess.
        #[serde(default)]
        coalitions: Coalitions,
        /// How often coalitions are formed anew before they are kept. Default 1; 0 never keeps
        /// them.
        #[serde(default = "one")]
        freeze: u64,
        /// Folds of cross-fitting with `"auto"`, at least 2. Default 5.
        #[serde(default = "five")]
        folds: usize,
    },
    /// FedAvg with a proximal term.
    #[serde(rename = "fedprox")]
    FedProx(FedProx),
    /// Adam over the mean changes of the rounds.
    #[serde(rename = "fedadam")]
    FedAdam(FedOpt),
    /// Yogi over the mean changes of the rounds.
    #[serde(rename = "fedyogi")]
    FedYogi(FedOpt),
    /// Adagrad over the mean changes of the rounds.
    #[serde(rename = "fedadagrad")]
    FedAdagrad(FedOpt),
    /// Control variates.
    Scaffold(Scaffold),
    /// FedAvg of all but the last layer.
    #[serde(rename = "fedper")]
    FedPer {
        /// How models weigh.
        #[serde(default)]
        weight: WeightRule,
    },
    /// The same, head and body trained in turn.
    #[serde(rename = "fedrep")]
    FedRep(FedRep),
    /// FedAvg of all but the normalisation layers.
    #[serde(rename = "fedbn")]
    FedBn {
        /// How models weigh.
        #[serde(default)]
        weight: WeightRule,
    },
    /// FedAvg, and a model of one's own near the common one.
    Ditto(Ditto),
    /// Groups by the direction of training.
    Hcct(Hcct),
    /// The same, compared by the layer that differs most.
    HcctE(HcctE),
    /// HCCT of all but the last layer.
    HcctP(Hcct),
    /// Everybody alone, with a robust fit.
    RobustLocal(RobustLocal),
    /// The model of the worst mixture, near a prior from the topology of members.
    Tfl(Tfl),
    /// The model of the worst mixture, by few members in a round.
    Drfa(Drfa),
    /// The model of the worst mixture, by everybody.
    Afl(Afl),
    /// FedAvg's model moved towards those who could do without it.
    #[serde(rename = "maxfl")]
    MaxFl(MaxFl),
    /// FedAvg with more weight for those on whose data the model is poor.
    #[serde(rename = "fedfa")]
    FedFa(FedFa),
    /// FedAvg of those with the largest losses.
    Superquantile(Superquantile),
    /// Several models, chosen by loss.
    Ifca(Ifca),
    /// The same, several of them chosen by everybody.
    Flsc(Flsc),
    /// Several models, chosen by distance.
    Fesem(Fesem),
    /// Clusters that are split in two.
    Cfl(Cfl),
    /// Coalitions by amount and likeness of data.
    #[serde(rename = "fedcollab")]
    FedCollab(FedCollab),
    /// A model for every silo, from those of the like.
    #[serde(rename = "pfedgraph")]
    PFedGraph(PFedGraph),
    /// One model with branches for domains, which learn from their neighbours.
    #[serde(rename = "fedcg")]
    FedCg(FedCg),
    /// FedAvg of representations that are distributions.
    #[serde(rename = "fedsr")]
    FedSr(FedSr),
}

/// How many coalitions there are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "a number of coalitions, or \"auto\"")]
pub enum Coalitions {
    /// So many, at least 1.
    Number(usize),
    /// As many as do best on rows that did not form them.
    Found(Auto),
}

/// The word for [`Coalitions::Found`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// `"auto"`.
    Auto,
}

impl Coalitions {
    /// `"auto"`.
    pub const AUTO: Self = Self::Found(Auto::Auto);
}

impl Default for Coalitions {
    fn default() -> Self {
        Self::Number(2)
    }
}

impl From<usize> for Coalitions {
    fn from(number: usize) -> Self {
        Self::Number(number)
    }
}

fn one() -> u64 {
    1
}

fn five() -> usize {
    5
}

/// Why a configuration is not a strategy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StrategyError {
    /// No strategy of that name.
    #[error("there is no strategy {0:?}; there are {list}", list = names())]
    Unknown(String),
    /// A number out of its range.
    #[error("strategy option {option} must be {allowed}, not {got}")]
    Option {
        /// The option, as written in a file.
        option: &'static str,
        /// What it may be.
        allowed: &'static str,
        /// What it is.
        got: String,
    },
    /// An option of the rule that combines models.
    #[error("strategy option aggregation: {0}")]
    Aggregation(#[from] AggregationError),
    /// More coalitions than members.
    #[error(
        "{coalitions} coalitions of {members} members cannot be formed: ask for at most {members}"
    )]
    TooManyCoalitions {
        /// Coalitions asked for.
        coalitions: usize,
        /// Members at hand.
        members: usize,
    },
}

fn names() -> String {
    let names: Vec<_> = STRATEGIES.iter().map(|strategy| strategy.name).collect();
    names.join(", ")
}

impl Method {
    /// The method of that name, with defaults for its options.
    ///
    /// # Errors
    /// [`StrategyError::Unknown`].
    pub fn named(name: &str) -> Result<Self, StrategyError> {
        let only_name = serde_json::json!({ "name": name });
        Self::deserialize(only_name).map_err(|_| StrategyError::Unknown(name.into()))
    }

    /// Its name, as in [`STRATEGIES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::FedAvg { .. } => "fedavg",
            Self::Local {} => "local",
            Self::CsRcfl { .. } => "cs-rcfl",
            Self::FedProx(_) => "fedprox",
            Self::FedAdam(_) => "fedadam",
            Self::FedYogi(_) => "fedyogi",
            Self::FedAdagrad(_) => "fedadagrad",
            Self::Scaffold(_) => "scaffold",
            Self::FedPer { .. } => "fedper",
            Self::FedRep(_) => "fedrep",
            Self::FedBn { .. } => "fedbn",
            Self::Ditto(_) => "ditto",
            Self::Hcct(_) => "hcct",
            Self::HcctE(_) => "hcct-e",
            Self::HcctP(_) => "hcct-p",
            Self::RobustLocal(_) => "robust-local",
            Self::Tfl(_) => "tfl",
            Self::Drfa(_) => "drfa",
            Self::Afl(_) => "afl",
            Self::MaxFl(_) => "maxfl",
            Self::FedFa(_) => "fedfa",
            Self::Superquantile(_) => "superquantile",
            Self::Ifca(_) => "ifca",
            Self::Flsc(_) => "flsc",
            Self::Fesem(_) => "fesem",
            Self::Cfl(_) => "cfl",
            Self::FedCollab(_) => "fedcollab",
            Self::PFedGraph(_) => "pfedgraph",
            Self::FedCg(_) => "fedcg",
            Self::FedSr(_) => "fedsr",
        }
    }
}

impl StrategyConfig {
    /// A method with this local training, on every silo's own scale, nothing personal.
    pub fn new(method: Method, training: Training) -> Self {
        Self {
            method,
            training,
            standardise: false,
            personal: Vec::new(),
            aggregation: Aggregation::Mean,
        }
    }

    /// Its name, as in [`STRATEGIES`].
    pub fn name(&self) -> &'static str {
        self.method.name()
    }

    /// Another method with the same training and scale, and defaults for its own options: for
    /// comparing methods under one tuning. Its own name gives it back as it is.
    ///
    /// # Errors
    /// [`StrategyError::Unknown`].
    pub fn switch(&self, name: &str) -> Result<Self, StrategyError> {
        if name == self.name() {
            return Ok(self.clone());
        }
        Ok(Self {
            method: Method::named(name)?,
            personal: Vec::new(),
            aggregation: Aggregation::Mean,
            ..self.clone()
        })
    }

    /// Rounds without which it has not done what it is for: one to train, more where a scale or
    /// coalitions take rounds of their own.
    pub fn least_rounds(&self) -> u64 {
        let finds = matches!(
            self.method,
            Method::CsRcfl {
                coalitions: Coalitions::Found(_),
                ..
            }
        );
        1 + u64::from(self.standardise) + u64::from(finds)
    }

    /// Whether it is FedAvg and nothing else: one model for everybody.
    pub fn is_plain_average(&self) -> bool {
        matches!(self.method, Method::FedAvg { .. })
            && self.personal.is_empty()
            && is_mean(&self.aggregation)
    }

    /// Whether all options are in their ranges, and a federation of `members` can run it.
    ///
    /// # Errors
    /// [`StrategyError`]: the first thing that is wrong.
    pub fn validate(&self, members: usize) -> Result<(), StrategyError> {
        build(self, members).map(drop)
    }
}

/// The options that go with every method, as the schema describes them.
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "read by the derived schema only")]
struct CommonOptions {
    /// Local training of a round.
    training: Training,
    /// Whether a common scale is agreed on in a first round of its own. In a scenario it is set by
    /// the task: `standardise = "federation"` in `[task.table]`.
    #[serde(default)]
    standardise: bool,
    /// Tensors and layers that stay with each silo, by name; or `"last-layer"`, `"norm-layers"`,
    /// `"intercept"`.
    #[serde(default)]
    personal: Vec<String>,
    /// What takes the place of the weighted mean wherever models of a coalition become one. In a
    /// coalition too small for the rule it is the coordinate-wise median. Robust rules want equal
    /// weights.
    #[serde(default = "mean")]
    aggregation: Aggregation,
}

fn mean() -> Aggregation {
    Aggregation::Mean
}

impl schemars::JsonSchema for StrategyConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Strategy".into()
    }

    /// Every method as an alternative, with its own options and the common ones.
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let common = CommonOptions::json_schema(generator).to_value();
        let mut methods = Method::json_schema(generator);
        let alternatives = methods.get_mut("oneOf").and_then(Value::as_array_mut);
        for method in alternatives.into_iter().flatten() {
            let options = method.get_mut("properties").and_then(Value::as_object_mut);
            if let (Some(options), Some(common)) = (options, common["properties"].as_object()) {
                options.extend(common.clone());
            }
            let required = method.get_mut("required").and_then(Value::as_array_mut);
            if let Some(required) = required {
                required.push("training".into());
            }
        }
        methods
    }
}

impl<'de> Deserialize<'de> for StrategyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table)
    }
}

/// Reads the table: what goes with every method by itself, so that errors in it keep their places,
/// and the rest as the method's.
struct Table;

impl<'de> Visitor<'de> for Table {
    type Value = StrategyConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with the strategy's name, its training and its options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<StrategyConfig, A::Error> {
        let (mut training, mut standardise, mut personal) = (None, false, Vec::new());
        let mut aggregation = Aggregation::Mean;
        let mut rest = Map::new();
        while let Some(key) = table.next_key::<String>()? {
            match key.as_str() {
                "training" => training = Some(table.next_value()?),
                "standardise" => standardise = table.next_value()?,
                "personal" => personal = table.next_value()?,
                "aggregation" => aggregation = table.next_value()?,
                _ => drop(rest.insert(key, table.next_value::<Value>()?)),
            }
        }
        let method = Method::deserialize(Value::Object(rest)).map_err(|error| {
            let what = error.to_string();
            match what.starts_with("unknown field") {
                true => A::Error::custom(format!("{what}; `{}`", COMMON.join("`, `"))),
                false => A::Error::custom(what),
            }
        })?;
        Ok(StrategyConfig {
            method,
            training: training.ok_or_else(|| A::Error::missing_field("training"))?,
            standardise,
            personal,
            aggregation,
        })
    }
}
