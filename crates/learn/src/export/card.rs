//! The model card: what a model is, in one document for programs.

use std::collections::BTreeMap;
use std::fmt::Write;

use methods::Params;
use methods::serving::{Candidate, Measured};
use serde::{Deserialize, Serialize};

use super::error::ExportError;
use super::fit::FittedFamily;
use super::threshold::Threshold;
use crate::data::{Preparation, Standardise, Target};
use crate::learners::column_scale;
use crate::metrics::MetricName;
use crate::schema::Schema;
use task::{ModelConfig, TableTask};

/// Version of the format of cards. Version 2 has the tensor `scale.rest` in models on a common scale, and
/// columns are scaled in double precision.
pub(super) const FORMAT: u32 = 2;

/// Description of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Card {
    /// Version of this format.
    pub format: u32,
    /// The program that wrote it.
    pub program: String,
    /// Time of the export, in UTC as RFC 3339 has it.
    pub created: String,
    /// Origin of the model.
    pub origin: Origin,
    /// Task that the model was trained for: schema and model family.
    pub task: CardTask,
    /// The numbers of a row in order, with what stands for missing ones and how they are scaled.
    pub columns: Vec<CardColumn>,
    /// Output of the model.
    pub output: Output,
    /// Metrics on rows that it was not trained on; `None` where nobody measured it.
    #[serde(alias = "held-out")]
    pub held_out: Option<HeldOut>,
    /// Of two classes, the threshold that suits the silo's own rows; `None` where there are too few of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// Comparison by the silo of the models that it could serve; empty where it made none.
    #[serde(default)]
    pub comparison: Vec<Measured>,
    /// The choice that followed, if this is the model that the silo serves.
    #[serde(default)]
    pub served: Option<Candidate>,
    /// Names and shapes of the tensors, in the order of the file.
    pub tensors: Vec<(String, Vec<usize>)>,
    /// BLAKE3 of the canonical safetensors document of the tensors, in hexadecimal digits.
    pub hash: String,
}

/// Task that a model was trained for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct CardTask {
    /// Meaning of the columns.
    pub schema: Schema,
    /// The model family.
    pub model: ModelConfig,
    /// Scaling of numbers.
    pub standardise: Standardise,
}

/// Origin of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Origin {
    /// The model in one word: `served`, `own`, `coalition`, `global`.
    pub which: String,
    /// The model in a sentence without a full stop.
    pub about: String,
    /// Name of the federation.
    pub federation: String,
    /// Id of the federation, which is the hash of its agreement.
    pub id: String,
    /// Number of its members.
    pub members: usize,
    /// The strategy.
    pub strategy: String,
    /// The round after which the model was adopted.
    pub round: u64,
    /// Rounds that the members agreed on.
    pub rounds: u64,
    /// Coalition of the model; `None` for a mean of several.
    pub coalition: Option<Coalition>,
    /// Hash of the final block of the round.
    pub block: String,
    /// Hash of the round's outcome, which the members voted on.
    pub outcome: String,
    /// Hash of the certificate that a quorum of members signed.
    pub certificate: String,
    /// The institution whose rows filled in missing values, and measured the model.
    pub silo: String,
    /// The earlier federation that this one continued, in words.
    #[serde(default)]
    pub continues: Option<String>,
}

/// A coalition of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Coalition {
    /// Number of the coalition, from 1.
    pub number: u32,
    /// Number of coalitions.
    pub of: usize,
    /// Number of contributions that its model was made from.
    pub contributions: usize,
}

/// One number of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct CardColumn {
    /// Name of the number: that of the column, `column=level`, or `column is missing`.
    pub name: String,
    /// Value in place of a missing one.
    pub fill: f64,
    /// Number that is subtracted.
    pub mean: f64,
    /// By what the difference is divided.
    pub deviation: f64,
    /// The smallest and largest number that the members agreed on; `None` where they agreed on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// Returns the reason for which a metric has no value on so many held-out rows.
fn unmeasured(metric: &str, rows: u64) -> String {
    let needs = match metric {
        "roc-auc" => "needs some of both classes, and there are none of one",
        "integrated-brier" | "calibration-at-time" => {
            "needs a time until which enough training rows are observed, and rows that enter at the beginning"
        }
        "concordance" => {
            "needs two rows of which one has its event while the other is still observed, and there are none"
        }
        _ => "has no value on them",
    };
    format!("nothing was measured on {rows} held-out rows: {metric} {needs}")
}

/// Output of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Output {
    /// Numbers: what the model gives, times `deviation`, plus `mean`.
    Numbers {
        /// The columns that are predicted.
        names: Vec<String>,
        /// Unit of the columns that are predicted.
        unit: String,
        /// Size of 1 of the model in that unit.
        deviation: f64,
        /// Value in that unit at which the model gives 0.
        mean: f64,
    },
    /// A probability for each class.
    Classes {
        /// The column that is predicted.
        name: String,
        /// The classes, in order.
        classes: Vec<String>,
    },
    /// For each pixel the probability that it belongs to the object.
    Mask {
        /// The columns that are predicted.
        names: Vec<String>,
    },
    /// A risk score: the logarithm of the hazard relative to a row with the score 0. Scores that differ by a constant
    /// are the same model.
    Survival {
        /// The column of the event.
        event: String,
        /// The column of the time until it.
        time: String,
        /// Unit of times.
        unit: String,
        /// Times at which the members agreed to predict survival; it takes the baseline of an institution, which is
        /// no part of the model and stays there.
        at: Vec<f64>,
    },
}

