//! The plan of a round: what every member is asked to do.

use serde::{Deserialize, Serialize};

use super::State;
use crate::Digest;
use crate::learner::Task;
use crate::params::Params;

/// What a round asks of the members: a function of the last final state alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Roster positions of the members that take part, ascending; `None`: all members.
    pub participants: Option<Vec<u16>>,
    /// Hash of the start model of every coalition.
    pub starts: Vec<Digest>,
    /// The task of a participant.
    pub task: Task,
    /// True if every participant scores every entry on its own data afterwards.
    pub cross_evaluate: bool,
    /// True if an entry carries the number of its training rows.
    pub weights: bool,
}

impl Plan {
    /// A plan in which all members take part in `task`, from the models of `state`, without
    /// scores and without numbers of rows.
    pub fn everyone(state: &State, task: Task) -> Self {
        Self {
            participants: None,
            starts: state.models.iter().map(Params::hash).collect(),
            task,
            cross_evaluate: false,
            weights: false,
        }
    }
}

/// Whether a strategy needs to know members by name from round to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// Entries stay nameless.
    Removed,
    /// State is keyed by member; the parameter set must show names.
    Shown,
}
