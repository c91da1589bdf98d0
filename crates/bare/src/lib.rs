//! The bare simulator: the protocol's state machines without actors and models, thousands of
//! federations a minute.
//!
//! [`run`] drives [`protocol::Member`]s directly. Training, scoring and deciding take time and give
//! hashes. The network loses, delays, duplicates and blocks messages; members crash, also in the
//! middle of a step, with and without their journals; up to f of them are Byzantine. The
//! [`invariants`] are checked after every event. Towards the end all faults stop
//! except faulty members, and every honest member must finish: under constant faults a federation
//! that cannot recover would go unnoticed.

pub mod byzantine;
mod changes;
pub mod cuts;
mod deaths;
mod draws;
mod ending;
mod faults;
pub mod genesis;
pub mod invariants;
mod links;
mod masks;
mod moments;
pub mod random;
pub mod script;
mod signatures;
mod simulator;
mod sorts;
mod symbolic;
mod voids;
mod work;
mod worlds;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::member;
use protocol::parameters::{Rotation, Verification};
use protocol::{SecretKey, Time};

pub use byzantine::Behaviour;
pub use changes::Regroup;
pub use deaths::Deaths;
pub use ending::{DiagnosedMember, Diagnosis};
pub use faults::{Byzantine, Faults, JournalLoss};
pub use masks::BrokenMasks;
pub use moments::{Moment, StepCut};
pub use sorts::{Sort, combine};
pub use work::Plans;

use invariants::Violation;
use random::Random;
use script::Fault;
use signatures::KnownSignatures;

/// Receives what happens in a run: the time, the node if it is about one, and a sentence.
pub type RunNarrator = Arc<dyn Fn(Time, Option<usize>, &str) + Send + Sync>;

/// The options of a run.
#[derive(Clone)]
pub struct BareOptions {
    /// Number of members, at least 1.
    pub members: usize,
    /// Number of learning rounds.
    pub rounds: u64,
    /// Whether rounds have cross-evaluation; `None`: some have, drawn from the state.
    pub cross_evaluate: Option<bool>,
    /// The members that the plans name.
    pub plans: Plans,
    /// Who leads when. Under [`Rotation::Fixed`] a run may end without all rounds.
    pub rotation: Rotation,
    /// Who checks a round before it counts.
    pub verification: Verification,
    /// Number of changes of the agreement, at drawn times: members join, leave, are excluded or get
    /// another key, or rounds are added.
    pub changes: u32,
    /// True if so many members are gone from a drawn time on that no quorum is left, and the others go
    /// on without them. Some come back when that is decided.
    pub recoveries: bool,
    /// Whether people err. Those who say who is gone name the wrong members, once or several times,
    /// each different ones at different times, before they name the right ones, and some again
    /// afterwards; and perhaps one more member is gone for good meanwhile, so that they go back on what
    /// they have confirmed with it. Those who approve changes do it late, twice, withdraw that and approve again; and
    /// proposers show them other bytes under the same words.
    pub errors: bool,
    /// The groups of secure-aggregation rounds, each of these members; empty: models are in clear.
    pub groups: Vec<Vec<usize>>,
    /// The fewest authors of a sum with noise, in place of groups; `None` without noise.
    pub fewest_authors: Option<u16>,
    /// How many members of secure-aggregation rounds may collude. Every choice of them is checked.
    pub colluders: usize,
    /// So many nodes' machines compute other outcomes of secure-aggregation rounds, each its own, under the first
    /// agreement.
    pub strange_machines: usize,
    /// Institutions give up secure-aggregation rounds that have no outcome, under the first agreement.
    pub gives_up: bool,
    /// True if signatures are keyed hashes, which cost far less and hold for the same claims.
    pub simulated_signatures: bool,
    /// What goes wrong.
    pub faults: Faults,
    /// Faults as in a scenario (`[[fault]]`), besides those that are drawn. Silos are named by their
    /// positions from 0.
    pub script: Vec<Fault>,
    /// Changes the configuration of every member that starts, to break a rule on purpose.
    pub configure: Option<Arc<dyn Fn(member::Config) -> member::Config + Send + Sync>>,
    /// Is told what happens, for people: faults, votes against views, certificates, final rounds,
    /// changes of the agreement. Receives the time, the node and a sentence.
    pub story: Option<RunNarrator>,
    /// True if the records of a step become durable only after everything else of it was done,
    /// which breaks R5 on purpose.
    pub persist_last: bool,
    /// True if members restart with an empty journal as if they were new, which breaks R5 on
    /// purpose.
    pub journals_vanish: bool,
    /// A rule of secure-aggregation rounds that the environment of members break on purpose.
    pub broken_masks: Option<BrokenMasks>,
    /// How every change of the agreement also changes groups, which members must not answer.
    pub regroup: Option<Regroup>,
    /// Such changes name whose vectors become visible.
    pub shows: bool,
}

