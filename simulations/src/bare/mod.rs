//! Members without actors and models: thousands of federations a minute, to break the rules with.
//!
//! A world runs [`protocol::Member`]s directly. Training, scoring and deciding are toys that take
//! time and give hashes; the network loses, delays, repeats and divides; members crash, also in the
//! middle of a step, with and without their journals; up to f of them do what they like. The
//! invariants are checked after every event. At the end all faults but the faulty members go away,
//! and every honest member must finish: uniform faults hide a federation that cannot heal.

mod byzantine;
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

pub use faults::Faults;

use crate::invariants::Violation;

/// What to run.
#[derive(Clone)]
pub struct Options {
    /// Members, at least 1.
    pub members: usize,
    /// Learning rounds.
    pub rounds: u64,
    /// Whether members score each other's entries.
    pub cross_evaluate: bool,
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
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// `members` members, three rounds with cross-evaluation, these faults.
    pub fn new(members: usize, faults: Faults) -> Self {
        Self {
            members,
            rounds: 3,
            cross_evaluate: true,
            faults,
            alter: None,
            persist_last: false,
            forget: false,
        }
    }
}

/// How a run ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When the last honest member had finished.
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
}

/// How a run ended badly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A property did not hold.
    #[error("seed {seed}: {violation}")]
    Violated {
        /// The seed that shows it.
        seed: u64,
        /// What happened.
        violation: Violation,
    },
    /// An honest member said something that another could not read.
    #[error("seed {seed}: {from} said something that {to} could not read: {why}")]
    Unreadable {
        /// The seed that shows it.
        seed: u64,
        /// Who said it.
        from: String,
        /// Who could not read it.
        to: String,
        /// Why.
        why: String,
    },
    /// The federation did not heal.
    #[error("seed {seed}: healed after {healed:?}, still not complete after {ended:?}: {stuck}")]
    NotLive {
        /// The seed that shows it.
        seed: u64,
        /// When the faults ended.
        healed: Duration,
        /// When the run was given up.
        ended: Duration,
        /// Who is stuck where.
        stuck: String,
    },
}

/// Runs one federation to its end.
///
/// # Errors
/// [`Failure`]: a property was violated, or the federation did not heal.
pub fn run(seed: u64, options: &Options) -> Result<Ended, Failure> {
    world::World::new(seed, options).run()
}

#[cfg(test)]
mod tests;
