//! An experiment: one federation learned in several ways, over several seeds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agreement::TomlText;
use methods::strategy::{FedAvgOptions, Method, StrategyConfig, WeightRule, drafted_options};
use serde::{Deserialize, Serialize};
use task::metrics::MetricName;
use toml::{Table, Value};

use super::built_in::BUILT_IN;
use super::choices::Choices;
use super::entry::{CONSTANT, ExperimentEntry, OWN, POOLED};
use super::error::ExperimentError;
use super::file::{
    EntryFile, ExperimentFile, FORMAT, RunSettings, Tune, Variant, of_scenario_table,
};
use super::grid;
use simulations::scenario::Scenario;

/// Label of the reference in which every silo has an intercept of its own.
const OWN_INTERCEPT: &str = "fedavg, own intercept";
/// An experiment that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The file, for errors.
    pub file: String,
    /// Name of the experiment.
    pub name: String,
    /// A sentence about it.
    pub description: String,
    /// Number of seeds.
    pub seeds: usize,
    /// Metrics that are reported, the most important first; empty: neither the file nor its task names one.
    pub metrics: Vec<MetricName>,
    /// The strategies.
    pub entries: Vec<ExperimentEntry>,
    /// The settings under which they are compared, at least one.
    pub variants: Vec<Variant>,
    /// Choice of settings.
    pub tune: Tune,
    /// True if the models that every silo would serve are measured, too.
    pub served: bool,
    /// True if the experiment was reduced by `--quick`.
    pub quick: bool,
    /// True if it is a scenario that is compared.
    pub(super) of_scenario: bool,
    /// Strategies that are left out, and why, in sentences without a full stop.
    pub(super) left_out: Vec<String>,
    pub(super) scenario: Table,
    training: Option<Table>,
    /// Folder that paths of the scenario are relative to.
    folder: PathBuf,
    /// Text and choices that the experiment was read from.
    pub(super) origin: ExperimentOrigin,
}

/// Sources of an experiment, from which it can be read again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExperimentOrigin {
    file: String,
    text: String,
    folder: PathBuf,
    choices: Choices,
    /// The program's version, on which results depend.
    version: String,
}

impl ExperimentOrigin {
    /// Reads the experiment again.
    ///
    /// # Errors
    /// As [`Experiment::parse`].
    pub(super) fn experiment(&self) -> Result<Experiment, ExperimentError> {
        Experiment::parse(&self.file, &self.text, &self.folder, &self.choices)
    }
}

impl Experiment {
    /// Loads the built-in experiment of that name, an experiment's file, or a scenario (by name or
    /// file), which is compared with the references.
    ///
    /// # Errors
    /// [`ExperimentError`]: what cannot be read, or the first error in it.
    pub fn load(name: &str, choices: &Choices) -> Result<Self, ExperimentError> {
        let built_in = BUILT_IN.iter().chain(simulations::scenario::BUILT_IN);
        if let Some(found) = built_in.clone().find(|(own, _)| *own == name) {
            return Self::built_in(found, choices);
        }
        let names = |of: &[(&str, &str)]| {
            let names: Vec<_> = of.iter().map(|(name, _)| *name).collect();
            names.join(", ")
        };
        let path = Path::new(name);
        let text = task::file::read_text(path, task::file::CONFIGURATION);
        let text = text.map_err(|error| ExperimentError::File {
            file: name.into(),
            why: error.to_string(),
            near: task::data::nearest(name, built_in.map(|(name, _)| *name)),
            built_in: names(BUILT_IN),
            scenarios: names(simulations::scenario::BUILT_IN),
        })?;
        Self::parse(name, &text, path.parent().unwrap_or(Path::new("")), choices)
    }

    /// Reads a built-in experiment or scenario: its name and its text.
    ///
    /// # Errors
    /// As [`Experiment::parse`].
    pub(super) fn built_in(
        (name, text): &(&str, &str),
        choices: &Choices,
    ) -> Result<Self, ExperimentError> {
        let file = format!("{name}.toml (built in)");
        Self::parse(&file, text, Path::new(""), choices)
    }

