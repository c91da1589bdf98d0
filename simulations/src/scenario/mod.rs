//! Scenarios: what a federation learns, how, and which faults happen.
//!
//! A scenario is a TOML file. [`Scenario::parse`] reads it and checks every value, so that a
//! [`Scenario`] can be run as it is.

mod charter;
mod error;
mod fault;
mod file;

use std::path::Path;

use agreement::{FileError, Source, strategy_error};
use learn::TaskConfig;
use methods::strategy::StrategyConfig;

use crate::network::LinkConfig;
use crate::pool::Costs;

pub use charter::CharterConfig;
pub use error::ScenarioError;
pub use fault::{Fault, When, Who};
pub use file::ServeConfig;
use file::{FORMAT, ScenarioFile};

/// The scenarios that the program carries: name and text. The first is the default.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("diabetes", include_str!("../../scenarios/diabetes.toml")),
    ("heart", include_str!("../../scenarios/heart.toml")),
    ("digits20", include_str!("../../scenarios/digits20.toml")),
    ("digits100", include_str!("../../scenarios/digits100.toml")),
    ("null", include_str!("../../scenarios/null.toml")),
];

/// Most silos of a federation: as many as a roster holds.
pub const MOST_SILOS: usize = 1000;

/// A scenario that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The file, for what turns out to be wrong with it only later.
    pub file: String,
    /// Its name.
    pub name: String,
    /// What it shows, for people.
    pub description: String,
    /// Everything random follows from it.
    pub seed: u64,
    /// Learning rounds in all, a round that agrees on a common scale included.
    pub rounds: u64,
    /// Number of silos; `None`: as many as the task has.
    pub silos: Option<usize>,
    /// Silos that take no part, by name or by place from 0: what they get in the end is measured.
    pub outside: Vec<String>,
    /// What a silo compares before it serves a model.
    pub serve: ServeConfig,
    /// What is learned.
    pub task: TaskConfig,
    /// How.
    pub strategy: StrategyConfig,
    /// What the members agree on besides.
    pub charter: CharterConfig,
    /// What the links are like.
    pub network: LinkConfig,
    /// How long work takes.
    pub costs: Costs,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// What the command line may change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The seed.
    pub seed: Option<u64>,
    /// The rounds.
    pub rounds: Option<u64>,
    /// The number of silos.
    pub silos: Option<usize>,
    /// The strategy, by name: the scenario's own options if it is the scenario's, the same tuning
    /// and defaults otherwise.
    pub strategy: Option<String>,
}

impl Scenario {
    /// The scenario of that name, or in that file.
    ///
    /// # Errors
    /// [`ScenarioError`]: neither, or something wrong in it.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Self::parse(&format!("{name}.toml (built in)"), text);
        }
        let text = learn::file::read_text(Path::new(name), learn::file::CONFIGURATION);
        let text = text.map_err(|error| {
            let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let (file, why) = (name.into(), error.to_string());
            ScenarioError::File {
                file,
                why,
                built_in: names.join(", "),
            }
        })?;
        Self::parse(name, &text)
    }

    /// A scenario from its text; `file` stands in errors.
    ///
    /// # Errors
    /// [`ScenarioError::At`]: the first thing that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        Ok(Self::read(Source { file, text })?)
    }

    fn read(source: Source<'_>) -> Result<Self, FileError> {
        let Source { file, text } = source;
        source.check_format(FORMAT)?;
        let raw: ScenarioFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        check_silos(raw.silos).map_err(|what| source.key_of("silos", what))?;
        let mut strategy = raw.strategy;
        // One key of the task says it for both, so that they cannot contradict each other.
        if std::mem::replace(&mut strategy.standardise, raw.task.common_scale()) {
            let what = "is no option here: write `standardise = \"federation\"` in [task.table]";
            return Err(source.key_of("strategy.standardise", what));
        }
        let scenario = Self {
            file: file.into(),
            name: raw.name,
            description: raw.description,
            seed: raw.seed,
            rounds: raw.rounds,
            silos: raw.silos,
            outside: raw.outside,
            serve: raw.serve,
            task: raw.task,
            strategy,
            charter: raw.charter,
            network: raw.network,
            costs: raw.costs,
            faults: raw
                .fault
                .into_iter()
                .enumerate()
                .map(|(nth, fault)| fault.validate(nth, source))
                .collect::<Result<_, _>>()?,
        };
        scenario
            .check_rounds()
            .map_err(|what| source.key_of("rounds", what))?;
        let beat = scenario.charter.beat.0.as_millis();
        if !(10..=600_000).contains(&beat) {
            let what = format!("is {beat} ms, it must be between 10ms and 10m");
            return Err(source.key_of("charter.beat", what));
        }
        let CharterConfig { radius, norm, .. } = &scenario.charter;
        if let Err(error) = radius.validate() {
            return Err(source.key_of("charter.radius", error.to_string()));
        }
        if scenario.serve.folds == 1 {
            let what = "is 1, it must be at least 2, or 0 for no comparison";
            return Err(source.key_of("serve.folds", what));
        }
        if norm.is_some_and(|norm| norm.is_nan() || norm <= 0.0) {
            return Err(source.key_of("charter.norm", "must be above 0"));
        }
        if let Some((key, allowed)) = scenario.network.fault() {
            return Err(source.key_of(&format!("network.{key}"), format!("must be {allowed}")));
        }
        let strategy = scenario.strategy.validate(MOST_SILOS);
        strategy.map_err(|error| strategy_error(source, &error))?;
        Ok(scenario)
    }

    /// The scenario with changes from the command line.
    ///
    /// # Errors
    /// [`ScenarioError::Override`]: no such strategy, or a number that cannot be.
    pub fn with(mut self, overrides: &Overrides) -> Result<Self, ScenarioError> {
        self.seed = overrides.seed.unwrap_or(self.seed);
        self.rounds = overrides.rounds.unwrap_or(self.rounds);
        self.silos = overrides.silos.or(self.silos);
        check_silos(self.silos)
            .map_err(|what| ScenarioError::Override(format!("--silos {what}")))?;
        if let Some(name) = &overrides.strategy {
            let switched = self.strategy.switch(name);
            self.strategy = switched.map_err(|error| ScenarioError::Override(error.to_string()))?;
        }
        self.check_rounds()
            .map_err(|what| ScenarioError::Override(format!("--rounds {what}")))?;
        Ok(self)
    }

    fn check_rounds(&self) -> Result<(), String> {
        let least = self.strategy.least_rounds();
        let why = match (self.strategy.standardise, least) {
            (_, 1) => "",
            (true, 2) => ": one to agree on a common scale, one to train",
            (false, _) => ": one to train, one to measure coalitions",
            (true, _) => {
                ": one to agree on a common scale, one to train, one to measure coalitions"
            }
        };
        if self.rounds >= least {
            return Ok(());
        }
        Err(format!(
            "is {}, it must be at least {least}{why}",
            self.rounds
        ))
    }
}

/// The JSON Schema of a scenario.
pub fn schema() -> serde_json::Value {
    agreement::schema_of::<ScenarioFile>("scenario")
}

fn check_silos(silos: Option<usize>) -> Result<(), String> {
    match silos {
        Some(silos) if !(1..=MOST_SILOS).contains(&silos) => Err(format!(
            "is {silos}, it must be between 1 and {MOST_SILOS}, the largest federation"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
