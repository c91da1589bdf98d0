//! An experiment as it is written: the tables and keys of the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use task::metrics::MetricName;
use toml::{Table, Value};

use super::error::ExperimentError;

/// Version of the format of experiments.
pub(super) const FORMAT: u32 = 1;
/// Default number of seeds.
const SEEDS: usize = 5;
/// Default number of times that the search of settings goes beyond its end.
const WIDEN: usize = 2;

/// Settings of one run, by key.
pub type RunSettings = BTreeMap<String, Value>;

/// Strategies to compare on one scenario: over which seeds, by which metrics, and how settings are chosen.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ExperimentFile {
    /// Version of this file's format.
    #[serde(default = "newest")]
    #[schemars(range(min = 1, max = 1))]
    #[allow(
        dead_code,
        reason = "checked before the file is read, named here for the schema"
    )]
    pub(super) format: u32,
    /// Name of the experiment.
    pub(super) name: String,
    /// What the experiment shows, in a sentence.
    #[serde(default)]
    pub(super) description: String,
    /// Number of seeds; every strategy runs once for each.
    #[serde(default = "seeds")]
    #[schemars(range(min = 1))]
    pub(super) seeds: usize,
    /// Metrics that are reported, the most important first. Default: the task's own metric.
    #[serde(default)]
    pub(super) metrics: Vec<MetricName>,
    /// The scenario that all strategies share: its keys without `name`, `description` and
    /// `strategy`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(super) scenario: Table,
    /// Training of the strategies that have none of their own.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub(super) training: Option<Table>,
    /// The strategies that are compared, one table `[[strategy]]` for each: the strategy as in a
    /// scenario, or `name = "pooled"` (one model trained on the rows of all members), or `name =
    /// "constant"` (every row is given the mean target).
    #[serde(default)]
    pub(super) strategy: Vec<EntryFile>,
    /// The same comparison under changed settings, one table `[[variant]]` for each. Default: one,
    /// without changes.
    #[serde(default)]
    pub(super) variant: Vec<Variant>,
    /// True if it is also measured what every silo would serve: after a choice, on its own rows, between
    /// the strategy's model and those that it makes alone. The latter take many trainings, once for every
    /// seed.
    #[serde(default = "yes")]
    pub(super) served: bool,
    /// How settings and rounds are chosen on validation rows.
    #[serde(default)]
    pub(super) tune: Tune,
    /// Changes for `--quick`, by key of this file, such as `"scenario.rounds" = 2`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    #[allow(
        dead_code,
        reason = "taken from the text before it is read, named here for the schema"
    )]
    pub(super) quick: Table,
}

impl ExperimentFile {
    /// Metrics that are reported: those of the file, or the one on which its task agrees.
    pub(super) fn reported(&self) -> Vec<MetricName> {
        let agreed = || {
            let Value::Table(kinds) = self.scenario.get("task")? else {
                return None;
            };
            let metric = kinds.values().find_map(|task| task.get("metric"))?;
            // One that is none is refused with the scenario.
            MetricName::deserialize(metric.clone()).ok()
        };
        match self.metrics.is_empty() {
            true => agreed().into_iter().collect(),
            false => self.metrics.clone(),
        }
    }
}

/// A strategy of an experiment and its settings.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct EntryFile {
    /// Name in tables. Default: the strategy's name.
    #[serde(default)]
    pub(super) label: Option<String>,
    /// Values that are tried beside those of `[tune.grid]`, by key of the strategy, such as
    /// `mu = [0.01, 0.1]`; keys of the scenario begin with `scenario.`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub(super) tune: BTreeMap<String, Vec<Value>>,
    /// True if nothing is tried beyond the settings as they stand, as for exact fits.
    #[serde(default)]
    pub(super) fixed: bool,
    /// Whether it is also measured what every silo would serve. Default: as the experiment says.
    #[serde(default)]
    pub(super) served: Option<bool>,
    /// Changes of the scenario for this strategy, by key.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(super) set: Table,
    /// The strategy's own keys.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(super) strategy: Table,
}

/// Changed settings of the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The changes, by key of the scenario, such as `"task.table.split.test" = 0.5`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: Table,
}

/// How settings and rounds are chosen: by the mean metric over the members' validation rows. Test
/// rows are touched once, after the choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Tune {
    /// Values that are tried for every strategy, by key of the strategy, such as
    /// `"training.optimiser.rate" = [0.01, 0.1]`.
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub grid: BTreeMap<String, Vec<Value>>,
    /// Most settings that are tried for a strategy, the same for all; of larger grids as many are
    /// drawn.
    #[schemars(range(min = 1))]
    pub points: usize,
    /// How often the search goes beyond its end: where the best round is the last one, the rounds are doubled,
    /// and where a chosen setting is the smallest or largest that was tried, the next one is tried, too. 0:
    /// never. Default: 2.
    pub widen: usize,
    /// Share of the rows that are held out for the choice.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub validation: f64,
    /// True if the chosen settings are trained once more on training and validation rows together,
    /// up to the chosen round. Otherwise what was trained for the choice is the result.
    pub again: bool,
    /// True if every seed chooses for itself. Otherwise the first seed chooses for all.
    pub every_seed: bool,
    /// The metric that chooses. Default: the loss.
    pub by: MetricName,
}

impl Default for Tune {
    fn default() -> Self {
        Self {
            grid: BTreeMap::new(),
            points: 6,
            widen: WIDEN,
            validation: 0.2,
            again: true,
            every_seed: true,
            by: MetricName::Loss,
        }
    }
}

/// An experiment that compares the strategy of a scenario.
pub(super) fn of_scenario_table(mut scenario: Table) -> Result<ExperimentFile, ExperimentError> {
    let text = |key: &str, table: &mut Table| match table.remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let name = text("name", &mut scenario);
    let description = text("description", &mut scenario);
    scenario.remove("format");
    let mut strategy = match scenario.remove("strategy") {
        Some(Value::Table(strategy)) => strategy,
        _ => Table::new(),
    };
    let training = match strategy.remove("training") {
        Some(Value::Table(training)) => Some(training),
        _ => None,
    };
    let rate = training.as_ref().and_then(|training| {
        let rate = training.get("optimiser")?.get("rate")?;
        rate.as_float()
            .or(rate.as_integer().map(|rate| rate as f64))
    });
    let mut tune = Tune::default();
    if let Some(rate) = rate {
        let around = [rate, rate / 3.0, rate * 3.0].map(Value::Float).to_vec();
        tune.grid.insert("training.optimiser.rate".into(), around);
    }
    Ok(ExperimentFile {
        format: FORMAT,
        name,
        description,
        seeds: SEEDS,
        metrics: Vec::new(),
        scenario,
        training,
        strategy: vec![EntryFile {
            label: None,
            tune: BTreeMap::new(),
            fixed: false,
            served: None,
            set: Table::new(),
            strategy,
        }],
        variant: Vec::new(),
        served: true,
        tune,
        quick: Table::new(),
    })
}

fn yes() -> bool {
    true
}

fn newest() -> u32 {
    FORMAT
}

fn seeds() -> usize {
    SEEDS
}
