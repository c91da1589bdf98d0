//! What is learned and by which rules, checked before there are members: in a scenario, and in the plan
//! that an agreement is drafted from.

use methods::strategy::StrategyConfig;
use task::{TaskConfig, data::DataError};

use crate::agreement::bounds_fault;
use crate::file::PrivacyTable;
use crate::privacy::MaskedTask;
use crate::protocol_config::ProtocolConfig;
use crate::source::{FileError, TomlText};
use crate::strategy::strategy_error;

/// Version of the format of scenarios.
pub const SCENARIO_FORMAT: u32 = 1;

/// What is learned and by which rules.
#[derive(Debug, Clone, Copy)]
pub struct DraftCheck<'a> {
    /// Learning rounds in all.
    pub rounds: u64,
    /// What is learned.
    pub task: &'a TaskConfig,
    /// Strategy by which the members learn.
    pub strategy: &'a StrategyConfig,
    /// Rules of the rounds.
    pub protocol: &'a ProtocolConfig,
    /// The table that says what members see of each other's contributions; `None`: every model.
    pub privacy: Option<&'a PrivacyTable>,
}

impl DraftCheck<'_> {
    /// Checks what the types of a file leave open, for a federation of up to `most` members.
    ///
    /// # Errors
    /// The first value out of its range, at its key.
    pub fn check(&self, source: TomlText<'_>, most: usize) -> Result<(), FileError> {
        self.check_rounds()
            .map_err(|what| source.key_of("rounds", what))?;
        let heartbeat = self.protocol.heartbeat.0.as_millis();
        if !(10..=600_000).contains(&heartbeat) {
            let what = format!("is {heartbeat} ms, it must be between 10ms and 10m");
            return Err(source.key_of("protocol.heartbeat", what));
        }
        if let Err(error) = self.protocol.radius.validate() {
            return Err(source.key_of("protocol.radius", error.to_string()));
        }
        let ProtocolConfig {
            max_model_norm,
            max_weight,
            ..
        } = self.protocol;
        if let Some((key, what)) = bounds_fault(*max_model_norm, *max_weight) {
            return Err(source.key_of(key, what));
        }
        source.keys_of(&self.privacy_faults())?;
        let strategy = self.strategy.validate(most);
        strategy.map_err(|error| strategy_error(source, &error))
    }

    /// Checks the number of rounds.
    ///
    /// # Errors
    /// A clause about `rounds`: the strategy needs more.
    pub fn check_rounds(&self) -> Result<(), String> {
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

    /// The keys that do not go with what members see, by their paths, and why.
    pub fn privacy_faults(&self) -> Vec<(&'static str, String)> {
        let Some(table) = self.privacy else {
            return Vec::new();
        };
        let of = MaskedTask {
            names_shown: false,
            max_model_norm: self.protocol.max_model_norm.is_some(),
            max_weight: self.protocol.max_weight.is_some(),
            continues: false,
            rounds: self.rounds,
            task: self.task,
            strategy: self.strategy,
        };
        let mut faults = table.faults(&of);
        faults.extend(table.split_fault(self.task));
        faults
    }

    /// The task by which members read their rows: with noise every row by itself, see
    /// [`with_noise`](task::TableTask::with_noise).
    ///
    /// # Errors
    /// [`DataError::Config`]: a task that does not go with noise.
    pub fn task_of_rows(&self) -> Result<TaskConfig, DataError> {
        match self.privacy.is_some_and(PrivacyTable::is_noised) {
            true => Ok(self.task.with_noise()?),
            false => Ok(self.task.clone()),
        }
    }
}
