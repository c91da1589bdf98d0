//! The summary of a run, as one document that reports and JSON are made from.
//!
//! No member of a federation knows the names of the silos in a coalition: every silo knows its own
//! coalition, and the entries of a round have no names. The simulator knows because it gets the
//! reports of all silos. A node of one institution cannot print these tables.

mod basis;
mod build;
mod classes;
mod compare;
mod gains;
mod heavy;
mod left_out;
mod measured;
mod metrics;
mod newcomers;
mod noise;
mod reports;
mod results;
mod serving;
mod silo_result;
mod silos;
mod stops;

use std::collections::BTreeMap;

use methods::serving::{Candidate, ComparedOn, Measured as ComparedLoss, Tuned};
use serde::Serialize;
use serde_json::Value;
use silo::Totals;

use simulations::Led;
use simulations::LinkageResult;
use simulations::Mesh;
use simulations::network::Traffic;

pub use crate::statistic::Interval;

pub use basis::{LastMerges, SiloLosses, SiloMerge, SiloMerges, TakenGroups};
pub(crate) use build::build;
pub(crate) use measured::{
    Constant, HeldOutResults, TrainingTargets, constant_measured, constants, mean_target, measured,
    why_unusable,
};
pub(crate) use metrics::{AdoptedModel, OwnModel, adopted_models, last_adopted};
pub use newcomers::NewcomerInfo;
pub(crate) use newcomers::given_model;
pub(crate) use noise::or_no_bound;
pub use noise::{NO_BOUND, NoiseBound};
pub use results::{
    Bin, ClassResults, Gain, Harmed, MeanGain, ModelKind, ModelMean, SecondMetric, Settings,
    TrainingFailed, Tuning, Unusable,
};
pub use stops::StoppedMember;
pub(crate) use stops::stops;

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The kind of network that carried the messages.
    #[serde(flatten)]
    pub mesh: Mesh,
    /// Hash over all events in order, in hexadecimal. In virtual time the same seed gives the same
    /// hash. It cannot be compared between versions or processors, because training may differ in
    /// the last bits.
    /// None without messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Number of events, where there were messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// The safety properties that held after each event, by number and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<&'static str>,
    /// Wall-clock seconds that the federation took.
    pub seconds: f64,
    /// Seconds that passed for the federation in virtual time; none on a real clock.
    pub virtual_seconds: Option<f64>,
    /// Wall-clock seconds that the references took, evaluation included.
    pub reference_seconds: f64,
    /// Bytes sent, where there were messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_messages: Option<u64>,
    /// Bytes of models and outcomes. Without messages those that members would send who check
    /// everything; none where the parameter set lets fewer of them check, because then they depend on who leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_blobs: Option<u64>,
    /// The strategy's name.
    pub strategy: String,
    /// The metric by which silos are compared.
    pub metric: MetricInfo,
    /// A second metric, where the models have one.
    pub second_metric: Option<MetricInfo>,
    /// Task, strategy and program.
    pub settings: Settings,
    /// True if the federation's models are of use: false where at least half of a coalition's members
    /// have no use for the model that they adopted, as after a training that diverged.
    pub usable: bool,
    /// The models that are of no use at a silo: their results are not finite, or far worse than those
    /// of a constant prediction; or their training failed.
    pub unusable: Vec<Unusable>,
    /// Trainings for the federation that failed.
    pub training_failed: Vec<TrainingFailed>,
    /// How much better models are on average over the members; empty where learners give no results
    /// row by row.
    pub gains: Vec<MeanGain>,
    /// Means over the members of every model that was measured, references included.
    pub means: Vec<ModelMean>,
    /// Members that the model they serve harms; `None` where nothing was compared.
    pub harmed: Option<Harmed>,
    /// How models trained alone were tuned, if they were.
    pub tuning: Option<Tuning>,
    /// How often the authors of models could be recognised from one round to the next; `None` where
    /// the parameter set shows names, or no author was in two rounds in a row.
    pub linkage: Option<LinkageResult>,
    /// What the noise of the agreed rounds bounds; `None` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseBound>,
    /// What was noticed about the data before the first round, and what was scaled: one sentence
    /// each, without a full stop.
    pub notes: Vec<String>,
    /// All final rounds, in order.
    pub rounds: Vec<RoundInfo>,
    /// The losses of the last round in which silos measured each other's models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<SiloLosses>,
    /// The merges of the last round whose groups silos took, where groups are formed by merging (HCCT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merges: Option<LastMerges>,
    /// All silos: members, then unseen silos.
    pub silos: Vec<SiloInfo>,
    /// The unseen silos as newcomers of earlier rounds, by round, where the scenario asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub newcomers: Vec<NewcomerInfo>,
    /// Sum of the absolute values of all trained parameters of the final model, if all silos share
    /// one model.
    pub weights_abs_sum: Option<f64>,
    /// How many checks were computed, and how many came from the cache.
    /// None without messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Totals>,
    /// Messages that members refused.
    pub refused: Vec<Refused>,
    /// Proven misbehaviour.
    pub faults: Vec<FaultInfo>,
    /// Members that a lead left out of a round.
    pub left_out: Vec<LeftOutMembers>,
    /// Votes against views.
    pub nullified: Vec<Nullified>,
    /// Training loss and held-out metric by silo and round.
    pub curves: Vec<Curve>,
    /// All views with their leads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<ViewLead>,
    /// The members that a fault stopped, and when they were started again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<StoppedMember>,
    /// Bytes sent by every silo.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<SiloTraffic>,
}

