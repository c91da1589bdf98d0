//! The agreement of a federation, read from `federation.toml` and checked.

use std::iter::repeat;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use methods::Strategy;
use methods::strategy::{Names, QuestionRounds, StrategyConfig, build};
use protocol::parameters::{Epoch, Genesis, ParametersError, ProtocolParameters};
use protocol::roster::{RosterError, Silo};
use protocol::{Formats, Hash, PublicKey};
use questions::QuestionMode;
use task::TaskConfig;
use task::data::DataError;
use task::external::{Initial, StartFrom, TensorConfig};

use crate::asked::check_questions;
use crate::config_error::ConfigError;
use crate::continues::{Continues, Seen};
use crate::file::{
    ContinuesTable, EntryNames, FederationFile, Mode, PrivacyTable, ProtocolTable, SiloTable,
    StatusFor,
};
use crate::privacy;
use crate::question::{AgreedQuestion, learning_rounds, with_questions};
use crate::renamed::current;
use crate::rotation::RotationName;
use crate::serving::ServingTable;
use crate::source::TomlText;
use crate::span::Span;
use crate::strategy::strategy_error;
use crate::verification::VerificationName;
use crate::work::AgreedWork;

/// Begins the comment with the id.
pub(crate) const ID: &str = "# Its id: ";

/// The agreement of the members of a federation.
#[derive(Clone)]
pub struct Agreement {
    /// Roster and parameter set, with the ids that follow from them.
    pub epoch: Arc<Epoch>,
    /// The learning task.
    pub task: TaskConfig,
    /// The strategy's name and options.
    pub strategy_config: StrategyConfig,
    /// The strategy itself.
    pub strategy: Arc<dyn Strategy>,
    /// Seed of the initial model, whose hash is the parameter set's `start`.
    pub seed: u64,
    /// Largest ℓ2 norm of a contributed model; `None` for no bound.
    pub max_model_norm: Option<f64>,
    /// Largest share of a contribution in the sum of weights; `None` for no bound.
    pub max_weight: Option<f64>,
    /// Audience of a node's status.
    pub status: StatusFor,
    /// The model of an earlier federation that the first round starts from.
    pub continues: Option<Continues>,
    /// The questions that members answer, in this order, in rounds before those that learn.
    pub questions: Vec<AgreedQuestion>,
    /// Agreement to decide together which model each serves, in rounds behind those that learn; `None`: each alone.
    pub serving: Option<ServingTable>,
    /// Addresses of every member's node, in the order of the roster. Not part of the federation's id.
    pub addresses: Vec<Vec<String>>,
    /// Reason for which no member can take part under this agreement. A quorum may have brought such an agreement
    /// into force; one that was read from a file is never unfit.
    pub unfit: Option<Unfit>,
}

/// Reason for which nobody can take part under an agreement that members brought into force.
#[derive(Clone)]
pub struct Unfit {
    /// The reason, in a sentence.
    pub why: String,
    /// The last agreement before it under which members could take part: what has to stay is compared
    /// with that one, so that a change can be undone.
    pub last: Arc<Agreement>,
}

