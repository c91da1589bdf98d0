//! `node.toml` as it is written: the tables and keys of the file.

use std::num::NonZero;
use std::path::PathBuf;

use learn::DeviceName;
use learn::external::LearnerConfig;
use methods::robust::Radius;
use methods::serving::ServeConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use task::data::OwnRows;

use crate::policy::PolicyTable;

/// Version of the format of `node.toml`.
pub(super) const FORMAT: u32 = 1;

/// The configuration of one institution's node. Paths are relative to this file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SiloFile {
    /// Version of this file's format.
    #[serde(default = "newest")]
    #[schemars(range(min = 1, max = 1))]
    pub(super) format: u32,
    /// The agreement, `federation.toml`: one with the same id at every member.
    pub(super) federation: PathBuf,
    /// The file of the institution's secret key, made by `rota identity new`.
    pub(super) identity: PathBuf,
    /// The institution's signed consent to the agreement, made by `rota federation join` or `sign`, by
    /// default "consent.toml". At the beginning a node starts only on the agreement that was signed;
    /// after a change it runs, and contributes only once the institution has signed or approved the new
    /// agreement, or if its policy lets that change go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) consent: Option<PathBuf>,
    /// The folder of journal and models. Never put back an old copy of it.
    pub(super) state: PathBuf,
    /// Addresses to listen at, such as "/ip4/0.0.0.0/udp/4001/quic-v1" for QUIC or
    /// "/ip4/0.0.0.0/tcp/4001" for TCP.
    pub(super) listen: Vec<String>,
    /// True if other nodes can connect to this one, by default `true`. `false` for a node behind NAT or a firewall that
    /// lets no connection in: it connects to the others, and other members pass on the connections of those that it
    /// cannot connect to.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) reachable: bool,
    /// True if this node passes on connections between members that cannot connect to each other, by
    /// default `true`. It sees their addresses and how much they send; what they send is encrypted
    /// between the two.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) relay: bool,
    /// Seed that splits the institution's rows into training, validation and test, and of
    /// their order in training.
    #[serde(default)]
    pub(super) seed: u64,
    /// The institution's robustness radius, in standardised units: a number, or a rule that chooses
    /// one. It stays at the institution.
    #[serde(default)]
    pub(super) radius: Radius,
    /// Start of an agreement from what the proposer's program held, or from an earlier federation: the file of the
    /// model that it starts from, or the state folder of the node that took part in the earlier one. By default the
    /// file `start.safetensors` beside the agreement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) start_model: Option<PathBuf>,
    /// Choice of the model that the institution serves after the last round, on rows of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) serve: ServeConfig,
    /// The program that trains the models, such as `["python3", "learner.py"]`. By default Rota
    /// trains; with [task.external] there must be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) learner: Option<LearnerConfig>,
    /// Device on which the node trains: `"cpu"` (the default), `"tch-cpu"` or `"tch-cuda:0"`, as `rota devices` lists
    /// them. The institution's own matter: no other member sees it.
    #[serde(default, skip_serializing_if = "is_cpu")]
    pub(super) device: DeviceName,
    /// Trainings and evaluations on the device at a time. By default one for every core of a processor,
    /// and one on a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(super) device_slots: Option<NonZero<u16>>,
    /// The institution's rows. Only with [task.external] there are none: the program reads its own.
    #[serde(default, skip_serializing_if = "DataTable::is_empty")]
    pub(super) data: DataTable,
    /// The page and the metrics of the node, for this machine. Off without this table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) http: Option<HttpTable>,
    /// Limits of the institution for its own node, whatever the agreement states.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) policy: PolicyTable,
    /// Other members and their addresses, one table `[[peer]]` for each, in place of those in the
    /// agreement. Members without any are reached when they connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) peer: Vec<PeerTable>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_cpu(device: &DeviceName) -> bool {
    *device == DeviceName::Cpu
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn newest() -> u32 {
    FORMAT
}

/// The institution's rows: either `rows` or `share`.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DataTable {
    /// A share of the task's own data, to try a federation out: "3 of 8" is the third of eight
    /// silos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^ *[0-9]+ * of  *[0-9]+ *$"))]
    pub(super) share: Option<String>,
    /// With `share`: the folder of data that are in files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folder: Option<PathBuf>,
    /// The institution's own files, which are read by the agreed schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<Box<OwnRows>>,
}

impl DataTable {
    pub(super) fn is_empty(&self) -> bool {
        self.share.is_none() && self.folder.is_none() && self.rows.is_none()
    }
}

/// The page and the metrics of the node over HTTP.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HttpTable {
    /// Address and port at which the node serves a page (`/`) and metrics for Prometheus (`/metrics`),
    /// such as "127.0.0.1:9600". Other machines must not reach it: put a reverse proxy in front.
    pub(super) listen: String,
}

/// Addresses of another member.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PeerTable {
    /// Its name in the agreement.
    pub(super) name: String,
    /// Its addresses, such as "/dns4/rota.example.org/udp/4001/quic-v1".
    pub(super) addresses: Vec<String>,
}
