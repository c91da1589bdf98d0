//! `federation.toml`, checked: who takes part and what they agreed on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use learn::TaskConfig;
use methods::Strategy;
use methods::strategy::{Names, StrategyConfig, build};
use protocol::charter::{self, Charter, CharterError, Epoch, Genesis};
use protocol::roster::{RosterError, Silo};
use protocol::{Hash, PublicKey};

use crate::file::{CharterTable, EntryNames, FederationFile, SiloTable};
use crate::source::{FileError, Source};
use crate::span::Span;
use crate::strategy::strategy_error;
use crate::work::Work;

/// Why `federation.toml` or `silo.toml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Something wrong in the file.
    #[error(transparent)]
    At(#[from] FileError),
    /// A file that cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: std::io::Error,
    },
}

/// What the members of a federation agreed on.
#[derive(Clone)]
pub struct Agreement {
    /// Roster and charter, with the ids that follow from them.
    pub epoch: Arc<Epoch>,
    /// What is learned.
    pub task: TaskConfig,
    /// The strategy's name and options.
    pub strategy_config: StrategyConfig,
    /// The strategy itself.
    pub strategy: Arc<dyn Strategy>,
    /// Seed of the initial model, whose hash is the charter's `start`.
    pub seed: u64,
    /// Bound on the norm of a contribution; `None`: any.
    pub norm: Option<f64>,
}

impl Agreement {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`]: unreadable, or the first thing that is wrong in it.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Self::parse(&file.display().to_string(), &read_configuration(file)?)
    }

    /// From the text of a file, which stands in errors as `file`.
    ///
    /// # Errors
    /// [`ConfigError::At`]: the first thing that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let source = Source { file, text };
        source.check_format(charter::FORMAT)?;
        let raw: FederationFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        let wrong = |path: &str, what: &str| ConfigError::At(source.key_of(path, what));
        let digits = "must be 64 hexadecimal digits";
        let start = digits_of(&raw.start).ok_or_else(|| wrong("start", digits))?;
        let beat = raw.charter.beat.0;
        if !beat.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(wrong("charter.beat", "must be whole milliseconds"));
        }
        let silo = |(nth, silo): (usize, SiloTable)| {
            let key = digits_of(&silo.key);
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
        if let TaskConfig::Table(task) = &raw.task {
            task.check()
                .map_err(|error| wrong("task", &error.to_string()))?;
            if task.schema.is_none() && task.data.is_none() {
                let what = "needs a `schema`, which says what everybody's rows are, or `data`";
                return Err(wrong("task.table", what));
            }
        }
        if raw.strategy.standardise != raw.task.common_scale() {
            let what = "must be true exactly where the task says `standardise = \"federation\"`";
            return Err(wrong("strategy.standardise", what));
        }
        let strategy =
            build(&raw.strategy, silos.len()).map_err(|error| strategy_error(source, &error))?;
        let work = Work {
            task: &raw.task,
            strategy: &raw.strategy,
            norm,
            seed: raw.seed,
        };
        let work = work.encode();
        let work = work.map_err(|error| wrong("task", &format!("cannot be encoded: {error}")))?;
        let charter = Charter {
            name: raw.name,
            work,
            start: Hash(start),
            rounds: raw.rounds,
            beat_ms: beat.as_millis() as u64,
            patience: raw.charter.patience,
            limit: raw.charter.limit,
            minimum: raw.charter.minimum,
            rotation: raw.charter.rotation,
            verification: raw.charter.verification,
            names_shown: raw.charter.names == EntryNames::Shown,
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

    /// The text of the file; [`parse`](Self::parse) reads the same agreement from it.
    ///
    /// # Errors
    /// What cannot be written in TOML, such as a seed of 2⁶³ and above.
    pub fn to_toml(&self) -> Result<String, String> {
        let charter = &self.epoch.charter;
        let silos = self.epoch.roster.silos();
        let raw = FederationFile {
            format: charter::FORMAT,
            name: charter.name.clone(),
            rounds: charter.rounds,
            seed: self.seed,
            start: HEXLOWER.encode(&charter.start.0),
            charter: CharterTable {
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
                    true => EntryNames::Shown,
                    false => EntryNames::Removed,
                },
            },
            task: self.task.clone(),
            strategy: self.strategy_config.clone(),
            silo: silos
                .iter()
                .map(|silo| SiloTable {
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

/// The 32 bytes that 64 hexadecimal digits stand for.
fn digits_of(text: &str) -> Option<[u8; 32]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// The text of a configuration file.
///
/// # Errors
/// [`ConfigError::File`]: not a regular file, too large, not UTF-8, or an error of the system.
pub fn read_configuration(file: &Path) -> Result<String, ConfigError> {
    learn::file::read_text(file, learn::file::CONFIGURATION).map_err(|reason| ConfigError::File {
        file: file.into(),
        reason,
    })
}
