//! A scenario as it is written: the tables and keys of the file.

use std::num::NonZero;

use agreement::{PrivacyTable, ProtocolConfig, SCENARIO_FORMAT};
use learn::DeviceName;
use learn::external::LearnerConfig;
use methods::serving::ServeConfig;
use methods::strategy::StrategyConfig;
use serde::Deserialize;
use task::TaskConfig;

use super::fault::RawFault;
use crate::network::LinkConfig;
use crate::pool::Costs;

/// A federation to simulate: what it learns and how, the network, and the faults.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScenarioFile {
    /// Version of this file's format.
    #[serde(default = "newest")]
    #[schemars(range(min = 1, max = 1))]
    #[allow(
        dead_code,
        reason = "checked before the file is read, named here for the schema"
    )]
    pub(super) format: u32,
    /// Name of the scenario and of its federation.
    pub(super) name: String,
    /// What the scenario shows, in a sentence.
    #[serde(default)]
    pub(super) description: String,
    /// Seed that everything random follows from.
    #[serde(default)]
    pub(super) seed: u64,
    /// Number of rounds to learn, a first round that agrees on a common scale included.
    #[schemars(range(min = 1))]
    pub(super) rounds: u64,
    /// Number of silos, from 1 to 1000, or without messages to 65535. Without it: as many as the data have, or 8 where rows can be
    /// distributed over any number.
    #[schemars(range(min = 1, max = 65535))]
    pub(super) silos: Option<usize>,
    /// Silos that take no part, by name, by position from 0, or by the group that they belong to, such as
    /// a region. Silos without training rows never take part. At the end they are given a model, which
    /// is measured on their rows.
    #[serde(default)]
    #[serde(rename = "unseen")]
    pub(super) outside: Vec<String>,
    /// Rounds after which the unseen silos are given a model, too, as newcomers of that round; it is
    /// measured on their rows, for the JSON summary. None by default.
    #[serde(default)]
    #[schemars(extend("x-unit" = "rounds"))]
    pub(super) newcomers: Vec<u64>,
    /// How a silo chooses the model that it serves at the end.
    #[serde(default)]
    pub(super) serve: ServeConfig,
    /// The learning task: data and model.
    pub(super) task: TaskConfig,
    /// The program that trains the models of all silos, or of those that `learner.silos` names. Not
    /// part of the federation's agreement. By default Rota trains.
    #[serde(default)]
    pub(super) learner: Option<LearnerConfig>,
    /// Where Rota trains the models of the silos: `"cpu"`, `"tch-cpu"` or `"tch-cuda:0"`, as
    /// `rota devices` lists them. Not part of the federation's agreement.
    #[serde(default)]
    pub(super) device: DeviceName,
    /// Silos that compute on the device at a time. By default one for every core of a processor, and
    /// one on a GPU.
    #[serde(default)]
    #[schemars(range(min = 1), extend("x-unit" = "silos"))]
    pub(super) device_slots: Option<NonZero<u16>>,
    /// The strategy and its options.
    pub(super) strategy: StrategyConfig,
    /// Rules of the rounds: times, minimum numbers, bounds.
    #[serde(default)]
    pub(super) protocol: ProtocolConfig,
    /// What members see of each other's contributions, as in `federation.toml`. Without it: every model.
    #[serde(default)]
    pub(super) privacy: Option<PrivacyTable>,
    /// The simulated links between silos.
    #[serde(default)]
    pub(super) network: LinkConfig,
    /// How long work takes in virtual time.
    #[serde(default)]
    pub(super) costs: Costs,
    /// Faults, one table `[[fault]]` for each: a kill, a network split, or a Byzantine member.
    #[serde(default)]
    pub(super) fault: Vec<RawFault>,
}

/// A file of faults alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultsFile {
    /// Faults, as in a scenario.
    #[serde(default)]
    pub(super) fault: Vec<RawFault>,
}

fn newest() -> u32 {
    SCENARIO_FORMAT
}