    /// Reads an experiment, or a scenario to compare with the references, from its text. Every run of
    /// it is checked.
    ///
    /// # Errors
    /// [`ExperimentError`]: the first error in the text, or in a run that follows from it.
    pub fn parse(
        file: &str,
        text: &str,
        folder: &Path,
        choices: &Choices,
    ) -> Result<Self, ExperimentError> {
        let source = TomlText { file, text };
        source.check_format(FORMAT)?;
        let mut whole: Table = toml::from_str(text).map_err(|error| source.toml(&error))?;
        let of_scenario = !whole.contains_key("scenario");
        if choices.quick
            && let Some(Value::Table(quick)) = whole.remove("quick")
        {
            for (path, value) in quick {
                set(&mut whole, &path, value);
            }
        }
        let raw: ExperimentFile = if of_scenario {
            // Errors of a scenario are those that running it gives.
            Scenario::parse(file, text)?;
            of_scenario_table(whole)?
        } else if choices.quick {
            // Positions are those of the file without its changes.
            let raw = ExperimentFile::deserialize(Value::Table(whole));
            raw.map_err(|error| ExperimentError::Settings {
                file: file.into(),
                of: "with the changes of [quick]".into(),
                what: error.message().into(),
            })?
        } else {
            toml::from_str(text).map_err(|error| source.toml(&error))?
        };
        let metrics = raw.reported();
        let mut experiment = Self {
            file: file.into(),
            name: raw.name,
            description: raw.description,
            seeds: choices.seeds.unwrap_or(raw.seeds),
            metrics,
            entries: Vec::new(),
            variants: raw.variant,
            tune: Tune {
                widen: match (choices.widen, choices.quick) {
                    (Some(widen), _) => widen,
                    (None, true) => 0,
                    (None, false) => raw.tune.widen,
                },
                validation: if choices.untuned {
                    0.0
                } else {
                    raw.tune.validation
                },
                ..raw.tune
            },
            served: raw.served,
            quick: choices.quick,
            of_scenario,
            left_out: Vec::new(),
            scenario: raw.scenario,
            training: raw.training,
            folder: folder.to_owned(),
            origin: ExperimentOrigin {
                file: file.into(),
                text: text.into(),
                folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
                choices: choices.clone(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
        };
        if experiment.variants.is_empty() {
            experiment.variants.push(Variant {
                name: String::new(),
                set: Table::new(),
            });
        }
        for entry in raw.strategy {
            experiment.add(entry)?;
        }
        let custom = choices.custom.iter().map(ExperimentEntry::custom);
        experiment.entries.extend(custom);
        if !choices.epsilons.is_empty() {
            experiment.add_noise(&choices.epsilons, of_scenario)?;
        } else if of_scenario {
            experiment.references()?;
        }
        experiment.choose(&choices.strategies)?;
        experiment.check()?;
        Ok(experiment)
    }

    pub(super) fn fault(&self, what: impl Into<String>) -> ExperimentError {
        ExperimentError::Experiment {
            file: self.file.clone(),
            what: what.into(),
        }
    }

    fn add(&mut self, entry: EntryFile) -> Result<(), ExperimentError> {
        let name = entry
            .strategy
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let Some(name) = name else {
            return Err(self.fault("a table [[strategy]] has no `name`"));
        };
        let label = entry.label.unwrap_or(name);
        if self.entries.iter().any(|other| other.label == label) {
            return Err(self.fault(format!(
                "two tables [[strategy]] are labelled {label:?}: give one of them another `label`"
            )));
        }
        self.entries.push(ExperimentEntry {
            label,
            strategy: entry.strategy,
            tune: entry.tune,
            fixed: entry.fixed,
            served: entry.served,
            adapted: None,
            set: entry.set,
        });
        Ok(())
    }

    /// Adds the references that every result is compared with, as far as they are not there.
    fn references(&mut self) -> Result<(), ExperimentError> {
        let plain = |label: &str, name: &str, more: &[(&str, Value)]| {
            let mut strategy = Table::new();
            strategy.insert("name".into(), name.into());
            strategy.extend(
                more.iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone())),
            );
            EntryFile {
                label: Some(label.into()),
                tune: BTreeMap::new(),
                fixed: false,
                served: None,
                set: Table::new(),
                strategy,
            }
        };
        let personal = Value::Array(vec!["intercept".into()]);
        let references = [
            plain(OWN, OWN, &[]),
            plain("local", "local", &[]),
            plain("fedavg, by rows", "fedavg", &[("weight", "exact".into())]),
            plain(
                "fedavg, equal weights",
                "fedavg",
                &[("weight", "equal".into())],
            ),
            plain(
                OWN_INTERCEPT,
                "fedavg",
                &[("weight", "equal".into()), ("personal", personal)],
            ),
            plain(POOLED, POOLED, &[]),
            plain(CONSTANT, CONSTANT, &[]),
        ];
        let external = self
            .scenario
            .get("task")
            .and_then(|task| task.get("external"));
        let tensors = external.and_then(|external| external.get("tensors")?.as_array());
        let is_bias = |tensor: &Value| tensor.get("role").and_then(Value::as_str) == Some("bias");
        // A program's model may have none.
        let has_intercept = tensors.is_none_or(|tensors| tensors.iter().any(is_bias));
        for reference in references {
            let label = reference.label.clone().unwrap_or_default();
            let there = self.entries.iter().any(|entry| entry.label == label);
            if !there && (has_intercept || label != OWN_INTERCEPT) {
                self.add(reference)?;
                self.keep_last_if_allowed();
            }
        }
        Ok(())
    }

