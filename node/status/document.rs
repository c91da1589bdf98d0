//! The status of a node as a document.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::policy::LedgerStatus;
use formatting::numbers;

/// Version of the document's format. It changes when a key changes its meaning or is removed; new keys
/// may come without a new version.
pub const FORMAT: u32 = 1;

/// Status of a running node, by its own word. Times are RFC 3339, in UTC. Keys without a value are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct Status {
    /// Version of this document's format.
    pub format: u32,
    /// Time at which the node made this document.
    pub time: String,
    /// The running program.
    pub node: NodeFacts,
    /// The silo's name in the agreement.
    #[serde(rename = "member")]
    pub silo: String,
    /// Its position in the agreement, from 0.
    #[serde(rename = "member_index")]
    pub member: u16,
    /// The federation.
    pub federation: FederationFacts,
    /// The round under way.
    pub round: u64,
    /// The view of the round: it counts the turns at leading.
    pub view: u64,
    /// The lead of the view. Absent before the first view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// True if this silo leads.
    pub leads: bool,
    /// Current activity of the silo, as text: "training", "waiting for the lead".
    pub phase: String,
    /// Reason for which it takes no part in the federation at the moment. Absent while it takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// Findings of the void sums of secure-aggregation rounds about the members that corrupt them. Absent where none
    /// was void, or nobody is searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void_sums: Option<String>,
    /// The ledger of the institution's source, where its policy names one that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerStatus>,
    /// Reason for which the ledger cannot be read: another process has it, or it is missing or damaged. Absent where it
    /// can, and where the policy names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger_problem: Option<String>,
    /// Facts that others learn from the silo's contributions, in sentences. Empty where rounds are in clear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned: Vec<String>,
    /// True if all agreed rounds are done.
    pub complete: bool,
    /// The training under way, or else the last one of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingProgress>,
    /// The adopted rounds, oldest first, at most the last 100. Of those before the node started, the ones
    /// whose models it keeps (`keep-rounds`).
    pub rounds: Vec<RoundStatus>,
    /// The model that the silo serves after the last round. Absent before it has chosen one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<ServedStatus>,
    /// The other members, in the order of the agreement.
    pub peers: Vec<PeerStatus>,
    /// Traffic since the start.
    pub traffic: TrafficTotals,
    /// The last warnings, oldest first, at most 20.
    pub warnings: Vec<Warning>,
}

/// The running program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct NodeFacts {
    /// Version of the program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Time at which it started.
    pub started: String,
    /// The addresses at which it listens for members.
    pub addresses: Vec<String>,
    /// The address of the page and of the metrics, where they are switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Bytes that are free on the disk of the state folder. Absent where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
}

/// The federation that a node belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct FederationFacts {
    /// Its name.
    pub name: String,
    /// Its id: the hash of the agreement, 64 hexadecimal digits.
    pub id: String,
    /// Number of members.
    pub members: u64,
    /// Agreed number of rounds.
    pub rounds: u64,
    /// Number of members that must be there for a round to become final.
    pub quorum: u64,
    /// Number of members that may fail in any way.
    pub byzantine_members_tolerated: u64,
}

/// The progress of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct TrainingProgress {
    /// True if it is under way.
    pub running: bool,
    /// Steps done.
    pub step: u64,
    /// Steps in all; 0 until it is known.
    pub steps: u64,
    /// Mean training loss of the last finished epoch. Absent where it is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

/// A round that this silo adopted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct RoundStatus {
    /// The round.
    pub round: u64,
    /// Time at which it was adopted; of a round before the node started, the time at which its outcome came to the
    /// state folder.
    pub time: String,
    /// The view in which it became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<u64>,
    /// The lead of that view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// Number of models in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<u64>,
    /// The members whose models are in it. Empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// The silo's own coalition, from 0.
    pub coalition: u32,
    /// Number of coalitions.
    pub coalitions: u64,
    /// Hash of the outcome, 64 hexadecimal digits.
    pub outcome: String,
    /// The silo's own mean training loss in it. Absent where it did not train, the loss is not finite, or
    /// the node was started again since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The adopted model on the silo's own held-out rows. Absent where there are none, and until it is
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutMetrics>,
    /// Time spent since the round before, or since the start, by activity. Absent of rounds before the node started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentSeconds>,
}

