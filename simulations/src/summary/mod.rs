//! What a run came to, as one document.
//!
//! Nobody in the federation knows who is in which coalition by name: every silo knows its own
//! coalition, and the entries of a round are nameless. The simulator knows because it hears every
//! silo's own report; an institution's node cannot print these tables.

mod build;
mod ends;
mod metrics;

use std::collections::BTreeMap;

use methods::serving::{Candidate, Measured};
use serde::Serialize;
use silo::Totals;

use crate::network::Traffic;
use crate::world::Mesh;

pub(crate) use build::build;
pub(crate) use ends::Reference;
pub(crate) use metrics::{common_start, final_model};

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// Everything random followed from it.
    pub seed: u64,
    /// What carried the bytes.
    #[serde(flatten)]
    pub mesh: Mesh,
    /// Hash over every event in order, in hexadecimal. In virtual time the same seed gives it
    /// again. Not a number to compare between versions or processors: training may differ in the
    /// last bits.
    pub trace: String,
    /// Events.
    pub events: u64,
    /// Properties that held after each of them, by number and name.
    pub invariants: Vec<&'static str>,
    /// Wall-clock seconds of the federation.
    pub seconds: f64,
    /// Seconds that passed for the federation in virtual time; none on a real clock.
    pub virtual_seconds: Option<f64>,
    /// Wall-clock seconds of everything that it is compared with, evaluation included.
    pub reference_seconds: f64,
    /// Bytes sent.
    pub bytes: u64,
    /// Of these, messages.
    pub bytes_messages: u64,
    /// Of these, models.
    pub bytes_blobs: u64,
    /// The strategy's name.
    pub strategy: String,
    /// What the silos are compared by.
    pub metric: MetricInfo,
    /// Every final round.
    pub rounds: Vec<RoundInfo>,
    /// Every silo.
    pub silos: Vec<SiloInfo>,
    /// Sum of the absolute values of all trained numbers of the final model, if there is one model
    /// for everybody.
    pub weights_abs_sum: Option<f64>,
    /// What was really computed.
    pub checks: Totals,
    /// What members said that was not accepted.
    pub refused: Vec<Refused>,
    /// Proven misbehaviour.
    pub faults: Vec<FaultInfo>,
    /// Who was left out of a round, by whom.
    pub left_out: Vec<LeftOut>,
    /// Votes against views.
    pub nullified: Vec<Nullified>,
    /// Losses by silo and round.
    pub curves: Vec<Curve>,
    /// Who led when.
    pub timeline: Vec<Lead>,
    /// Bytes sent by every silo.
    pub traffic: Vec<SiloTraffic>,
}

/// The metric of the tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MetricInfo {
    /// Its name.
    pub name: String,
    /// Its unit; empty where it has none.
    pub unit: String,
    /// Whether larger is better.
    pub higher_is_better: bool,
}

/// A final round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundInfo {
    /// The round, from 1.
    pub round: u64,
    /// The view of its block.
    pub view: u64,
    /// The lead of that view.
    pub lead: String,
    /// `"summarise"` or `"train"`.
    pub kind: &'static str,
    /// Seconds on the federation's clock, virtual or real, at which the first silo knew that it is
    /// final.
    pub at: f64,
    /// Whether every silo's model was tried on the data of all.
    pub cross_evaluated: bool,
    /// Silos by coalition, as each of them reports its own.
    pub coalitions: Vec<Vec<String>>,
    /// Whose contributions are in it.
    pub authors: Vec<String>,
    /// Hash of its outcome, in hexadecimal. Independent of when and over which network it came
    /// about, as long as the same silos took part.
    pub outcome: String,
    /// What the strategy remembers after it, by name: λ, a prior, a graph, row by row. The pages of
    /// the methods say what the names are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, Vec<f64>>,
}

/// A silo at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloInfo {
    /// Its name.
    pub name: String,
    /// Whether it took no part, and got a model in the end.
    pub outside: bool,
    /// Its training rows.
    pub samples: usize,
    /// Held-out rows that the metric was measured on.
    pub test_samples: usize,
    /// How often it trained for the federation.
    pub trainings: usize,
    /// Held-out metric of a model that it trained alone.
    pub local: Option<f64>,
    /// Held-out metric of one model for everybody.
    pub global: Option<f64>,
    /// Held-out metric of the model that it adopted, or was given.
    pub coalition: Option<f64>,
    /// Its coalition.
    pub coalition_index: Option<u32>,
    /// Hash of the parameters of the model that it adopted, or was given: equal exactly if names,
    /// shapes and every bit of the values are, so that two runs can be compared.
    pub model: Option<String>,
    /// Held-out metric of one model trained on all members' rows together: what no federation may
    /// do, for comparison.
    pub pooled: Option<f64>,
    /// What it serves, where it compared.
    pub served: Option<ServedInfo>,
}

/// The model that a silo serves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServedInfo {
    /// Its choice, made on its training rows alone.
    pub candidate: Candidate,
    /// Held-out metric of it.
    pub metric: Option<f64>,
    /// What the choice rests on.
    pub measured: Vec<Measured>,
}

/// Something that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Who said it.
    pub member: String,
    /// The round it was about; 0 if about none.
    pub round: u64,
    /// Why, in a sentence.
    pub reason: String,
    /// How often it was refused, by all members.
    pub times: u64,
}

/// A member that was shown to break the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultInfo {
    /// Who.
    pub member: String,
    /// What it did.
    pub charge: String,
    /// Who saw the evidence.
    pub seen_by: Vec<String>,
}

/// Members that a lead went on without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The round.
    pub round: u64,
    /// The view.
    pub view: u64,
    /// The lead.
    pub lead: String,
    /// Whom.
    pub members: Vec<String>,
    /// What they failed to do.
    pub reason: String,
}

/// A vote against a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nullified {
    /// The view.
    pub view: u64,
    /// Its lead.
    pub lead: String,
    /// Who voted.
    pub silo: String,
    /// Why, in a sentence.
    pub reason: String,
}

/// One point of a silo's curves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The silo.
    pub silo: String,
    /// The round.
    pub round: u64,
    /// Mean training loss of the last local epoch.
    pub loss: Option<f64>,
    /// Held-out metric of the model adopted with the round.
    pub metric: Option<f64>,
}

/// One view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lead {
    /// The view.
    pub view: u64,
    /// Its lead.
    pub lead: String,
    /// Seconds on the federation's clock, virtual or real, at which the first silo entered it.
    pub from: f64,
    /// Seconds on that clock at which the first silo entered the next, or the run ended.
    pub to: f64,
    /// The round that it worked on.
    pub round: u64,
    /// `"final"` (its round became final), `"empty"` (its block only made others final),
    /// `"nullified"`, or `"open"` (the run ended first).
    pub result: &'static str,
}

/// Bytes sent by a silo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiloTraffic {
    /// The silo.
    pub silo: String,
    /// What it sent.
    #[serde(flatten)]
    pub sent: Traffic,
}
