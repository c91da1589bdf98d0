//! What the protocol needs to know of the work that a silo does on models.

use std::sync::Arc;

use crate::hash::Hash;
use crate::message::{EntryFields, Sheet};
use crate::roster::MemberIndex;

/// Why work on models gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkError {
    /// A blob could not be fetched now. Trying again may help.
    Unavailable,
    /// The work itself failed, as it would at every member and at any time. Says why.
    Refused(String),
}

/// The part of a plan that the protocol reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The round.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// The members that take part, ascending; `None` for all.
    pub participants: Option<Vec<MemberIndex>>,
    /// Whether participants score each other's models (cross-evaluation).
    pub cross_evaluate: bool,
    /// Whether entries carry a weight.
    pub weights: bool,
    /// Exact size of a contributed model, in bytes.
    pub blob_size: u64,
}

/// The result of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The fields of the entry.
    pub fields: EntryFields,
    /// Training metrics by name, ascending.
    pub metrics: Vec<(String, f64)>,
}

/// A sheet and a decision on it. Checking the decision and computing the outcome depend on these,
/// and on the state that the round started from, alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The round.
    pub round: u64,
    /// The sheet.
    pub sheet: Arc<Sheet>,
    /// The decision.
    pub decision: Arc<[u8]>,
    id: Hash,
}

impl Case {
    /// A decision on a sheet; `root` is the sheet's [`root`](Sheet::root).
    pub fn new(round: u64, root: Hash, sheet: Arc<Sheet>, decision: Arc<[u8]>) -> Self {
        let id = Hash::labelled("case", &[&round.to_le_bytes(), &root.0, &decision]);
        Self {
            round,
            sheet,
            decision,
            id,
        }
    }

    /// The hash of round, root and decision, by which results name the case.
    pub fn id(&self) -> Hash {
        self.id
    }
}
