//! Joint history of a federation from the JSON lines that its nodes printed: the leads and their times, the
//! final rounds, and the nodes that were down.
//!
//! [`read`] takes the logs of the institutions (`rota run --json`); [`History`] is what they say
//! together. Times are those of the institutions' own clocks.

mod lines;
mod read;
mod stops;

use crate::rotation::{StoppedMember, TakeOver, TimelineView};
use serde::Serialize;

pub use lines::HistoryError;
pub use read::{StopsAndClocks, read, read_known};
pub use stops::StoppedNode;

/// Joint history from the logs of a federation. Seconds count from the first line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// The federation's id.
    pub federation: String,
    /// Its name; empty in logs of earlier versions.
    pub federation_name: String,
    /// The time of the first line, as the log writes it.
    pub began: String,
    /// Seconds from the first to the last line.
    pub seconds: f64,
    /// The institutions that are named in the logs, in the order of their names.
    pub silos: Vec<String>,
    /// The logs that were read.
    pub logs: Vec<Log>,
    /// Final rounds.
    pub rounds: Vec<HistoryRound>,
    /// Every view.
    pub views: Vec<TimelineView>,
    /// Nodes that stopped.
    pub stops: Vec<StoppedMember>,
    /// Consequences of stops of nodes that led.
    pub take_overs: Vec<TakeOver>,
    /// Held-out metrics that nodes printed, by silo.
    pub metrics: Vec<MetricValue>,
    /// Information that the agreement discloses of each institution, as the node that started last printed it;
    /// `None` in logs of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacySaid>,
}

/// Information that an agreement discloses of an institution.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PrivacySaid {
    /// The institution whose node said it: the numbers are those of its own contributions.
    pub by: String,
    /// In a few sentences; empty where rounds are in clear.
    pub learned: Vec<String>,
    /// The paragraph for the data protection officer.
    pub officer: Vec<String>,
    /// `true` if rounds had noise, under this agreement or one before: the numbers of rows in this history are
    /// for their institution alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub noised: bool,
}

/// One log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Log {
    /// The file.
    pub file: String,
    /// The institution.
    pub silo: String,
    /// Lines of its node.
    pub lines: usize,
    /// Lines that are no events of a node.
    pub skipped: usize,
    /// Number of times that the node started.
    pub starts: usize,
    /// CPU time of the node until its last final round, over all its starts, in seconds; `None` if it
    /// does not say so.
    pub cpu_seconds: Option<f64>,
}

/// A final round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryRound {
    /// Number of the round.
    pub round: u64,
    /// The view of its block.
    pub view: u64,
    /// The lead of that view, by position among `silos`.
    pub lead: usize,
    /// Time at which the first node knew, in seconds.
    pub at: f64,
    /// Contributions in it.
    pub authors: u64,
    /// Authors of the contributions, by position among `silos`; empty in logs of earlier versions.
    pub contributors: Vec<usize>,
}

/// A held-out metric at a silo after a round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricValue {
    /// The silo, by position.
    pub silo: usize,
    /// The round.
    pub round: u64,
    /// The metric's name.
    pub name: String,
    /// Value of the metric.
    pub value: f64,
}

impl History {
    /// The name of a silo.
    pub fn name(&self, silo: usize) -> &str {
        self.silos.get(silo).map_or("", String::as_str)
    }

    /// Returns what people call the federation: its name, or the start of its id where logs do not say it.
    pub fn title(&self) -> String {
        let id = self.federation.get(..16).unwrap_or(&self.federation);
        match &self.federation_name[..] {
            "" => format!("Federation {id}"),
            name => name.to_owned(),
        }
    }

    /// The rounds that each silo led.
    pub fn led(&self) -> Vec<usize> {
        let count = |silo| {
            self.rounds
                .iter()
                .filter(|round| round.lead == silo)
                .count()
        };
        (0..self.silos.len()).map(count).collect()
    }

    /// Views that ended without a block.
    pub fn failed(&self) -> usize {
        self.views
            .iter()
            .filter(|view| view.result == "nullified")
            .count()
    }
}
