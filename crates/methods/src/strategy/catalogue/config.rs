//! The configuration of a strategy, as a parameter set has it.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::build;
use super::methods::Method;
use crate::aggregation::Aggregation;
use crate::learner::{Decay, Training};
use crate::params::Encoding;
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{Participation, Stop, StrategyError};

/// A strategy and its options, as in a parameter set: one table with the name, the options of that
/// method, and the options that go with every method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyConfig {
    /// The method, by `name`, and its own options.
    #[serde(flatten)]
    pub method: Method,
    /// True if a first round agrees on a common scale. Not a key of the table: the task sets it, by
    /// `standardise = "federation"`.
    #[serde(skip_serializing)]
    pub standardise: bool,
    /// True if the start model has a common scale already, which all later models keep. Not a key of
    /// the table: the agreement sets it where a federation continues an earlier one.
    #[serde(skip_serializing)]
    pub scale_agreed: bool,
    /// Tensors and layers that stay with each silo, by name; or [`LAST_LAYER`](crate::strategy::LAST_LAYER),
    /// [`NORM_LAYERS`](crate::strategy::NORM_LAYERS), [`INTERCEPT`](crate::strategy::INTERCEPT).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub personal: Vec<String>,
    /// Tensors and layers that are trained and travel, by name in the same way; all others stay as in
    /// the model that the federation starts from. Empty: all are trained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trained: Vec<String>,
    /// The rule that combines the models of a coalition: `{ name = "coordinate-median" }` and others,
    /// see [`Aggregation`]. A coalition too small for the rule uses the coordinate median. Robust
    /// rules need equal weights.
    #[serde(skip_serializing_if = "is_mean")]
    pub aggregation: Aggregation,
    /// How contributed models travel: `"f32"`, as they are; `"bf16"`, `"int8"` or `{ topk = 0.1 }`,
    /// rounded, see [`Encoding`].
    #[serde(skip_serializing_if = "Encoding::is_exact")]
    pub encoding: Encoding,
    /// How many members take part in a round that trains; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participation: Option<Participation>,
    /// When the federation ends before its last round; `None`: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Local training of a round.
    pub training: Training,
}

fn is_mean(rule: &Aggregation) -> bool {
    *rule == Aggregation::Mean
}

/// The options that go with every method.
const COMMON: [&str; 7] = [
    "training",
    "personal",
    "trained",
    "aggregation",
    "encoding",
    "participation",
    "stop",
];

impl StrategyConfig {
    /// A method with this local training, on every silo's own scale, without personal layers.
    pub fn new(method: Method, training: Training) -> Self {
        Self {
            method,
            training,
            standardise: false,
            scale_agreed: false,
            personal: Vec::new(),
            trained: Vec::new(),
            aggregation: Aggregation::Mean,
            encoding: Encoding::F32,
            participation: None,
            stop: None,
        }
    }