impl Agreement {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, or the first error in it.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Self::parse(&file.display().to_string(), &read_configuration(file)?)
    }

    /// Reads a file that a node kept, also with the names that keys had before.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, or the first error in it.
    pub fn load_kept(file: &Path) -> Result<Self, ConfigError> {
        Self::parse_kept(&file.display().to_string(), &read_configuration(file)?)
    }

    /// Reads a text that a node, a journal or a backup kept, also with the names that keys had before.
    ///
    /// # Errors
    /// [`ConfigError::At`]: the first error in the text.
    pub fn parse_kept(file: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse(file, &current(text))
    }

    /// The task by which institutions read their rows: with noise every row by itself, see
    /// [`with_noise`](task::TableTask::with_noise).
    ///
    /// # Errors
    /// [`DataError::Config`]: a task that does not go with noise. An agreement with one is refused.
    pub fn task_of_rows(&self) -> Result<TaskConfig, DataError> {
        match self.epoch.protocol.privacy.is_noised() {
            true => Ok(self.task.with_noise()?),
            false => Ok(self.task.clone()),
        }
    }

    /// Reads an agreement from the text of a file; errors name `file`.
    ///
    /// # Errors
    /// [`ConfigError::At`]: the first error in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let source = TomlText { file, text };
        source.check_format(Formats::SPOKEN.newest.into())?;
        let mut raw: FederationFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        let wrong = |path: &str, what: &str| ConfigError::At(source.key_of(path, what));
        let start = hash_of(source, "start", &raw.start)?;
        let heartbeat = raw.protocol.heartbeat.0;
        if !heartbeat.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(wrong("protocol.heartbeat", "must be whole milliseconds"));
        }
        let silos = silos_of(source, &raw.silo)?;
        if silos.is_empty() {
            let none = ParametersError::Roster(RosterError::Size(0));
            return Err(refused(source, &none));
        }
        let addresses = raw.silo.iter().map(|silo| silo.addresses.clone()).collect();
        let (max_model_norm, max_weight) = (raw.protocol.max_model_norm, raw.protocol.max_weight);
        if let Some((key, what)) = bounds_fault(max_model_norm, max_weight) {
            return Err(wrong(key, what));
        }
        privacy::check(source, &raw)?;
        check_task(source, &raw.task)?;
        let continues = raw.continues.take();
        let continues = continues.map(|table| continues_of(source, table));
        let continues = continues.transpose()?;
        // A model that is continued has its scale already.
        raw.strategy.standardise = raw.task.common_scale() && continues.is_none();
        raw.strategy.scale_agreed = raw.task.common_scale() && continues.is_some();
        let mode = raw.privacy.as_ref().map_or(Mode::Clear, |table| table.mode);
        let mode = mode.of_questions();
        let at_last = raw.serving.as_ref().map_or(0, ServingTable::most_rounds);
        let learning = learning_rounds(raw.rounds, &raw.question, mode, at_last);
        raw.strategy.set_rounds(learning.unwrap_or(raw.rounds));
        let strategy =
            build(&raw.strategy, silos.len()).map_err(|error| strategy_error(source, &error))?;
        let work = AgreedWork {
            task: &raw.task,
            strategy: &raw.strategy,
            max_model_norm,
            max_weight,
            status: raw.protocol.status,
            seed: raw.seed,
            continues: continues.as_ref(),
            questions: &raw.question,
            serving: raw.serving.as_ref(),
        };
        let work = work.encode();
        let work = work.map_err(|error| wrong("task", &format!("cannot be encoded: {error}")))?;
        let protocol = parameters_of(source, &raw, start, work)?;
        if strategy.names() == Names::Shown && !protocol.shows_names() {
            let what = "must be \"shown\": the strategy keeps state for every member";
            return Err(wrong("protocol.names", what));
        }
        let format = format_of(source, raw.format)?;
        let epoch = Epoch::first_in(format, &Genesis { silos, protocol });
        let epoch = epoch.map_err(|error| refused(source, &error))?;
        check_questions(source, &raw, &epoch.protocol.privacy)?;
        let last = raw.serving.as_ref().map(|table| {
            let rounds: Arc<dyn QuestionRounds> = Arc::new(table.rounds());
            (rounds, table.most_rounds())
        });
        let terms = (raw.rounds, &epoch.protocol.privacy);
        let strategy = with_questions(strategy.into(), &raw.question, last, terms);
        Ok(Self {
            epoch: Arc::new(epoch),
            task: raw.task,
            strategy_config: raw.strategy,
            strategy,
            seed: raw.seed,
            max_model_norm,
            max_weight,
            status: raw.protocol.status,
            continues,
            questions: raw.question,
            serving: raw.serving,
            addresses,
            unfit: None,
        })
    }

    /// The hash of what is agreed on: members, rules, task, strategy. It depends neither on the epoch that
    /// brings the agreement into force nor on addresses; of a first agreement it is the federation's id.
    /// `None` for members or rules that no first agreement could have.
    pub fn contents(&self) -> Option<Hash> {
        let (silos, protocol) = (self.epoch.roster.silos(), &self.epoch.protocol);
        let genesis = Genesis {
            silos: silos.to_vec(),
            protocol: protocol.clone(),
        };
        let epoch = Epoch::first_in(self.epoch.format, &genesis);
        epoch.ok().map(|epoch| epoch.federation)
    }

    /// The rounds that learn: all but the most that its questions take, and deciding together what to serve.
    pub fn learning_rounds(&self) -> u64 {
        let (rounds, mode) = (self.epoch.protocol.rounds, self.question_mode());
        let serving = self.serving.as_ref();
        let at_last = serving.map_or(0, ServingTable::most_rounds);
        learning_rounds(rounds, &self.questions, mode, at_last).unwrap_or(rounds)
    }

    /// The mode of questions in this federation.
    pub fn question_mode(&self) -> QuestionMode {
        Mode::of(&self.epoch.protocol.privacy).of_questions()
    }

    /// The text of the file; [`parse`](Self::parse) reads the same agreement from it.
    ///
    /// # Errors
    /// A value that cannot be written in TOML, such as a seed of 2⁶³ or more.
    pub fn to_toml(&self) -> Result<String, String> {
        let text = toml::to_string(&self.file()).map_err(|error| error.to_string())?;
        Ok(format!(
            "{}\n{ID}{:#}\n\n{text}",
            "# The agreement of this federation, the same at every member.", self.epoch.federation
        ))
    }

    /// The agreement as federation.toml has it.
    pub(crate) fn file(&self) -> FederationFile {
        let protocol = &self.epoch.protocol;
        let silos = self.epoch.roster.silos();
        FederationFile {
            format: self.epoch.format.into(),
            name: protocol.name.clone(),
            rounds: protocol.rounds,
            seed: self.seed,
            start: HEXLOWER.encode(&protocol.start.0),
            continues: self.continues.as_ref().map(|continues| ContinuesTable {
                name: continues.name.clone(),
                federation: HEXLOWER.encode(&continues.federation.0),
                round: continues.round,
                block: HEXLOWER.encode(&continues.block.0),
                model: HEXLOWER.encode(&continues.model.0),
                mode: continues.seen.mode(),
                group: continues.summed.iter().map(privacy::authors).collect(),
            }),
            protocol: ProtocolTable {
                heartbeat: Span::millis(protocol.heartbeat_ms),
                patience: protocol.patience,
                view_timeout: Some(protocol.view_timeout),
                min_contributions: Some(protocol.min_contributions),
                keep_rounds: protocol.keep_rounds,
                blob_limit: protocol.blob_limit,
                discovery: protocol.discovery,
                max_model_norm: self.max_model_norm,
                max_weight: self.max_weight,
                rotation: RotationName(protocol.rotation),
                verification: VerificationName(protocol.verification),
                names: if protocol.shows_names() {
                    EntryNames::Shown
                } else {
                    EntryNames::Removed
                },
                status: self.status,
            },
            privacy: PrivacyTable::of(&protocol.privacy),
            task: self.task.clone(),
            strategy: self.strategy_config.clone(),
            question: self.questions.clone(),
            serving: self.serving.clone(),
            silo: silos
                .iter()
                .zip(self.addresses.iter().map(Some).chain(repeat(None)))
                .map(|(silo, addresses)| SiloTable {
                    name: silo.name.clone(),
                    key: silo.key.to_string(),
                    rows: silo.rows,
                    addresses: addresses.cloned().unwrap_or_default(),
                })
                .collect(),
        }
    }
}