/// Metrics on rows that were not trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct HeldOut {
    /// Number of rows.
    pub rows: u64,
    /// The metric that the members agreed to compare.
    pub metric: String,
    /// Unit of that metric; empty if it has none.
    pub unit: String,
    /// All metrics, by name.
    pub metrics: BTreeMap<String, f64>,
    /// All metrics of a constant prediction, the mean target of the silo's training rows; empty where that is
    /// not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constant: BTreeMap<String, f64>,
}

impl HeldOut {
    /// The compared metric of the model and that of a constant prediction, where both are known.
    pub fn beside_constant(&self) -> Option<(f64, f64)> {
        let of = |metrics: &BTreeMap<String, f64>| metrics.get(&self.metric).copied();
        Some((of(&self.metrics)?, of(&self.constant)?))
    }

    /// Returns the reason for which the compared metric has no value, as part of a sentence; `None` where it has one.
    pub fn unmeasured(&self) -> Option<String> {
        let is_missing = !self.metrics.contains_key(&self.metric);
        is_missing.then(|| unmeasured(&self.metric, self.rows))
    }

    /// Returns what the model is worth beside a constant prediction, in sentences; nothing where one is not known.
    pub fn in_words(&self) -> Option<String> {
        let (own, constant) = self.beside_constant()?;
        let name: MetricName = serde_json::from_value(self.metric.clone().into()).ok()?;
        let higher = name.higher_is_better();
        let verdict = match own.total_cmp(&constant) {
            order if order.is_eq() => ": it is worth no more than that",
            order if order.is_gt() != higher => ": it is worse than that, and of no use as it is",
            _ => "",
        };
        Some(format!(
            "On {} held-out rows its {} is {own:.4}, that of a constant prediction {constant:.4}{verdict}.",
            self.rows, self.metric
        ))
    }
}

/// Parts that a card is made from.
pub struct CardParts<'a> {
    /// The agreed task.
    pub task: &'a TableTask,
    /// Preparation of the silo's rows for its models.
    pub preparation: &'a Preparation,
    /// The model, in the layout of its family.
    pub model: &'a Params,
    /// Origin of the model.
    pub origin: Origin,
    /// Now, as RFC 3339 has it.
    pub created: String,
}

impl Card {
    /// The card of a model.
    ///
    /// # Errors
    /// [`ExportError`]: no schema, or a model or preparation of another task.
    pub fn new(parts: CardParts<'_>) -> Result<Self, ExportError> {
        let CardParts {
            task,
            preparation,
            model,
            origin,
            created,
        } = parts;
        let schema = task.agreed_schema()?.ok_or(ExportError::NoSchema)?;
        let scaling = task.scaling();
        let common = scaling == Standardise::Federation;
        let scale = |column: usize| column_scale(model, column).filter(|_| common);
        FittedFamily::new(&schema, &task.model, scaling, model)?;
        let encoded = schema.encoded();
        if encoded.len() != preparation.fills.len() {
            return Err(ExportError::Columns {
                expected: encoded.len(),
                found: preparation.fills.len(),
            });
        }
        let width = encoded.len();
        let columns = encoded.into_iter().enumerate().map(|(at, column)| {
            let own = (preparation.means[at], preparation.deviations[at]);
            let (mean, deviation) = scale(at).unwrap_or(own);
            CardColumn {
                name: column.name,
                fill: preparation.fills[at],
                mean,
                deviation,
                range: column.range,
            }
        });
        let own = (preparation.target_mean, preparation.target_deviation);
        let (target_mean, target_deviation) = scale(width).unwrap_or(own);
        let tensors = model.layout().tensors().iter();
        Ok(Self {
            format: FORMAT,
            program: format!("rota {}", env!("CARGO_PKG_VERSION")),
            created,
            origin,
            columns: columns.collect(),
            output: Output::of(&schema, target_mean, target_deviation),
            held_out: None,
            comparison: Vec::new(),
            served: None,
            threshold: None,
            tensors: tensors
                .map(|tensor| (tensor.name.clone(), tensor.shape.clone()))
                .collect(),
            hash: digits(&model.hash()),
            task: CardTask {
                schema,
                model: task.model.clone(),
                standardise: scaling,
            },
        })
    }
}

impl Output {
    fn of(schema: &Schema, mean: f64, deviation: f64) -> Self {
        let names = || schema.target.name.iter().map(str::to_owned).collect();
        match schema.target() {
            Target::Number { unit } | Target::Numbers { unit, .. } => Self::Numbers {
                names: names(),
                unit,
                deviation,
                mean,
            },
            Target::Classes(classes) => Self::Classes {
                name: schema.target.name.iter().next().unwrap_or_default().into(),
                classes,
            },
            Target::Mask { .. } => Self::Mask { names: names() },
            Target::Survival { unit, at } => {
                let name = |at| schema.target.name.iter().nth(at).unwrap_or_default();
                Self::Survival {
                    event: name(0).to_owned(),
                    time: name(1).to_owned(),
                    unit,
                    at,
                }
            }
        }
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