/// The model that a silo serves: it need not be the one that it adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct ServedStatus {
    /// The round after which it was chosen.
    pub round: u64,
    /// Name of the model, as text: "the model that it trains alone".
    pub what: String,
    /// True if it is the adopted model, that of its coalition.
    pub adopted: bool,
    /// The served model on the silo's own held-out rows. Absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutMetrics>,
}

/// Time of a round by activity, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct SpentSeconds {
    /// From the round before to this one, or from the start of the node.
    pub seconds: f64,
    /// Of these, without work of its own: it waited for others, or for the network.
    pub waiting: f64,
    /// Until steps of the protocol were durable on the disk.
    pub disk: f64,
    /// In which work of each kind was under way; kinds overlap. "train", "evaluate" (losses of the others'
    /// models), "hold" and "keep" (fetching models), "check" and "settle" (the lead's work, computed again),
    /// "apply" (adopting the outcome), "plan"; as lead "admit" (fetching and checking contributions) and
    /// "decide". In secure-aggregation rounds "prepare" (training), "mask", "verify" (fetching and checking masked
    /// vectors), "unmask" and "combine" (opening the sums), and as lead "check-keys".
    pub work: BTreeMap<String, f64>,
    /// In each phase as lead, by its name: "collecting" waits for contributions, "voting" for votes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leading: BTreeMap<String, f64>,
}

/// Metrics of a model on the silo's own held-out rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct HeldOutMetrics {
    /// Number of held-out rows.
    pub rows: u64,
    /// The metric that reports compare.
    pub metric: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// All metrics by name.
    pub metrics: BTreeMap<String, f64>,
    /// Names of metrics whose value is not finite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_finite: Vec<String>,
}

/// Another member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct PeerStatus {
    /// Its name in the agreement.
    pub name: String,
    /// Its position in the agreement, from 0.
    #[serde(rename = "member_index")]
    pub member: u16,
    /// True if it is connected.
    pub connected: bool,
    /// Since when it is connected, or else since when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The member that relays the connection. Absent where it is direct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Measured round trip in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
    /// Version of its program, as it said when it last connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Attempts to connect that failed since it was last connected.
    pub attempts: u64,
    /// Result of the last attempt, as text that follows the name: "at 192.0.2.7:4001 does not answer over UDP".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// True if it has reported that it holds the last round.
    pub complete: bool,
}

/// Traffic since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct TrafficTotals {
    /// Frames received.
    pub received: u64,
    /// Frames sent to one member.
    pub sent: u64,
    /// Frames published to all members.
    pub published: u64,
    /// Frames and requests that did not fit into the queue to the network.
    pub lost: u64,
    /// Frames that could not be opened.
    pub unopened: u64,
    /// Frames dropped unread.
    pub dropped: u64,
    /// Times that a member was muted.
    pub mutes: u64,
    /// Models and outcomes fetched.
    pub fetched: u64,
    /// Their bytes.
    pub fetched_bytes: u64,
    /// Models and outcomes served to other members.
    pub served: u64,
}

/// A warning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct Warning {
    /// Time of the warning.
    pub time: String,
    /// Text of the warning.
    pub text: String,
}

impl Status {
    /// The last adopted round.
    pub fn adopted(&self) -> Option<&RoundStatus> {
        self.rounds.last()
    }

    /// The last adopted round whose model is measured.
    pub fn measured(&self) -> Option<(&RoundStatus, &HeldOutMetrics)> {
        let mut newest = self.rounds.iter().rev();
        newest.find_map(|round| Some((round, round.held_out.as_ref()?)))
    }

    /// Number of connected members, without this one.
    pub fn connected(&self) -> usize {
        self.peers.iter().filter(|peer| peer.connected).count()
    }

    /// The time between one of the document's times and the document itself, if both can be read.
    pub fn since(&self, time: &str) -> Option<Duration> {
        since(&self.time, time)
    }
}