/// Beats after which the members replace a lead, in a federation of `n` members, where the parameter set
/// does not say it: twice the patience, and one heartbeat for each of f + 4 phases.
pub fn default_view_timeout(patience: u32, n: usize) -> u32 {
    let f = n.saturating_sub(1) as u32 / 3;
    patience.saturating_mul(2).saturating_add(f + 4)
}

/// Line that members are expected to have at least, in megabits per second.
pub const LINE_MBIT: f64 = 30.0;

/// Returns how long a line of this many megabits per second needs for the models of all other members: what
/// a lead fetches before it closes a round, and a member before it signs for one. `straggler-timeout` should
/// be longer, or members with such a line are left out.
pub fn models_take(blob_limit: u64, n: usize, mbit: f64) -> Duration {
    let bits = blob_limit as f64 * 8.0 * n.saturating_sub(1) as f64;
    Duration::try_from_secs_f64(bits / (mbit * 1e6)).unwrap_or(Duration::MAX)
}

/// The patience of a new agreement, in heartbeats: at least `wanted`, and enough for models of this size
/// over a line of [`LINE_MBIT`].
pub fn enough_patience(wanted: u32, blob_limit: u64, n: usize, heartbeat: Duration) -> u32 {
    let heartbeats = models_take(blob_limit, n, LINE_MBIT).as_secs_f64() / heartbeat.as_secs_f64();
    wanted.max(heartbeats.ceil().min(f64::from(u32::MAX)) as u32)
}

/// Fewest contributions of a round, in a federation of `n` members, where the parameter set does not say it:
/// 2f + 1, or more than half of the members where that is more.
pub fn default_min_contributions(n: usize) -> u16 {
    let f = protocol::roster::faulty(n);
    (2 * f + 1).max(n / 2 + 1).min(n) as u16
}

