//! What the work of masked rounds is about: a list, and a final round.

use crate::hash::Hash;
use crate::message::{KeyList, ListDocument, MaskedRound};
use crate::parameters::Epoch;
use crate::parameters::privacy::Sum;

/// The members that are ready for a masked round, and the sums that are opened.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedList {
    /// The round.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// Hash of the state that the round starts from.
    pub state: Hash,
    /// The hash that masks are bound to: of the [document](MaskedList::document).
    pub root: Hash,
    /// The members with their keys.
    pub keys: KeyList,
    /// The sums.
    pub sums: Vec<Sum>,
    /// How many of the ready can open the sums.
    pub threshold: usize,
}

impl MaskedList {
    /// The list that a document of this epoch holds; `threshold` of the ready can open its sums.
    pub fn new(document: ListDocument, threshold: usize) -> Self {
        Self {
            round: document.round,
            plan: document.plan,
            state: document.state,
            root: document.root(),
            keys: document.keys,
            sums: document.sums,
            threshold,
        }
    }

    /// What its root is the hash of.
    pub fn document(&self, epoch: &Epoch) -> ListDocument {
        ListDocument {
            federation: epoch.federation,
            epoch: epoch.id,
            round: self.round,
            plan: self.plan,
            state: self.state,
            keys: self.keys.clone(),
            sums: self.sums.clone(),
        }
    }
}

/// A final masked round whose sums are to be opened.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalMasked {
    /// Hash of its block.
    pub block: Hash,
    /// What the block says.
    pub round: MaskedRound,
    /// How many of the ready can open the sums.
    pub threshold: usize,
}
