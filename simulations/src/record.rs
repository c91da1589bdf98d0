//! The record of one federation's run.

use std::time::Duration;

use protocol::{MemberIndex, Time};
use serde::Serialize;
use silo::{Notice, Totals};

use crate::contributions::{Contributions, GroupingBasis};
use crate::environment::Mesh;
use crate::linkage::LinkageResult;
use crate::network::Traffic;

/// The record of one federation's run.
pub struct RunRecord {
    /// The kind of network that carried the messages.
    pub mesh: Mesh,
    /// Notices of all silos, each with its time.
    pub notices: Vec<(Time, MemberIndex, Notice)>,
    /// The final rounds, in order.
    pub rounds: Vec<RoundRecord>,
    /// Bytes of models and outcomes that the members sent; without messages those that they would
    /// send, under `verification = "full"`, where that does not depend on who leads.
    pub blobs: Option<u64>,
    /// Seconds that the run took here.
    pub seconds: f64,
    /// Messages and agreement; none without messages.
    pub protocol: Option<ProtocolRecord>,
    /// The contributions of every round, where they were to be kept.
    pub contributions: Vec<Contributions>,
    /// Basis on which groups were formed, where that was to be kept.
    pub basis: GroupingBasis,
}

/// A final round.
pub struct RoundRecord {
    /// The round, from 1.
    pub round: u64,
    /// The members whose contributions are in it.
    pub authors: Vec<MemberIndex>,
    /// The view of the round, where there are views.
    pub led: Option<Led>,
}

/// The view in which a round became final.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Led {
    /// The view of its block.
    pub view: u64,
    /// The lead of that view, by name.
    pub lead: String,
    /// Time at which the first silo knew that it is final, in seconds on the federation's clock, virtual or
    /// real.
    pub at: f64,
}

/// Messages and agreement in a run.
pub struct ProtocolRecord {
    /// The bytes that every member sent, in roster order.
    pub traffic: Vec<Traffic>,
    /// The modelled time that every member worked besides training.
    pub work: Vec<Duration>,
    /// True if every honest silo was complete in the end, except those killed without a restart.
    pub complete: bool,
    /// The stops of silos, in order.
    pub stops: Vec<SiloStop>,
    /// The final rounds, in order.
    pub marks: Vec<Mark>,
    /// Members whose contributions a member got, each once: when, who, whose.
    pub sightings: Vec<(Time, MemberIndex, MemberIndex)>,
    /// Checks done and found in the shared cache.
    pub totals: Totals,
    /// Hash over all events.
    pub trace: String,
    /// Number of events.
    pub events: u64,
    /// Names of the safety properties that were checked after every event.
    pub invariants: Vec<&'static str>,
    /// Frequency of recognising the authors of models without names.
    pub linkage: Option<LinkageResult>,
    /// Time at which it ended, on the federation's clock.
    pub ended: Time,
}

/// A silo that stopped.
#[derive(Debug, Clone, Copy)]
pub struct SiloStop {
    /// Time of the stop, after the start.
    pub at: Duration,
    /// The silo that stopped.
    pub member: MemberIndex,
    /// Time until it was started again; `None`: never.
    pub back: Option<Duration>,
}

/// A round that became final, and what every member had sent and worked by then.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The round, from 1.
    pub round: u64,
    /// Time at which the first member knew, after the start.
    pub at: Duration,
    /// The lead of its view.
    pub lead: MemberIndex,
    /// The bytes that every member had sent, in roster order.
    pub traffic: Vec<Traffic>,
    /// The modelled time that every member had worked besides training.
    pub work: Vec<Duration>,
}
