//! The lead's decision, and why a member may refuse it.

use serde::{Deserialize, Serialize};

/// What the lead chose: who learns with whom.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Coalition of every entry, in bundle order. Where a round forms coalitions, they are
    /// numbered 0.. in the order of their first entry, and none is empty. Where coalitions are
    /// carried over from earlier rounds they keep their numbers (the places of
    /// [`State::models`](crate::State::models)), and one may have no entry.
    pub assignment: Vec<u32>,
    /// Value of the strategy's objective at this assignment; 0 where it has none.
    pub objective: f64,
    /// A proven lower bound of the objective over all assignments.
    pub lower_bound: f64,
    /// Further assignments of the entries, of which a later round chooses one; empty where the
    /// strategy has none such.
    pub candidates: Vec<Vec<u32>>,
}

/// Why the lead could not decide.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecideError {
    /// No entry at all.
    #[error("nobody contributed, there is nothing to decide")]
    NoEntries,
    /// The plan asked for scores and the sheet has none.
    #[error("this strategy decides from a cross-evaluation and the sheet has none")]
    NoScores,
    /// The score matrix belongs to another bundle.
    #[error("the sheet has {entries} contributions and scores of {scored}")]
    Scores {
        /// Contributions at hand.
        entries: usize,
        /// Contributions scored.
        scored: usize,
    },
    /// The plan asked for numbers of rows and an entry has none.
    #[error("entry {entry} does not say on how many rows it was trained")]
    NoWeight {
        /// Position in the bundle.
        entry: usize,
    },
    /// An entry that [`Strategy::admit`](crate::Strategy::admit) would have refused.
    #[error("entry {entry}: {reason}")]
    Unusable {
        /// Position in the bundle.
        entry: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why a member does not accept a decision.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Objection {
    /// The sheet itself admits no decision.
    #[error(transparent)]
    Sheet(#[from] DecideError),
    /// The decision is not a numbered partition of the entries, or breaks the strategy's rules.
    #[error("the decision is not feasible: {0}")]
    Infeasible(String),
    /// The stated objective or bound is not what the assignment gives.
    #[error("the decision states {stated}, the assignment gives {actual}")]
    Misstated {
        /// As proposed.
        stated: f64,
        /// As recomputed.
        actual: f64,
    },
    /// A better decision was found.
    #[error("a better decision exists: {found} instead of {proposed}")]
    NotBest {
        /// Objective of the proposal.
        proposed: f64,
        /// Objective of what the checker found.
        found: f64,
    },
}
