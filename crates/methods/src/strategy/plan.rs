//! The plan of a round: what every member is asked to do.

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::learner::Task;
use crate::params::Params;

/// What a round asks of the members: a function of the last final state alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Who takes part; `None`: everybody. Roster positions, ascending.
    pub participants: Option<Vec<u16>>,
    /// Hash of the start model of every coalition.
    pub starts: Vec<Digest>,
    /// What a participant does.
    pub task: Task,
    /// Whether every participant scores every entry on its own data afterwards.
    pub cross_evaluate: bool,
    /// Whether an entry carries the number of its training rows.
    pub weights: bool,
}

/// How a silo begins its part in a round.
#[derive(Debug, Clone)]
pub struct Start {
    /// The model that it starts from.
    pub model: Params,
    /// The coalition that its entry names.
    pub coalition: u32,
    /// What it does.
    pub task: Task,
}

/// Whether a strategy needs to know members by name from round to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// Entries stay nameless.
    Removed,
    /// State is keyed by member; the charter must say so.
    Shown,
}
