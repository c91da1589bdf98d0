//! A federation as a file that people can read and compare: who takes part, and what they agreed
//! on. What it means is hashed, not how it is written: comments and order do not matter.

mod demo;

pub use demo::{Demo, DemoError, Member, demo};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use learn::TaskConfig;
use methods::Strategy;
use methods::strategy::{Names, StrategyConfig, build};
use protocol::charter::{Charter, CharterError, Epoch, Genesis, Rotation, Verification};
use protocol::roster::{RosterError, Silo};
use protocol::{Hash, PublicKey};
use serde::{Deserialize, Serialize};
use simulations::scenario::{Source, Span};
use simulations::{Federation, Scenario, ScenarioError, work};

use crate::identity::{hex, unhex};

/// Why a file of a federation or of a silo cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A place in the file.
    #[error(transparent)]
    At(#[from] ScenarioError),
    /// A file that cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
}

/// What the members of a federation agreed on.
#[derive(Clone)]
pub struct Agreement {
    /// Roster and charter in force, with the ids that follow from them.
    pub epoch: Arc<Epoch>,
    /// What is learned.
    pub task: TaskConfig,
    /// How, as written.
    pub strategy_config: StrategyConfig,
    /// How.
    pub strategy: Arc<dyn Strategy>,
    /// Seed of the initial model, which the charter's `start` follows from.
    pub seed: u64,
    /// Bound on the norm of a contribution; `None`: any.
    pub norm: Option<f64>,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Raw {
    name: String,
    rounds: u64,
    #[serde(default)]
    seed: u64,
    start: String,
    charter: RawCharter,
    task: TaskConfig,
    strategy: StrategyConfig,
    silo: Vec<RawSilo>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawCharter {
    beat: Span,
    patience: u32,
    limit: u32,
    minimum: u16,
    keep: u32,
    blob_limit: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    discovery: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    norm: Option<f64>,
    rotation: Rotation,
    verification: Verification,
    names: RawNames,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawNames {
    Removed,
    Shown,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawSilo {
    name: String,
    key: String,
}

impl Agreement {
    /// What the silos of a simulation would agree on.
    fn of(scenario: &Scenario, federation: &Federation) -> Self {
        Self {
            epoch: federation.epoch.clone(),
            task: scenario.task.clone(),
            strategy_config: scenario.strategy.clone(),
            strategy: federation.members[0].strategy.clone(),
            seed: scenario.seed,
            norm: scenario.charter.norm,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`]: unreadable, or the first thing that is wrong in it.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Self::parse(&file.display().to_string(), &read(file)?)
    }

    /// From the text of a file, which stands in errors as `file`.
    ///
    /// # Errors
    /// [`ConfigError::At`]: the first thing that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let source = Source { file, text };
        let raw: Raw = toml::from_str(text).map_err(|error| source.toml(&error))?;
        let wrong = |path: &str, what: &str| ConfigError::At(source.key_of(path, what));
        let digits = "must be 64 hexadecimal digits";
        let start = unhex(&raw.start).ok_or_else(|| wrong("start", digits))?;
        let beat = raw.charter.beat.0;
        let silo = |(nth, silo): (usize, RawSilo)| {
            let key = unhex(&silo.key);
            let key = key.ok_or_else(|| wrong(&format!("silo.{nth}.key"), digits))?;
            Ok(Silo {
                name: silo.name,
                key: PublicKey(key),
            })
        };
        let silos = raw.silo.into_iter().enumerate().map(silo);
        let silos = silos.collect::<Result<Vec<_>, ConfigError>>()?;
        let norm = raw.charter.norm;
        if norm.is_some_and(|norm| norm.is_nan() || norm <= 0.0) {
            return Err(wrong("charter.norm", "must be above 0"));
        }
        if raw.strategy.standardise != raw.task.common_scale() {
            let what = "must be true exactly where the task says `standardise = \"federation\"`";
            return Err(wrong("strategy.standardise", what));
        }
        let strategy = build(&raw.strategy, silos.len())
            .map_err(|error| wrong("strategy", &format!("is wrong: {error}")))?;
        let charter = Charter {
            name: raw.name,
            work: work(&raw.task, &raw.strategy, norm),
            start: Hash(start),
            rounds: raw.rounds,
            beat_ms: beat.as_millis() as u64,
            patience: raw.charter.patience,
            limit: raw.charter.limit,
            minimum: raw.charter.minimum,
            rotation: raw.charter.rotation,
            verification: raw.charter.verification,
            names_shown: raw.charter.names == RawNames::Shown,
            blob_limit: raw.charter.blob_limit,
            keep: raw.charter.keep,
            discovery: raw.charter.discovery,
        };
        if strategy.names() == Names::Shown && !charter.names_shown {
            let what = "must be \"shown\": the strategy keeps something for every member";
            return Err(wrong("charter.names", what));
        }
        let epoch = Epoch::first(&Genesis { silos, charter });
        let epoch = epoch.map_err(|error| refused(source, &error))?;
        Ok(Self {
            epoch: Arc::new(epoch),
            task: raw.task,
            strategy_config: raw.strategy,
            strategy: strategy.into(),
            seed: raw.seed,
            norm,
        })
    }

    /// As a file, which [`parse`](Self::parse) makes the same of.
    ///
    /// # Errors
    /// What cannot be written in TOML, such as a seed of 2⁶³ and above.
    pub fn to_toml(&self) -> Result<String, String> {
        let charter = &self.epoch.charter;
        let silos = self.epoch.roster.silos();
        let raw = Raw {
            name: charter.name.clone(),
            rounds: charter.rounds,
            seed: self.seed,
            start: hex(&charter.start.0),
            charter: RawCharter {
                beat: Span::millis(charter.beat_ms),
                patience: charter.patience,
                limit: charter.limit,
                minimum: charter.minimum,
                keep: charter.keep,
                blob_limit: charter.blob_limit,
                discovery: charter.discovery,
                norm: self.norm,
                rotation: charter.rotation,
                verification: charter.verification,
                names: match charter.names_shown {
                    true => RawNames::Shown,
                    false => RawNames::Removed,
                },
            },
            task: self.task.clone(),
            strategy: self.strategy_config.clone(),
            silo: silos
                .iter()
                .map(|silo| RawSilo {
                    name: silo.name.clone(),
                    key: silo.key.to_string(),
                })
                .collect(),
        };
        let text = toml::to_string(&raw).map_err(|error| error.to_string())?;
        Ok(format!(
            "# Who takes part in this federation, and what they agreed on: the same at every member.\n\
             # Its id: {:#}\n\n{text}",
            self.epoch.federation
        ))
    }
}

/// The error at the key that it is about.
fn refused(source: Source<'_>, error: &CharterError) -> ConfigError {
    let place = match error {
        CharterError::Roster(RosterError::Size(_)) => "silo".into(),
        CharterError::Roster(RosterError::BadName { member, .. }) => {
            format!("silo.{}.name", member - 1)
        }
        CharterError::Name(_) => "name".into(),
        CharterError::Roster(
            RosterError::Name(name) | RosterError::SharedKey(name) | RosterError::WeakKey(name),
        ) => {
            let written = format!("{name:?}");
            let at = source.text.rfind(&written).unwrap_or(0);
            return ConfigError::At(source.at(at..at, error.to_string()));
        }
        CharterError::Range { key: "rounds", .. } => "rounds".into(),
        CharterError::Range { key, .. } => {
            format!(
                "charter.{}",
                key.replace("beat_ms", "beat").replace('_', "-")
            )
        }
    };
    ConfigError::At(source.at(source.span(&place), error.to_string()))
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> Result<String, ConfigError> {
    learn::file::read_text(file, learn::file::CONFIGURATION).map_err(|reason| ConfigError::File {
        file: file.into(),
        reason,
    })
}

#[cfg(test)]
mod tests;