/// The time from one to another of a document's times, if both can be read.
pub(crate) fn since(now: &str, then: &str) -> Option<Duration> {
    let now = humantime::parse_rfc3339(now).ok()?;
    now.duration_since(humantime::parse_rfc3339(then).ok()?)
        .ok()
}

macro_rules! define_words {
    ($($(#[$doc:meta])* $request:ident, $answer:ident: $name:literal, $text:literal;)*) => {
        /// A kind of work in words.
        fn long_words(name: &str) -> &str {
            match name {
                $($name => $text,)*
                other => other,
            }
        }
    };
}

protocol::work_kinds!(define_words);

/// A kind of work in words that are short enough for several in a line.
fn words(name: &str) -> &str {
    match name {
        "evaluate" => "evaluating models",
        "admit" => "fetching and checking contributions",
        "hold" => "fetching models",
        other => long_words(other),
    }
}

/// Parts of a round's time below this share are not named in a line.
const SHARE: f64 = 0.1;

impl SpentSeconds {
    /// Returns what most of the time went to, for people: `12.3 s: waiting for others 8.1 s, training 3.9 s`.
    pub fn text(&self) -> String {
        // As lead it waits for what the phase is named after.
        let waiting = match self.leading.get("collecting") {
            Some(collecting) if *collecting >= self.waiting / 2.0 => "waiting for contributions",
            _ => "waiting for others",
        };
        let mut parts: Vec<(&str, f64)> = self
            .work
            .iter()
            .map(|(name, seconds)| (words(name), *seconds))
            .collect();
        parts.push((waiting, self.waiting));
        parts.push(("writing to the disk", self.disk));
        parts.retain(|(_, seconds)| *seconds >= SHARE * self.seconds && *seconds > 0.0);
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(what, seconds)| format!("{what} {}", numbers::seconds(seconds)))
            .collect();
        let whole = numbers::seconds(self.seconds);
        if parts.is_empty() {
            whole
        } else {
            format!("{whole}: {}", parts.join(", "))
        }
    }
}

impl ServedStatus {
    /// The model and what it is worth: `the model that it trains alone, accuracy 0.71 on 48 held-out rows`.
    pub fn text(&self) -> String {
        let worth = self.held_out.as_ref();
        let worth = worth.map_or(String::new(), |held_out| format!(", {}", held_out.text()));
        format!("{}{worth}", self.what)
    }
}

impl HeldOutMetrics {
    /// The metric that reports compare, with its unit, and the number of rows: `mae 48.67 points on 48
    /// held-out rows`.
    pub fn text(&self) -> String {
        if self.unit.is_empty() {
            self.brief()
        } else {
            self.said(&format!(" {}", self.unit))
        }
    }

    /// The same metric and number of rows without the unit, for a line about a round.
    pub fn brief(&self) -> String {
        self.said("")
    }

    fn said(&self, unit: &str) -> String {
        let Self { rows, metric, .. } = self;
        let value = match self.metrics.get(metric) {
            Some(&value) => numbers::value(value, numbers::decimals(value)),
            None => "not finite".to_owned(),
        };
        let s = if *rows == 1 { "" } else { "s" };
        format!("{metric} {value}{unit} on {rows} held-out row{s}")
    }
}

/// A time as the document writes it.
pub fn time(at: SystemTime) -> String {
    clock::to_millisecond(at)
}

/// The JSON Schema of the document.
pub fn schema() -> serde_json::Value {
    agreement::schema_of::<Status>("the status of a node")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_round_says_in_words_what_it_took() {
        let work = [
            ("prepare", 20.0),
            ("mask", 9.0),
            ("hold", 8.0),
            ("plan", 0.1),
        ];
        let spent = SpentSeconds {
            seconds: 40.0,
            waiting: 5.0,
            work: work.map(|(name, took)| (name.to_owned(), took)).into(),
            ..SpentSeconds::default()
        };
        let said = "40.0 s: training for a secure-aggregation round 20.0 s, masking its vector 9.0 s, fetching models \
                    8.0 s, waiting for others 5.0 s";
        assert_eq!(spent.text(), said);
    }
}