    /// Leaves the last strategy out if the scenario does not allow it, such as other weights in rounds with secure
    /// aggregation.
    pub(super) fn keep_last_if_allowed(&mut self) {
        let Some(last) = self.entries.last() else {
            return;
        };
        let scenario = self.scenario(&self.variants[0], last, &self.points(last)[0], 0);
        if let Err(ExperimentError::Settings { what, .. }) = scenario {
            self.left_out
                .push(format!("{} is left out: {what}", last.label));
            self.entries.pop();
        }
    }

    /// Keeps the strategies of these names or labels, in this order; others are added with their
    /// defaults.
    fn choose(&mut self, names: &[String]) -> Result<(), ExperimentError> {
        if names.is_empty() {
            return Ok(());
        }
        let mut chosen = Vec::new();
        let mut rest = names;
        while !rest.is_empty() {
            // A label may hold the commas at which names are separated.
            let has_label = |name: &str| self.entries.iter().any(|entry| entry.label == name);
            let pieces = (2..=rest.len()).rev();
            let pieces = pieces
                .into_iter()
                .find(|&n| has_label(rest[..n].join(",").trim()));
            let (these, others) = rest.split_at(pieces.unwrap_or(1));
            rest = others;
            let name = these.join(",");
            let name = name.trim();
            let before = chosen.len();
            let matches = |entry: &&ExperimentEntry| entry.label == name || entry.name() == name;
            chosen.extend(self.entries.iter().filter(matches).cloned());
            if chosen.len() == before {
                Method::named(name)
                    .map_err(|error| self.fault(format!("--strategies: {error}")))?;
                let mut strategy = Table::new();
                strategy.insert("name".into(), name.into());
                let drafted = drafted_options(name).iter();
                strategy.extend(drafted.map(|(key, value)| ((*key).into(), (*value).into())));
                chosen.push(ExperimentEntry::plain(name, strategy));
            }
        }
        let mut seen = Vec::new();
        chosen.retain(|entry| {
            let new = !seen.contains(&entry.label);
            seen.push(entry.label.clone());
            new
        });
        self.entries = chosen;
        Ok(())
    }

    fn check(&self) -> Result<(), ExperimentError> {
        if self.entries.is_empty() {
            return Err(self.fault("there is no table [[strategy]]: name at least one strategy"));
        }
        if self.seeds == 0 {
            return Err(self.fault("`seeds` is 0, it must be at least 1"));
        }
        if self.tune.points == 0 {
            return Err(self.fault("`tune.points` is 0, it must be at least 1"));
        }
        if !(0.0..1.0).contains(&self.tune.validation) {
            let what = format!(
                "`tune.validation` is {}, it must be at least 0 and below 1",
                self.tune.validation
            );
            return Err(self.fault(what));
        }
        for variant in &self.variants {
            for entry in &self.entries {
                for point in self.points(entry) {
                    self.scenario(variant, entry, &point, 0)?;
                }
            }
        }
        Ok(())
    }

    /// The settings that are tried for a strategy, at least one.
    pub fn points(&self, entry: &ExperimentEntry) -> Vec<RunSettings> {
        if entry.is_constant() || entry.is_own() || entry.fixed {
            return vec![RunSettings::new()];
        }
        let mut grid = self.tune.grid.clone();
        grid.extend(entry.tune.clone());
        grid::points(&grid, self.tune.points, &entry.label)
    }

    /// Returns what settings of a variant come to where one might not expect it, in sentences with the labels that
    /// they are true of.
    pub(super) fn remarks(&self, variant: &Variant) -> Vec<String> {
        let mut remarks: Vec<(String, Vec<&str>)> = Vec::new();
        for entry in self.entries.iter().filter(|entry| !entry.is_reference()) {
            let points = self.points(entry);
            let Ok(scenario) = self.scenario(variant, entry, &points[0], 0) else {
                continue;
            };
            for remark in scenario.strategy.remarks(scenario.rounds) {
                match remarks.iter_mut().find(|(said, _)| *said == remark) {
                    Some((_, labels)) => labels.push(&entry.label),
                    None => remarks.push((remark, vec![&entry.label])),
                }
            }
        }
        let sentence =
            |(remark, labels): (String, Vec<&str>)| format!("{}: {remark}", labels.join("; "));
        remarks.into_iter().map(sentence).collect()
    }

