//! The faults that a scenario can script: kills, network splits, Byzantine members.

use std::time::Duration;

use crate::byzantine::Behaviour;
use crate::moments::{Moment, StepCut};

/// The silo that a kill hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KillTarget {
    /// The member that leads at that moment.
    Lead,
    /// A silo, by name or by its position from 0.
    Silo(String),
}

/// Time of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTime {
    /// This long after the start.
    At(Duration),
    /// At a moment of a round, the first time that any lead reaches it.
    Round {
        /// The round, from 1.
        round: u64,
        /// The moment: [`Moment::Phase`] or [`Moment::Notarised`].
        moment: Moment,
    },
    /// In the middle of a step, at a commit of the silo's journal.
    Commit {
        /// Number of the commit, from 1.
        nth: u64,
        /// Before or after it is durable: [`StepCut::Before`] or [`StepCut::Persisted`].
        cut: StepCut,
    },
}

/// One scripted fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A silo stops as in a power cut.
    Kill {
        /// The silo that is killed.
        who: KillTarget,
        /// Time of the kill.
        when: FaultTime,
        /// Time until it restarts; `None`: it never does.
        restart_after: Option<Duration>,
        /// True if the silo restarts without its journal and blobs.
        journal_lost: bool,
    },
    /// A network split: some silos cannot reach the others.
    Split {
        /// The silos that are cut off.
        members: Vec<String>,
        /// Beginning of the split, after the start.
        at: Duration,
        /// Length of the split.
        lasts: Duration,
        /// True if the silos that are cut off still receive from the others.
        one_way: bool,
    },
    /// A silo that is Byzantine from the beginning.
    Byzantine {
        /// The member, by name or by its position from 0.
        member: String,
        /// Behaviour of the member. A member may have several, each in a fault of its own.
        behaviour: Behaviour,
    },
}

impl Fault {
    /// Returns whether the fault is of messages, leads or disks, which only a federation over a network has;
    /// otherwise it is of what a member learns.
    pub fn needs_network(&self) -> bool {
        !matches!(self, Self::Byzantine { behaviour, .. } if behaviour.is_of_learning())
    }
}
