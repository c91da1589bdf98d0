//! How to run a scenario.

use std::path::PathBuf;

use crate::world::{Stage, World};

/// A round that became final, as progress to show.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundDone {
    /// The round, from 1.
    pub round: u64,
    /// Rounds in all.
    pub rounds: u64,
    /// The view of its block.
    pub view: u64,
    /// The lead of that view, by name.
    pub lead: String,
    /// On the federation's clock, virtual or real.
    pub at: f64,
}

/// Makes a world for a federation, on a clock that is not paused.
pub type SurroundingsFor<'a> = dyn FnMut(&Stage<'_>) -> Result<Box<dyn World>, String> + 'a;

/// How to run a scenario.
pub struct Options<'a> {
    /// Where data lie that are in files.
    pub data: Option<PathBuf>,
    /// Whether checks are remembered process-wide.
    pub memo: bool,
    /// Threads for heavy work; they change how long a run takes and nothing else.
    pub threads: usize,
    /// Whether to run what the federation is compared with.
    pub references: bool,
    /// Whether to compare the chains of all members after the run, and to compute every outcome on
    /// them again. Needs a charter that keeps the models of all rounds (`keep`).
    pub audit: bool,
    /// Called when a round became final.
    pub progress: Box<dyn FnMut(&RoundDone) + 'a>,
    /// What the silos live in; `None`: the simulated world in virtual time.
    pub surroundings: Option<Box<SurroundingsFor<'a>>>,
}

impl Default for Options<'_> {
    /// Every check by every member, all cores, with references, in virtual time.
    fn default() -> Self {
        Self {
            data: None,
            memo: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            references: true,
            audit: false,
            progress: Box::new(|_| ()),
            surroundings: None,
        }
    }
}