impl fmt::Debug for BareOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("members", &self.members)
            .field("rounds", &self.rounds)
            .field("cross_evaluate", &self.cross_evaluate)
            .field("plans", &self.plans)
            .field("rotation", &self.rotation)
            .field("verification", &self.verification)
            .field("changes", &self.changes)
            .field("recoveries", &self.recoveries)
            .field("errors", &self.errors)
            .field("groups", &self.groups)
            .field("fewest_authors", &self.fewest_authors)
            .field("colluders", &self.colluders)
            .field("faults", &self.faults)
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}

impl BareOptions {
    /// Returns whether rounds are masked.
    pub(crate) fn masked(&self) -> bool {
        !self.groups.is_empty() || self.fewest_authors.is_some()
    }

    /// A key of an institution.
    fn key(&self, random: &mut Random, signatures: &KnownSignatures) -> SecretKey {
        let key = SecretKey::from_bytes(&random.bytes());
        if self.simulated_signatures {
            signatures.simulate(key)
        } else {
            key
        }
    }

    /// Three rounds of all members, some rounds with cross-evaluation, with these faults.
    pub fn new(members: usize, faults: Faults) -> Self {
        Self {
            members,
            rounds: 3,
            cross_evaluate: None,
            plans: Plans::All,
            rotation: Rotation::EveryRound,
            verification: Verification::Full,
            changes: 0,
            recoveries: false,
            errors: false,
            groups: Vec::new(),
            fewest_authors: None,
            colluders: 1,
            strange_machines: 0,
            gives_up: false,
            simulated_signatures: false,
            faults,
            script: Vec::new(),
            configure: None,
            story: None,
            persist_last: false,
            journals_vanish: false,
            broken_masks: None,
            regroup: None,
            shows: false,
        }
    }
}

/// The result of a run without a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When the last honest member had finished, or the run was given up.
    pub time: Time,
    /// The highest view that any member entered in an epoch.
    pub views: u64,
    /// Number of simulated events.
    pub events: u64,
    /// Number of faults: losses, duplicates, network splits, crashes, deviations of Byzantine
    /// members.
    pub faults: u64,
    /// Hash over all events in order.
    pub trace: protocol::Hash,
    /// Number of finished trainings of honest members, by round.
    pub trainings: Vec<u64>,
    /// Number of epochs.
    pub epochs: u64,
    /// Number of members that died for good.
    pub dead: u64,
    /// Number of members against which an honest one had evidence, counted in each epoch.
    pub accused: u64,
    /// Number of members whose journal was put back from some records ago.
    pub put_back: u64,
    /// Number of members that noticed that their journal is outdated, counted in each epoch.
    pub outdated: u64,
    /// In secure-aggregation rounds: the nodes of which an honest member refused something, with its reasons.
    pub named: BTreeSet<(usize, String)>,
    /// Number of sums of secure-aggregation rounds that were void.
    pub void: u64,
    /// Number of groups that were suspended, counted in each epoch, because their sums were void.
    pub suspended: u64,
    /// The nodes that a search for who corrupts differentially private sums left alone.
    pub alone: BTreeSet<usize>,
    /// The Byzantine nodes.
    pub byzantine: BTreeSet<usize>,
    /// The state of all members, if the federation did not finish because more of them were faulty
    /// than it tolerates.
    pub stalled: Option<Diagnosis>,
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {kind}\n{diagnosis}")]
pub struct RunFailure {
    /// The seed that shows it.
    pub seed: u64,
    /// What went wrong.
    pub kind: FailureKind,
    /// The state of all members.
    pub diagnosis: Diagnosis,
}

/// What went wrong in a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailureKind {
    /// A safety property was violated.
    #[error(transparent)]
    Violated(Violation),
    /// An honest member sent a frame that another could not open.
    #[error("{to} could not open a frame of {from}: {why}")]
    Unreadable {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
        /// Why.
        why: String,
    },
    /// The final chains of honest members are wrong.
    #[error("final chains: {0}")]
    Chains(String),
    /// A member signed what its institution has not said of a change, or a change came into force
    /// without the word of enough institutions.
    #[error("approvals: {0}")]
    Approvals(String),
    /// A property of secure-aggregation rounds was violated.
    #[error("{0}")]
    Masks(String),
    /// A member took its whole journal for outdated, or signed with an outdated one.
    #[error("outdated journals: {0}")]
    Outdated(String),
    /// The federation did not finish in time after the faults ended.
    #[error("faults ended after {healed:?}, and honest members were not complete after {ended:?}")]
    NotLive {
        /// When the faults ended.
        healed: Duration,
        /// When the run was given up.
        ended: Duration,
    },
    /// Members exchange messages without making progress.
    #[error("{events} events {span} without progress")]
    Busy {
        /// Number of events.
        events: u64,
        /// The span in which they happened, as part of a sentence.
        span: &'static str,
    },
}

/// Runs one federation to its end.
///
/// # Errors
/// [`RunFailure`]: a property was violated, the final chains differ, or the federation did not finish
/// although at most as many members were faulty as it tolerates.
pub fn run(seed: u64, options: &BareOptions) -> Result<Ended, Box<RunFailure>> {
    simulator::Simulator::new(seed, options).run()
}

#[cfg(test)]
mod tests;
