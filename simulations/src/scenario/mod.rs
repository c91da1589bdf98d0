//! Scenarios: the task, the strategy, the network and the faults of a simulated federation.
//!
//! A scenario is a TOML file. [`Scenario::parse`] reads it and checks every value, so that a
//! [`Scenario`] can be run as it is.

mod error;
mod fault;
mod file;

use std::path::Path;

use agreement::{
    DraftCheck, FileError, PrivacyTable, ProtocolConfig, SCENARIO_FORMAT, TomlText, silo_seed,
};
use learn::external::{LearnerConfig, external_study};
use learn::{DeviceChoice, DeviceName, Study, TaskStudy};
use methods::strategy::StrategyConfig;
use protocol::MemberIndex;
use task::{TaskConfig, data::DataError};

use crate::network::LinkConfig;
use crate::pool::Costs;

pub use bare::script::{Fault, FaultTime, KillTarget};
pub use error::ScenarioError;
use file::{FaultsFile, ScenarioFile};
pub use methods::serving::ServeConfig;

/// The built-in scenarios: name and text. The first is simulated where none is named: one in which learning
/// together pays.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "breast-cancer",
        include_str!("../../scenarios/breast-cancer.toml"),
    ),
    ("diabetes", include_str!("../../scenarios/diabetes.toml")),
    ("heart", include_str!("../../scenarios/heart.toml")),
    ("digits20", include_str!("../../scenarios/digits20.toml")),
    ("digits100", include_str!("../../scenarios/digits100.toml")),
    ("null", include_str!("../../scenarios/null.toml")),
    ("rotation", include_str!("../../scenarios/rotation.toml")),
];

/// Largest number of silos of a federation, without messages; over a network it is
/// [`MOST_MEMBERS`](protocol::roster::MOST_MEMBERS).
pub const MOST_SILOS: usize = u16::MAX as usize;

/// A scenario that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The file, for errors that are found later.
    pub file: String,
    /// Name of the scenario.
    pub name: String,
    /// A sentence about it, for the report.
    pub description: String,
    /// Seed that everything random follows from.
    pub seed: u64,
    /// Learning rounds in all, a round that agrees on a common scale included.
    pub rounds: u64,
    /// Number of silos; `None`: as many as the task has.
    pub silos: Option<usize>,
    /// Silos that take no part, by name, by position from 0, or by the group that they belong to, such as
    /// a region. Silos without training rows never take part. At the end they are given a model, which
    /// is measured on their rows.
    pub outside: Vec<String>,
    /// Rounds after which the unseen silos are given a model, too, as newcomers of that round; it is
    /// measured on their rows, for the JSON summary. None by default.
    pub newcomers: Vec<u64>,
    /// How a silo chooses the model that it serves at the end.
    pub serve: ServeConfig,
    /// The task: data and model.
    pub task: TaskConfig,
    /// The program that trains the models of silos, where Rota does not.
    pub learner: Option<LearnerConfig>,
    /// Where Rota trains the models.
    pub device: DeviceChoice,
    /// The strategy and its options.
    pub strategy: StrategyConfig,
    /// Rules of the rounds: times, minimum numbers, bounds.
    pub protocol: ProtocolConfig,
    /// What members see of each other's contributions; `None`: every model.
    pub privacy: Option<PrivacyTable>,
    /// The simulated links between silos.
    pub network: LinkConfig,
    /// How long work takes in virtual time.
    pub costs: Costs,
    /// The scripted faults.
    pub faults: Vec<Fault>,
}

/// Changes from the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The seed.
    pub seed: Option<u64>,
    /// The rounds.
    pub rounds: Option<u64>,
    /// The number of silos.
    pub silos: Option<usize>,
    /// Name of a strategy. Another strategy than the scenario's gets the scenario's training and its own
    /// defaults.
    pub strategy: Option<String>,
    /// The program that trains the models of all silos.
    pub learner: Option<LearnerConfig>,
    /// Where Rota trains the models.
    pub device: Option<DeviceName>,
}

