//! Members without actors and models: thousands of federations a minute, to break the rules with.
//!
//! A world runs [`protocol::Member`]s directly. Training, scoring and deciding are toys that take
//! time and give hashes; the network loses, delays, repeats and divides; members crash, also in the
//! middle of a step, with and without their journals; up to f of them do what they like. The
//! invariants are checked after every event. At the end all faults but the faulty members go away,
//! and every honest member must finish: uniform faults hide a federation that cannot heal.

mod byzantine;
mod deaths;
mod ending;
mod faults;
mod links;
mod oracle;
mod work;
mod world;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::Time;
use protocol::member;

pub use byzantine::{Behaviour, Lies};
pub use deaths::{Deaths, Moment};
pub use ending::{Diagnosis, Standing};
pub use faults::{Amnesia, Faults};
pub use work::Plans;

use crate::invariants::Violation;

/// What to run.
#[derive(Clone)]
pub struct Options {
    /// Members, at least 1.
    pub members: usize,
    /// Learning rounds.
    pub rounds: u64,
    /// Whether members score each other's entries; `None`: in some rounds, drawn from the state.
    pub cross_evaluate: Option<bool>,
    /// Whom the plans name.
    pub plans: Plans,
    /// What goes wrong.
    pub faults: Faults,
    /// Changes how members come to life: the place to break a rule on purpose.
    pub alter: Option<Arc<dyn Fn(member::Config) -> member::Config + Send + Sync>>,
    /// Whether the records of a step become durable only after the rest of it was done: a broken
    /// rule of the surroundings, to see that it is noticed.
    pub persist_last: bool,
    /// Whether members come back with an empty journal as if they were new: another broken rule.
    pub forget: bool,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("members", &self.members)
            .field("rounds", &self.rounds)
            .field("cross_evaluate", &self.cross_evaluate)
            .field("plans", &self.plans)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// `members` members, three rounds of everybody, some of them with cross-evaluation, these
    /// faults.
    pub fn new(members: usize, faults: Faults) -> Self {
        Self {
            members,
            rounds: 3,
            cross_evaluate: None,
            plans: Plans::Everybody,
            faults,
            alter: None,
            persist_last: false,
            forget: false,
        }
    }
}

/// How a run ended, if nothing was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When the last honest member had finished, or the run was given up.
    pub time: Time,
    /// Highest view anybody entered.
    pub views: u64,
    /// Simulated events.
    pub events: u64,
    /// Faults that were played: losses, repetitions, partitions, crashes, acts of faulty members.
    pub faults: u64,
    /// Hash over all events in order.
    pub trace: protocol::Hash,
    /// How often an honest member finished a training, by round.
    pub trainings: Vec<u64>,
    /// Members that died for good.
    pub dead: u64,
    /// Who is stuck where, if more members were missing than a federation can bear and it did not
    /// finish.
    pub stalled: Option<Diagnosis>,
}

/// How a run ended badly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {wrong}\n{diagnosis}")]
pub struct Failure {
    /// The seed that shows it.
    pub seed: u64,
    /// What was wrong.
    pub wrong: Wrong,
    /// Where everybody stood.
    pub diagnosis: Diagnosis,
}

/// What was wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A property did not hold.
    #[error(transparent)]
    Violated(Violation),
    /// An honest member said something that another could not read.
    #[error("{from} said something that {to} could not read: {why}")]
    Unreadable {
        /// Who said it.
        from: String,
        /// Who could not read it.
        to: String,
        /// Why.
        why: String,
    },
    /// The chains that honest members ended with are not what they must be.
    #[error("the chains in the end: {0}")]
    Chains(String),
    /// The federation did not heal.
    #[error("healed after {healed:?}, still not complete after {ended:?}")]
    NotLive {
        /// When the faults ended.
        healed: Duration,
        /// When the run was given up.
        ended: Duration,
    },
    /// Members keep each other busy without getting anywhere.
    #[error("{events} events {span}: members keep each other busy and get nowhere")]
    Busy {
        /// How many.
        events: u64,
        /// Within what.
        span: &'static str,
    },
}

/// Runs one federation to its end.
///
/// # Errors
/// [`Failure`]: a property was violated, the chains in the end are not one, or the federation did
/// not heal although no more members were missing than it can bear.
pub fn run(seed: u64, options: &Options) -> Result<Ended, Box<Failure>> {
    world::World::new(seed, options).run()
}

#[cfg(test)]
mod tests;