/// The metric of the tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MetricInfo {
    /// Name of the metric.
    pub name: String,
    /// Unit of the metric; empty where it has none.
    pub unit: String,
    /// True if larger is better.
    pub higher_is_better: bool,
}

/// A final round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundInfo {
    /// The round, from 1.
    pub round: u64,
    /// View and lead of the round, where there are views.
    #[serde(flatten)]
    pub led: Option<Led>,
    /// `"summarise"` or `"train"`.
    pub kind: &'static str,
    /// True if every silo evaluated the models of all (cross-evaluation).
    pub cross_evaluated: bool,
    /// The silos of every coalition, by their own reports.
    pub coalitions: Vec<Vec<String>>,
    /// The authors of its contributions.
    pub authors: Vec<String>,
    /// Hash of its outcome, in hexadecimal. It depends on who took part, not on time or network.
    pub outcome: String,
    /// What the strategy keeps after it, by name: λ, a prior, a graph (its nodes and edges). The pages
    /// of the methods explain the names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, Value>,
}

impl RoundInfo {
    /// The view of its block, where there are views.
    pub fn view(&self) -> Option<u64> {
        self.led.as_ref().map(|led| led.view)
    }
}

/// The result of a silo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloInfo {
    /// Name of the silo.
    pub name: String,
    /// The group that the source of the data puts it in, such as its region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// True if the silo took no part and was given a model at the end.
    #[serde(rename = "unseen")]
    pub outside: bool,
    /// Number of its training rows.
    #[serde(rename = "rows")]
    pub samples: usize,
    /// Number of held-out rows that the metric was measured on.
    #[serde(rename = "test_rows")]
    pub test_samples: usize,
    /// Number of groups among these rows (`split.group`), or of rows where they have none; `None` where
    /// the models were not measured row by row.
    pub test_units: Option<usize>,
    /// Number of times that it trained for the federation.
    pub trainings: usize,
    /// Held-out metric of the model that it trained alone.
    pub local: Option<f64>,
    /// How that model was chosen, by cross-validation on the silo's training rows.
    pub local_tuned: Option<Tuned>,
    /// Held-out metric of the global model, FedAvg by rows.
    pub global: Option<f64>,
    /// Held-out metric of FedAvg with equal weights.
    pub global_equal: Option<f64>,
    /// Held-out metric of FedAvg with an intercept of its own for every silo.
    pub own_intercept: Option<f64>,
    /// Held-out metric of a constant prediction, the mean target of all members' training rows.
    pub constant: Option<f64>,
    /// Held-out metric of the model that it adopted, or was given.
    pub coalition: Option<f64>,
    /// The number of its coalition.
    pub coalition_index: Option<u32>,
    /// Hash of the parameters of the model that it adopted, or was given: equal exactly if names,
    /// shapes and every bit of the values are equal, so that two runs can be compared.
    pub model: Option<String>,
    /// Held-out metric of one model trained on the pooled rows of all members, which no federation
    /// may do, for comparison.
    pub pooled: Option<f64>,
    /// Metrics of the model that it adopted, or was given, that a program measures and Rota does not know, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "program_metrics")]
    pub own: BTreeMap<String, f64>,
    /// The second metric of its models.
    pub second: SecondMetric,
    /// How much better its models are than each other; empty where there are too few held-out rows
    /// to tell, or the learner gives no results row by row.
    pub gains: Vec<Gain>,
    /// Confusion, calibration and ROC curve, where the target is a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassResults>,
    /// The model that it serves, if it compared several.
    pub served: Option<ServedInfo>,
}

/// The model that a silo serves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServedInfo {
    /// The chosen candidate; the choice never uses held-out rows.
    pub candidate: Candidate,
    /// The rows that the choice is based on.
    pub on: ComparedOn,
    /// Held-out metric of the chosen model.
    pub metric: Option<f64>,
    /// The losses that the choice is based on.
    pub measured: Vec<ComparedLoss>,
    /// What it would serve if it chose alone, as a node does.
    pub alone: ChosenAlone,
}

/// The model that a silo would serve if it chose by its own rows alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChosenAlone {
    /// The chosen candidate.
    pub candidate: Candidate,
    /// Its held-out metric.
    pub metric: Option<f64>,
}

/// Messages of a member that were refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The member that sent them.
    pub member: String,
    /// The round that they belong to; 0 if they belong to none.
    pub round: u64,
    /// The reason, as a sentence.
    pub reason: String,
    /// Number of times that they were refused, summed over all members.
    pub times: u64,
}

/// A member that is proven to have broken the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultInfo {
    /// Who.
    pub member: String,
    /// What the member did.
    pub charge: String,
    /// The members that have the evidence.
    pub seen_by: Vec<String>,
}

/// Members that a round was finished without, although they contributed or were training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOutMembers {
    /// The round.
    pub round: u64,
    /// The view.
    pub view: u64,
    /// The lead.
    pub lead: String,
    /// Whom.
    pub members: Vec<String>,
    /// What these members did not do in time.
    pub reason: String,
}

/// A vote against a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nullified {
    /// The view.
    pub view: u64,
    /// Lead of the view.
    pub lead: String,
    /// The silo that voted.
    pub silo: String,
    /// The reason, as a sentence.
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
    /// What else a program says of its training in the round, by name; metrics that Rota knows are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}

/// One view and its lead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewLead {
    /// The view.
    pub view: u64,
    /// Lead of the view.
    pub lead: String,
    /// When the first silo entered it, in seconds on the federation's clock, virtual or real.
    pub from: f64,
    /// When the first silo entered the next view, or when the run ended, in seconds on that clock.
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
    /// Traffic that the silo sent.
    #[serde(flatten)]
    pub sent: Traffic,
}
