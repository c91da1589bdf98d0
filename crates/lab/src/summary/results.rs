//! The parts of a summary that compare models: gains with their intervals, models that are of no
//! use, trainings that failed, results for classes.

use serde::Serialize;

use crate::statistic::Interval;

/// A model whose held-out results are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// The model that the silo trained alone.
    Local,
    /// One model for all silos: FedAvg, weighted by rows.
    Global,
    /// One model for all silos: FedAvg with equal weights.
    GlobalEqual,
    /// FedAvg, weighted by rows, with an intercept of its own for every silo.
    OwnIntercept,
    /// The model of its coalition, which the silo adopted.
    Coalition,
    /// The model that the silo serves.
    Served,
    /// One model trained on the rows of all members.
    Pooled,
    /// The mean target of all members' training rows, for every row.
    Constant,
}

impl ModelKind {
    /// All of them, references first.
    pub const ALL: [Self; 8] = [
        Self::Constant,
        Self::Local,
        Self::Global,
        Self::GlobalEqual,
        Self::OwnIntercept,
        Self::Pooled,
        Self::Coalition,
        Self::Served,
    ];

    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Local => "a model trained alone",
            Self::Global => "FedAvg by rows",
            Self::GlobalEqual => "FedAvg, equal weights",
            Self::OwnIntercept => "FedAvg, own intercepts",
            Self::Coalition => "the coalition's model",
            Self::Served => "the served model",
            Self::Pooled => "one model of all rows",
            Self::Constant => "a constant prediction",
        }
    }
}

/// The means of one model over the members at which it is of use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ModelMean {
    /// The model.
    pub model: ModelKind,
    /// Number of members that these are.
    pub silos: usize,
    /// The mean in which every silo counts once.
    pub per_silo: f64,
    /// The mean in which every held-out row counts once.
    pub per_row: f64,
    /// The metric at the silo where it is worst.
    pub worst: f64,
}

/// Members that the model they serve harms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Harmed {
    /// Members with enough held-out rows to tell.
    pub compared: usize,
    /// Of these, members that serve another model than their own.
    #[serde(rename = "not_local")]
    pub not_own: usize,
    /// Members at which the 95 % interval of the served model against their own, on held-out rows,
    /// is wholly worse.
    pub harmed: Vec<String>,
    /// Expected number of these if every served model were exactly as good as the member's local one: 2.5 % of
    /// those that serve another.
    pub by_chance: f64,
}

/// Tuning of models trained alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Tuning {
    /// Members whose local model was tuned.
    pub silos: usize,
    /// Those of them whose local model is an exact fit.
    pub fitted: usize,
    /// `true` if learning rates and weight decays were searched, and not only the number of epochs.
    pub rates: bool,
    /// Mean number of trainings at a member, each as long as the federation's.
    pub trainings: f64,
    /// Mean number of exact and robust fits at a member, without those by which each chooses its ridge.
    pub fits: f64,
}

/// Gain of one model over another at a silo.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// The model.
    pub model: ModelKind,
    /// The model that it is compared with.
    pub over: ModelKind,
    /// The difference.
    #[serde(flatten)]
    pub interval: Interval,
}

/// Mean gain of one model over another, over the members that have both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanGain {
    /// The model.
    pub model: ModelKind,
    /// The model that it is compared with.
    pub over: ModelKind,
    /// Members that have both.
    pub silos: usize,
    /// The mean in which every silo counts once.
    pub per_silo: Interval,
    /// The mean in which every held-out row counts once.
    pub per_row: Interval,
}

/// A model that is of no use at a silo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unusable {
    /// The silo.
    pub silo: String,
    /// The model.
    pub model: ModelKind,
    /// Reason, as a clause.
    pub reason: String,
}

/// A training of a silo that failed in a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainingFailed {
    /// The silo.
    pub silo: String,
    /// The round.
    pub round: u64,
    /// The error.
    pub reason: String,
}

/// The second metric of a silo's models on its held-out rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SecondMetric {
    /// Of the model that it trained alone.
    pub local: Option<f64>,
    /// Of the global model.
    pub global: Option<f64>,
    /// Of the model that it adopted, or was given.
    pub coalition: Option<f64>,
}

/// Held-out results of a silo's classifiers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassResults {
    /// Rows by true class, and of these by the class that the adopted model gives.
    pub confusion: Vec<Vec<u64>>,
    /// Rows of the adopted model by the probability that it gives: of class 1 where there are two
    /// classes, otherwise of the class that it gives. Ascending; bins without rows are left out.
    pub calibration: Vec<Bin>,
    /// The ROC curve of the adopted model: false and true positive rate, from (0, 0) to (1, 1).
    /// Empty unless there are two classes that both occur.
    pub roc: Vec<(f64, f64)>,
    /// The ROC curve of the model that the silo trained alone, in the same form.
    pub roc_local: Vec<(f64, f64)>,
}

/// Rows whose predicted probabilities lie in one tenth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// Mean predicted probability.
    pub predicted: f64,
    /// Fraction of the rows for which it came true.
    pub observed: f64,
    /// Number of rows.
    pub rows: u64,
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// The program's version.
    pub version: &'static str,
    /// The task, as in the scenario.
    pub task: serde_json::Value,
    /// The strategy with its options, as in the scenario.
    pub strategy: serde_json::Value,
    /// Names of the classes; empty where the target is none.
    pub classes: Vec<String>,
}
