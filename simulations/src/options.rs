//! Options of a run.

use std::path::PathBuf;
use std::time::Duration;

use crate::environment::{EnvironmentConfig, EnvironmentFactory};
use crate::record::Led;
use crate::scenario::Scenario;

/// A round that became final, for progress displays.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundDone {
    /// The round, from 1.
    pub round: u64,
    /// Rounds in all.
    pub rounds: u64,
    /// The view of the round, where there are views.
    pub led: Option<Led>,
    /// Bytes that all members had sent by then; without messages those of models, where they are known.
    pub bytes: Option<u64>,
    /// The silos that trained in the round by name, and their training losses; without messages alone.
    pub losses: Vec<(String, f64)>,
}

/// Makes the environment of a federation; the clock is not paused then.
pub type MakeEnvironment<'a> =
    dyn FnMut(&EnvironmentConfig<'_>) -> Result<Box<dyn EnvironmentFactory>, String> + 'a;

/// Factory of the environments of a run's silos.
#[derive(Default)]
pub enum Surrounding<'a> {
    /// The simulated network, in virtual time.
    #[default]
    Virtual,
    /// A loop over the silos, without messages: nobody leads or votes, and the outcomes are the same.
    Direct,
    /// The environment that this makes of the federation, for example real sockets.
    Made(Box<MakeEnvironment<'a>>),
}

impl Surrounding<'_> {
    /// The cheapest that can play a scenario: none of messages, unless it asks for them.
    pub fn of(scenario: &Scenario) -> Self {
        if scenario.needs_network() {
            Self::Virtual
        } else {
            Self::Direct
        }
    }
}

/// Kind of signatures of a simulation's members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Signatures {
    /// By keyed hashes of the size of signatures, where one process does every check once for all
    /// members in virtual time: it knows who made them. Otherwise by Ed25519.
    #[default]
    Simulated,
    /// By Ed25519, as institutions do.
    Ed25519,
}

/// Says of a round that became final whether the federation ends with it.
pub type EndsAfter<'a> = Box<dyn FnMut(&RoundDone) -> bool + 'a>;

/// Options of a run.
pub struct Options<'a> {
    /// The folder of data sets that are files.
    pub data: Option<PathBuf>,
    /// True if all silos share one cache of checks, so that each signature and hash is verified
    /// once per process instead of once per silo.
    pub cache: bool,
    /// Kind of signatures of members. Behaviour and results do not depend on it, traces do: they are hashes
    /// over messages with their signatures.
    pub signatures: Signatures,
    /// Threads for heavy work. Their number changes how long a run takes and nothing else.
    pub threads: usize,
    /// `true` if the references that the federation is compared with are computed: training alone, one global
    /// model, one model of all rows.
    pub references: bool,
    /// `true` if the chains of all members are compared after the run and every outcome on them is recomputed.
    /// Needs protocol parameters that keep the models of all rounds (`keep-rounds`).
    pub audit: bool,
    /// `true` if the contributions of every round are kept, which take the memory of as many models.
    pub keep_contributions: bool,
    /// `true` if the basis of groups is kept: losses of the last cross-evaluation, and the last merges, which
    /// are computed once more for that.
    pub keep_basis: bool,
    /// Time on the federation's clock after which the run ends, whether or not the federation is
    /// complete; `None`: a federation that does not get ahead is an error in the end.
    pub limit: Option<Duration>,
    /// Called when a round became final.
    pub progress: Box<dyn FnMut(&RoundDone) + 'a>,
    /// Returns true for a final round with which the federation ends; `None`: it ends with its last round.
    /// Without messages alone.
    pub ends: Option<EndsAfter<'a>>,
    /// Factory of the silos' environments.
    pub surrounding: Surrounding<'a>,
}

impl Options<'_> {
    /// Returns whether members sign by keyed hashes.
    pub(crate) fn simulates_signatures(&self) -> bool {
        self.cache
            && self.signatures == Signatures::Simulated
            && matches!(self.surrounding, Surrounding::Virtual)
    }
}

impl Default for Options<'_> {
    /// No shared cache, a thread for every core, with references, without an audit, in virtual
    /// time.
    fn default() -> Self {
        Self {
            data: None,
            cache: false,
            signatures: Signatures::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            references: true,
            audit: false,
            keep_contributions: false,
            keep_basis: false,
            limit: None,
            progress: Box::new(|_| ()),
            ends: None,
            surrounding: Surrounding::Virtual,
        }
    }
}