/// The 32 bytes of 64 hexadecimal digits.
///
/// # Errors
/// [`ConfigError::At`]: other text, at its key.
fn hash_of(source: TomlText<'_>, key: &str, text: &str) -> Result<Hash, ConfigError> {
    let wrong = || ConfigError::At(source.key_of(key, "must be 64 hexadecimal digits"));
    digits_of(text).map(Hash).ok_or_else(wrong)
}

/// Returns whether members can learn what the task says.
///
/// # Errors
/// [`ConfigError::At`]: a table or a program that is described wrongly, or not enough.
fn check_task(source: TomlText<'_>, task: &TaskConfig) -> Result<(), ConfigError> {
    let wrong = |path: &str, what: &str| Err(ConfigError::At(source.key_of(path, what)));
    match task {
        TaskConfig::Table(task) => {
            if let Err(error) = task.check() {
                return wrong("task", &error.to_string());
            }
            if task.schema.is_none() && task.data.is_none() {
                let what = "needs a `schema`, which describes the rows of all members, or `data`";
                return wrong("task.table", what);
            }
        }
        TaskConfig::External(task) => {
            if let Err(error) = task.layout() {
                return wrong("task.external", &error.to_string());
            }
            if task.start() == StartFrom::Proposer && task.model.is_none() {
                let what = "needs `model`, the hash of the model that the proposer's program held: make \
                            the agreement with `rota federation new`, which writes it";
                return wrong("task.external", what);
            }
            let held = |tensor: &&TensorConfig| matches!(tensor.initial, Initial::Held(_));
            if task.start() == StartFrom::Tensors
                && let Some(tensor) = task.tensors.iter().find(held)
            {
                let what = format!(
                    "has values of {:?} that only a program has (`initial = \"program\"`): make the \
                     agreement with `rota federation new` and the `learner` of the scenario, which gives \
                     them",
                    tensor.name
                );
                return wrong("task.external", &what);
            }
        }
        TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => {}
    }
    Ok(())
}

/// The earlier federation that a file names.
///
/// # Errors
/// [`ConfigError::At`]: a hash that is none.
fn continues_of(source: TomlText<'_>, table: ContinuesTable) -> Result<Continues, ConfigError> {
    let hash = |key: &str, text: &str| hash_of(source, &format!("continues.{key}"), text);
    Ok(Continues {
        federation: hash("federation", &table.federation)?,
        block: hash("block", &table.block)?,
        model: hash("model", &table.model)?,
        round: table.round,
        name: table.name,
        seen: Seen::of(table.mode),
        summed: table.group.into_iter().map(privacy::group).collect(),
    })
}

/// The parameter set of a file, with the defaults of what it leaves out.
///
/// # Errors
/// [`ConfigError::At`]: a key of `[privacy]` that is missing or out of range.
fn parameters_of(
    source: TomlText<'_>,
    raw: &FederationFile,
    start: Hash,
    work: Vec<u8>,
) -> Result<ProtocolParameters, ConfigError> {
    let (table, members) = (&raw.protocol, raw.silo.len());
    let min_contributions = table
        .min_contributions
        .or_else(|| privacy::min_contributions(raw))
        .unwrap_or(default_min_contributions(members));
    Ok(ProtocolParameters {
        name: raw.name.clone(),
        work,
        start,
        rounds: raw.rounds,
        heartbeat_ms: table.heartbeat.0.as_millis() as u64,
        patience: table.patience,
        view_timeout: table
            .view_timeout
            .unwrap_or(default_view_timeout(table.patience, members)),
        min_contributions,
        rotation: table.rotation.0,
        verification: table.verification.0,
        privacy: privacy::privacy_of(source, raw, min_contributions)?,
        blob_limit: table.blob_limit,
        keep_rounds: table.keep_rounds,
        discovery: table.discovery,
    })
}

/// The format of the members' messages.
///
/// # Errors
/// [`ConfigError::At`]: one that this program does not speak.
fn format_of(source: TomlText<'_>, format: u32) -> Result<u8, ConfigError> {
    let spoken = u8::try_from(format).ok();
    let spoken = spoken.filter(|format| Formats::SPOKEN.contains(*format));
    spoken.ok_or_else(|| {
        let what = format!(
            "is {format}, this version of Rota speaks {}: use an older one, or raise the format with an \
             amendment before the program is updated",
            Formats::SPOKEN
        );
        ConfigError::At(source.key_of("format", &what))
    })
}