    /// The scenario of one run, with nothing held out for a choice beyond what the scenario says.
    ///
    /// # Errors
    /// [`ExperimentError::Settings`]: what is wrong with it.
    pub fn scenario(
        &self,
        variant: &Variant,
        entry: &ExperimentEntry,
        point: &RunSettings,
        seed: usize,
    ) -> Result<Scenario, ExperimentError> {
        let mut strategy = entry.strategy.clone();
        if entry.is_reference() {
            strategy = Table::new();
            strategy.insert("name".into(), "fedavg".into());
            let training = entry.strategy.get("training");
            strategy.extend(training.map(|value| ("training".into(), value.clone())));
        }
        if let Some(training) = &self.training {
            strategy
                .entry("training")
                .or_insert_with(|| Value::Table(training.clone()));
        }
        let mut whole = self.scenario.clone();
        whole.insert("name".into(), self.name.as_str().into());
        // What is trained alone, or on all rows at once, shows its model to nobody.
        if (entry.is_reference() || entry.name() == "local") && self.is_masked() {
            whole.remove("privacy");
        }
        whole.insert("strategy".into(), Value::Table(strategy));
        for (path, value) in variant.set.iter().chain(&entry.set) {
            set(&mut whole, path, value.clone());
        }
        for (path, value) in point {
            match path.strip_prefix("scenario.") {
                Some(path) => set(&mut whole, path, value.clone()),
                None => set(&mut whole, &format!("strategy.{path}"), value.clone()),
            }
        }
        let first = whole.get("seed").and_then(Value::as_integer).unwrap_or(1);
        whole.insert("seed".into(), Value::Integer(first + seed as i64));
        let refused = |what| self.refused(variant, entry, what);
        let text = toml::to_string(&whole).map_err(|error| refused(error.to_string()))?;
        let mut scenario = Scenario::parse(&self.file, &text).map_err(|error| match error {
            simulations::ScenarioError::At(error) => refused(error.what),
            error => refused(error.to_string()),
        })?;
        scenario.resolve(&self.folder);
        // Paths of the command line are relative to where the command runs.
        let chosen = self.origin.choices.learner.clone();
        scenario.learner = chosen.or(scenario.learner);
        Ok(scenario)
    }

    /// Returns whether rounds are with secure aggregation, without noise.
    pub(super) fn is_masked(&self) -> bool {
        let mode = self
            .scenario
            .get("privacy")
            .and_then(|privacy| privacy.get("mode"));
        mode.and_then(Value::as_str) == Some("secure-aggregation")
    }

    /// Returns whether the models that silos would serve under a strategy are measured.
    pub(super) fn serves(&self, entry: &ExperimentEntry) -> bool {
        !entry.is_reference() && entry.served.unwrap_or(self.served)
    }

    /// The scenario by which silos train alone before they choose what they serve, on the rows of
    /// `scenario`, a run of `entry`: with the training of the experiment and all its rounds, so that all
    /// strategies share what is trained.
    pub(super) fn alone(
        &self,
        variant: &Variant,
        entry: &ExperimentEntry,
        scenario: &Scenario,
        seed: usize,
    ) -> Scenario {
        let mut strategy = Table::new();
        strategy.insert("name".into(), "fedavg".into());
        let own = entry.strategy.get("training");
        let own = own.filter(|_| self.training.is_none());
        strategy.extend(own.map(|value| ("training".into(), value.clone())));
        let plain = ExperimentEntry::plain(&entry.label, strategy);
        let shared = self.scenario(variant, &plain, &RunSettings::new(), seed);
        let (training, rounds) = match shared {
            Ok(shared) => (shared.strategy.training, shared.rounds),
            Err(_) => (scenario.strategy.training.clone(), scenario.rounds),
        };
        let average = Method::FedAvg(FedAvgOptions::weighing(WeightRule::Exact));
        let strategy = StrategyConfig {
            standardise: scenario.strategy.standardise,
            ..StrategyConfig::new(average, training)
        };
        Scenario {
            strategy,
            rounds,
            faults: Vec::new(),
            // A silo alone shows its model to nobody.
            privacy: None,
            ..scenario.clone()
        }
    }

    /// The settings that all runs share, for reports.
    pub fn settings(&self) -> &Table {
        &self.scenario
    }
}

/// Sets the value at a path of keys, making tables on the way.
fn set(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(table.insert(path.into(), value)),
        Some((key, rest)) => {
            let inner = table
                .entry(key)
                .or_insert_with(|| Value::Table(Table::new()));
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// The JSON Schema of an experiment.
pub fn schema() -> serde_json::Value {
    agreement::schema_of::<ExperimentFile>("experiment")
}