impl Scenario {
    /// Loads the built-in scenario of that name, or the scenario in that file.
    ///
    /// # Errors
    /// [`ScenarioError`]: the file cannot be read, or the first error in it.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Self::parse(&format!("{name}.toml (built in)"), text);
        }
        let text = task::file::read_text(Path::new(name), task::file::CONFIGURATION);
        let text = text.map_err(|error| {
            let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let (file, why) = (name.into(), error.to_string());
            ScenarioError::File {
                file,
                why,
                near: task::data::nearest(name, names.iter().copied()),
                built_in: names.join(", "),
            }
        })?;
        let mut scenario = Self::parse(name, &text)?;
        scenario.resolve(Path::new(name).parent().unwrap_or(Path::new("")));
        Ok(scenario)
    }

    /// Returns whether the scenario asks for something that only a federation over a network has: faults of
    /// messages, links or times of its own, or sums without noise. Noise needs no network.
    pub fn needs_network(&self) -> bool {
        let masked = |table: &PrivacyTable| table.is_masked() && !table.is_noised();
        self.faults.iter().any(Fault::needs_network)
            || self.privacy.as_ref().is_some_and(masked)
            || self.network != LinkConfig::default()
            || self.costs != Costs::default()
    }

    /// Returns whether silos add noise to what they send.
    pub fn is_noised(&self) -> bool {
        self.privacy.as_ref().is_some_and(PrivacyTable::is_noised)
    }

    /// The task by which silos read their rows: with noise every row by itself, see
    /// [`with_noise`](task::TableTask::with_noise).
    ///
    /// # Errors
    /// [`DataError::Config`]: a task that does not go with noise.
    pub fn task_of_rows(&self) -> Result<TaskConfig, DataError> {
        self.checked_with(&self.strategy).task_of_rows()
    }

    /// Returns what is learned and by which rules, under a strategy.
    fn checked_with<'a>(&'a self, strategy: &'a StrategyConfig) -> DraftCheck<'a> {
        DraftCheck {
            rounds: self.rounds,
            task: &self.task,
            strategy,
            protocol: &self.protocol,
            privacy: self.privacy.as_ref(),
        }
    }

    /// Makes its paths relative to the folder of the file that it is written in.
    pub fn resolve(&mut self, folder: &Path) {
        self.task.resolve(folder);
        if let Some(learner) = &mut self.learner {
            learner.resolve(folder);
        }
    }

    /// Reads a scenario from its text; errors name `file`.
    ///
    /// # Errors
    /// [`ScenarioError::At`]: the first error in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        Ok(Self::read(TomlText { file, text })?)
    }

    fn read(source: TomlText<'_>) -> Result<Self, FileError> {
        let TomlText { file, text } = source;
        source.check_format(SCENARIO_FORMAT)?;
        let raw: ScenarioFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        check_silos(raw.silos).map_err(|what| source.key_of("silos", what))?;
        let mut strategy = raw.strategy;
        strategy.standardise = raw.task.common_scale();
        strategy.set_rounds(raw.rounds);
        let scenario = Self {
            file: file.into(),
            name: raw.name,
            description: raw.description,
            seed: raw.seed,
            rounds: raw.rounds,
            silos: raw.silos,
            outside: raw.outside,
            newcomers: raw.newcomers,
            serve: raw.serve,
            task: raw.task,
            learner: raw.learner,
            device: DeviceChoice {
                name: raw.device,
                slots: raw.device_slots,
            },
            strategy,
            protocol: raw.protocol,
            privacy: raw.privacy,
            network: raw.network,
            costs: raw.costs,
            faults: raw
                .fault
                .into_iter()
                .enumerate()
                .map(|(nth, fault)| fault.validate(nth, source))
                .collect::<Result<_, _>>()?,
        };
        scenario.check(source)?;
        Ok(scenario)
    }

    /// Checks what the types of the file leave open.
    ///
    /// # Errors
    /// The first value out of its range, at its key.
    fn check(&self, source: TomlText<'_>) -> Result<(), FileError> {
        self.checked_with(&self.strategy)
            .check(source, MOST_SILOS)?;
        let trains = self.strategy.first_training();
        let wrong = |round: &&u64| !(trains..=self.rounds).contains(round);
        if let Some(round) = self.newcomers.iter().find(wrong) {
            let what = format!(
                "names the round {round}, it must be between {trains}, the first that trains, and {}",
                self.rounds
            );
            return Err(source.key_of("newcomers", what));
        }
        if let Some(Err(error)) = self.learner.as_ref().map(LearnerConfig::check) {
            return Err(source.at(source.span("learner"), error.to_string()));
        }
        if let Err(error) = self.device.check() {
            return Err(source.at(source.span("device"), format!("`device`: {error}")));
        }
        if let Err(what) = self.serve.check() {
            return Err(source.key_of("serve.folds", format!("is {}, it {what}", self.serve.folds)));
        }
        match self.network.fault() {
            Some((key, allowed)) => {
                Err(source.key_of(&format!("network.{key}"), format!("must be {allowed}")))
            }
            None => Ok(()),
        }
    }

    /// The first key that does not go with what members see, by its path, and why, under a strategy.
    pub fn privacy_fault(&self, strategy: &StrategyConfig) -> Option<(&'static str, String)> {
        let faults = self.checked_with(strategy).privacy_faults();
        faults.into_iter().next()
    }

    /// The scenario with changes from the command line.
    ///
    /// # Errors
    /// [`ScenarioError::Override`]: an unknown strategy, or a number out of range.
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
        self.learner = overrides.learner.clone().or(self.learner);
        self.device.name = overrides.device.unwrap_or(self.device.name);
        let device = self.device.check();
        device.map_err(|error| ScenarioError::Override(error.to_string()))?;
        self.checked_with(&self.strategy)
            .check_rounds()
            .map_err(|what| ScenarioError::Override(format!("--rounds {what}")))?;
        self.strategy.set_rounds(self.rounds);
        Ok(self)
    }

    /// The data of its task, partitioned into silos, each with its learner. `folder` is that of data
    /// files.
    ///
    /// # Errors
    /// [`DataError`]: data that cannot be read or partitioned, a program that cannot be started.
    pub fn study(&self, folder: Option<&Path>) -> Result<Study, DataError> {
        let (silos, seed) = (self.silos, self.seed);
        let device = self.device.open();
        let device = device.map_err(|error| DataError::Config(error.to_string()))?;
        let study = match &self.learner {
            None => self.task_of_rows()?.study(silos, folder, seed),
            Some(learner) => {
                let own = |place: usize| silo_seed(seed, MemberIndex(place as u16));
                let learner = learner.with_rounds(self.rounds);
                external_study(&self.task, &learner, silos, folder, seed, own)
            }
        };
        Ok(study?.on(&device))
    }
}

/// The faults of a file that holds nothing but `[[fault]]` tables, as in a scenario; errors name
/// `file`.
///
/// # Errors
/// [`ScenarioError::At`]: the first error in the text.
pub fn faults(file: &str, text: &str) -> Result<Vec<Fault>, ScenarioError> {
    let source = TomlText { file, text };
    let raw: FaultsFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
    let faults = raw.fault.into_iter().enumerate();
    let faults = faults.map(|(nth, fault)| fault.validate(nth, source));
    Ok(faults.collect::<Result<_, _>>()?)
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
mod played;
#[cfg(test)]
mod tests;