    /// Name of the strategy, as in [`STRATEGIES`](super::methods::STRATEGIES).
    pub fn name(&self) -> &'static str {
        self.method.name()
    }

    /// Another method with the same training and scale, and its own options
    /// [as they are drafted](Method::drafted): for comparing methods under one tuning. Its own name
    /// gives it back as it is.
    ///
    /// # Errors
    /// [`StrategyError::Unknown`].
    pub fn switch(&self, name: &str) -> Result<Self, StrategyError> {
        if name == self.name() {
            return Ok(self.clone());
        }
        Ok(Self {
            method: Method::drafted(name)?,
            personal: Vec::new(),
            aggregation: Aggregation::Mean,
            ..self.clone()
        })
    }

    /// Sets the rounds of the federation, a round that agrees on a common scale included: what a learning
    /// rate that falls like a cosine falls over. To be called once `standardise` is known.
    pub fn set_rounds(&mut self, all: u64) {
        let before = self.first_training() - 1;
        if let Some(Decay::Cosine { rounds, .. }) = &mut self.training.decay {
            *rounds = all.saturating_sub(before);
        }
    }

    /// The first round in which silos train: the second where the first agrees on a common scale.
    pub fn first_training(&self) -> u64 {
        1 + u64::from(self.standardise)
    }

    /// Fewest rounds that make a model: one to train, more where a scale or coalitions take rounds of
    /// their own.
    pub fn least_rounds(&self) -> u64 {
        let rounds = match &self.method {
            Method::CsRcfl(options) => options.forming_rounds(),
            Method::Hcct(options) | Method::HcctP(options) => options.forming_rounds(),
            Method::HcctE(options) => options.forming_rounds(),
            _ => 1,
        };
        rounds + self.first_training() - 1
    }

    /// The weights, if it is FedAvg without momentum and nothing else: one model for all members.
    pub fn plain_average(&self) -> Option<WeightRule> {
        let Method::FedAvg(options) = &self.method else {
            return None;
        };
        let plain = options.momentum == 0.0
            && self.personal.is_empty()
            && self.trained.is_empty()
            && is_mean(&self.aggregation);
        let everyone = self.participation.is_none();
        (plain && everyone && self.encoding.is_exact() && self.stop.is_none())
            .then_some(options.weight)
    }

    /// Returns whether all options are in their ranges, and a federation of `members` can run it.
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
    /// Tensors and layers that stay with each silo and are never sent: names of the model's tensors
    /// or layers, or `"last-layer"`, `"norm-layers"`, `"intercept"`. At least one tensor must remain
    /// shared.
    #[serde(default)]
    personal: Vec<String>,
    /// Tensors and layers that are trained and sent, by name in the same way; all others stay at every
    /// silo as they are in the model that the federation starts from. By default all are trained.
    #[serde(default)]
    trained: Vec<String>,
    /// The rule that combines the models of a coalition. A coalition too small for the rule uses the
    /// coordinate-wise median. Robust rules need equal weights: set `weight = "equal"` where the
    /// method has that option.
    #[serde(default = "mean")]
    aggregation: Aggregation,
    /// How contributed models travel: as they are, or rounded, which saves bytes. What is rounded is
    /// the difference to the agreed model of the last round; what rounding leaves out is sent in a
    /// later round.
    #[serde(default)]
    encoding: Encoding,
    /// Members that take part in a round that trains, drawn uniformly anew for every round: a number of
    /// them, or a share between 0 and 1, as in `participation = 0.1`. By default all take part. Who is
    /// not drawn sends no model and is not waited for, but votes. Not for strategies that draw members by
    /// weights of their own, as `drfa` does.
    #[serde(default)]
    participation: Option<Participation>,
    /// When the federation ends before its last round: after `patience` rounds whose models were no
    /// better than the best so far on the silos' validation rows. The models of the best round are
    /// kept.
    #[serde(default)]
    stop: Option<Stop>,
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
        deserializer.deserialize_map(StrategyTable)
    }
}

/// Reads the table: the common options one by one, so that errors in them keep their positions, and
/// all other keys as the method's.
struct StrategyTable;

/// The value of a key `standardise`, which belongs to the task: reading it is an error.
enum SetByTask {}

impl<'de> Deserialize<'de> for SetByTask {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(
            "not an option of a strategy: for a common scale, write `standardise = \"federation\"` in \
             [task.table]",
        ))
    }
}

impl<'de> Visitor<'de> for StrategyTable {
    type Value = StrategyConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with the strategy's name, its training and its options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<StrategyConfig, A::Error> {
        let (mut training, mut stop, mut participation) = (None, None, None);
        let (mut personal, mut trained) = (Vec::new(), Vec::new());
        let (mut aggregation, mut encoding) = (Aggregation::Mean, Encoding::F32);
        let mut rest = Map::new();
        while let Some(key) = table.next_key::<String>()? {
            match key.as_str() {
                "training" => training = Some(table.next_value()?),
                "standardise" => match table.next_value::<SetByTask>()? {},
                "personal" => personal = table.next_value()?,
                "trained" => trained = table.next_value()?,
                "aggregation" => aggregation = table.next_value()?,
                "encoding" => encoding = table.next_value()?,
                "participation" => participation = Some(table.next_value()?),
                "stop" => stop = Some(table.next_value()?),
                _ => drop(rest.insert(key, table.next_value::<Value>()?)),
            }
        }
        let method = Method::deserialize(Value::Object(rest)).map_err(|error| {
            let what = error.to_string();
            if what.starts_with("unknown field") {
                A::Error::custom(format!("{what}; `{}`", COMMON.join("`, `")))
            } else {
                A::Error::custom(what)
            }
        })?;
        Ok(StrategyConfig {
            method,
            training: training.ok_or_else(|| A::Error::missing_field("training"))?,
            standardise: false,
            scale_agreed: false,
            personal,
            trained,
            aggregation,
            encoding,
            participation,
            stop,
        })
    }
}
