//! The plan of a federation: what is learned and by which rules, before it has members.
//!
//! It is written as a scenario, of which everything counts that an agreement has; what only a simulation
//! has (links, faults, numbers of silos …) is passed over.

use std::path::Path;

use agreement::{DraftCheck, FileError, PrivacyTable, ProtocolConfig, SCENARIO_FORMAT, TomlText};
use learn::external::LearnerConfig;
use methods::strategy::StrategyConfig;
use protocol::roster::MOST_MEMBERS;
use serde::Deserialize;
use serde::de::IgnoredAny;
use task::TaskConfig;

/// Names and texts of scenarios that need no file.
pub type BuiltInTexts = &'static [(&'static str, &'static str)];

/// What is learned and by which rules.
#[derive(Debug, Clone, PartialEq)]
pub struct FederationPlan {
    /// Name of the federation.
    pub name: String,
    /// Seed of the initial model.
    pub seed: u64,
    /// Learning rounds in all, a round that agrees on a common scale included.
    pub rounds: u64,
    /// Number of silos that the data here are partitioned into; `None`: as many as they have.
    pub silos: Option<usize>,
    /// What is learned.
    pub task: TaskConfig,
    /// The program that trains the models, where Rota does not.
    pub learner: Option<LearnerConfig>,
    /// Strategy by which the members learn.
    pub strategy: StrategyConfig,
    /// Rules of the rounds.
    pub protocol: ProtocolConfig,
    /// What members see of each other's contributions; `None`: every model.
    pub privacy: Option<PrivacyTable>,
}

/// Why a plan cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Something wrong in the file.
    #[error(transparent)]
    At(#[from] FileError),
    /// An option of the command line.
    #[error("{0}")]
    Override(String),
    /// A file that cannot be read.
    #[error("cannot read the scenario {file}: {why}{known}")]
    File {
        /// The file.
        file: String,
        /// The system's error.
        why: String,
        /// The built-in ones, and which of them is meant, if one is like it.
        known: String,
    },
}

/// A scenario as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[allow(
    dead_code,
    reason = "keys of simulations are named so that only unknown ones are refused"
)]
struct PlanFile {
    name: String,
    #[serde(default)]
    seed: u64,
    rounds: u64,
    silos: Option<usize>,
    task: TaskConfig,
    learner: Option<LearnerConfig>,
    strategy: StrategyConfig,
    #[serde(default)]
    protocol: ProtocolConfig,
    privacy: Option<PrivacyTable>,
    format: Option<IgnoredAny>,
    description: Option<IgnoredAny>,
    #[serde(rename = "unseen")]
    outside: Option<IgnoredAny>,
    newcomers: Option<IgnoredAny>,
    serve: Option<IgnoredAny>,
    device: Option<IgnoredAny>,
    device_slots: Option<IgnoredAny>,
    network: Option<IgnoredAny>,
    costs: Option<IgnoredAny>,
    fault: Option<IgnoredAny>,
}

impl FederationPlan {
    /// Loads the built-in scenario of that name, or the scenario in that file.
    ///
    /// # Errors
    /// [`PlanError`]: the file cannot be read, or the first error in it.
    pub fn load(name: &str, built_in: BuiltInTexts) -> Result<Self, PlanError> {
        if let Some((name, text)) = built_in.iter().find(|(known, _)| *known == name) {
            return Self::parse(&format!("{name}.toml (built in)"), text);
        }
        let text = task::file::read_text(Path::new(name), task::file::CONFIGURATION);
        let text = text.map_err(|error| PlanError::File {
            file: name.into(),
            why: error.to_string(),
            known: known(name, built_in),
        })?;
        let mut plan = Self::parse(name, &text)?;
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        plan.task.resolve(folder);
        if let Some(learner) = &mut plan.learner {
            learner.resolve(folder);
        }
        Ok(plan)
    }

    /// Reads a plan from the text of a scenario; errors name `file`.
    ///
    /// # Errors
    /// [`PlanError::At`]: the first error in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, PlanError> {
        let source = TomlText { file, text };
        source.check_format(SCENARIO_FORMAT)?;
        let raw: PlanFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        let mut strategy = raw.strategy;
        strategy.standardise = raw.task.common_scale();
        strategy.set_rounds(raw.rounds);
        let plan = Self {
            name: raw.name,
            seed: raw.seed,
            rounds: raw.rounds,
            silos: raw.silos,
            task: raw.task,
            learner: raw.learner,
            strategy,
            protocol: raw.protocol,
            privacy: raw.privacy,
        };
        plan.checked().check(source, MOST_MEMBERS)?;
        if let Some(Err(error)) = plan.learner.as_ref().map(LearnerConfig::check) {
            return Err(source.at(source.span("learner"), error.to_string()).into());
        }
        Ok(plan)
    }

    /// Returns what of it can be checked before there are members.
    pub fn checked(&self) -> DraftCheck<'_> {
        DraftCheck {
            rounds: self.rounds,
            task: &self.task,
            strategy: &self.strategy,
            protocol: &self.protocol,
            privacy: self.privacy.as_ref(),
        }
    }
}

/// The built-in scenarios, and which of them `name` may mean.
fn known(name: &str, built_in: BuiltInTexts) -> String {
    let names = || built_in.iter().map(|(name, _)| *name);
    match built_in {
        [] => String::new(),
        _ => format!(
            "; the built-in scenarios are {}{}",
            names().collect::<Vec<_>>().join(", "),
            task::data::nearest(name, names())
        ),
    }
}