/// The members as the protocol has them.
pub(crate) fn silos_of(
    source: TomlText<'_>,
    silos: &[SiloTable],
) -> Result<Vec<Silo>, ConfigError> {
    let silo = |(nth, silo): (usize, &SiloTable)| {
        let key = digits_of(&silo.key);
        let key = key.ok_or_else(|| {
            let path = format!("member.{nth}.key");
            ConfigError::At(source.key_of(&path, "must be 64 hexadecimal digits"))
        })?;
        Ok(Silo {
            name: silo.name.clone(),
            key: PublicKey(key),
            rows: silo.rows,
        })
    };
    silos.iter().enumerate().map(silo).collect()
}

/// The error with the line of its key.
pub(crate) fn refused(source: TomlText<'_>, error: &ParametersError) -> ConfigError {
    let place = match error {
        ParametersError::Roster(RosterError::Size(0)) => {
            let what = "the federation has no members yet: `rota federation add NAME KEY ADDRESS` \
                        adds one";
            return ConfigError::At(source.at(0..0, what));
        }
        ParametersError::Roster(RosterError::Size(_)) => "member".into(),
        ParametersError::Roster(RosterError::BadName { member, .. }) => {
            format!("member.{}.name", member - 1)
        }
        ParametersError::Roster(RosterError::Rows { member, .. }) => {
            format!("member.{}.rows", member - 1)
        }
        ParametersError::Name(_) => "name".into(),
        ParametersError::Roster(
            RosterError::Name(name) | RosterError::SharedKey(name) | RosterError::WeakKey(name),
        ) => {
            let written = format!("{name:?}");
            let at = source.text.rfind(&written).unwrap_or(0);
            return ConfigError::At(source.at(at..at, error.to_string()));
        }
        ParametersError::Range { key: "rounds", .. } => "rounds".into(),
        ParametersError::Range {
            key: key @ ("colluders" | "min-sum-size" | "min-authors"),
            ..
        }
        | ParametersError::Noise { key, .. } => format!("privacy.{key}"),
        ParametersError::Range { key, .. } => format!("protocol.{key}"),
        ParametersError::UndeclaredRows(_) => "member".into(),
        ParametersError::TooFewToMask { .. } => "privacy.mode".into(),
        ParametersError::MaskedUnverified(_) => "protocol.verification".into(),
        ParametersError::Group { .. } | ParametersError::TwoGroups(_) => "privacy.group".into(),
        ParametersError::Shows => "privacy.shows".into(),
        ParametersError::MaskedFormat(_) => "format".into(),
    };
    ConfigError::At(source.at(source.span(&place), error.to_string()))
}

/// Returns what is wrong with the bounds of models and weights: the key, and words that follow it. `None` where the
/// norm is above 0 and the weight a share of at most all, or they are absent.
pub fn bounds_fault(
    max_model_norm: Option<f64>,
    max_weight: Option<f64>,
) -> Option<(&'static str, &'static str)> {
    if max_model_norm.is_some_and(|norm| norm.is_nan() || norm <= 0.0) {
        return Some(("protocol.max-model-norm", "must be above 0"));
    }
    let bad = |share: f64| share.is_nan() || share <= 0.0 || share > 1.0;
    if max_weight.is_some_and(bad) {
        return Some(("protocol.max-weight", "must be above 0 and at most 1"));
    }
    None
}

/// The 32 bytes of 64 hexadecimal digits.
fn digits_of(text: &str) -> Option<[u8; 32]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// The public key that 64 hexadecimal digits stand for; `None` for any other text.
pub fn public_key(text: &str) -> Option<PublicKey> {
    digits_of(text).map(PublicKey)
}

/// The text of a configuration file.
///
/// # Errors
/// [`ConfigError::File`]: not a regular file, too large, not UTF-8, or an error of the system.
pub fn read_configuration(file: &Path) -> Result<String, ConfigError> {
    task::file::read_text(file, task::file::CONFIGURATION).map_err(|reason| ConfigError::File {
        file: file.into(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straggler_timeout_covers_all_models_over_an_ordinary_line() {
        let heartbeat = Duration::from_secs(5);
        // Five models of 300 MB are 12,000 Mbit: 400 s.
        assert_eq!(enough_patience(12, 300_000_000, 6, heartbeat), 80);
        assert_eq!(enough_patience(100, 300_000_000, 6, heartbeat), 100);
        assert_eq!(enough_patience(12, 1_000, 6, heartbeat), 12);
        assert_eq!(enough_patience(12, u64::MAX, 1, heartbeat), 12);
    }
}
