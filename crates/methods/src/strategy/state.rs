//! The state that one round of a strategy hands to the next.

use std::collections::BTreeMap;

use super::Memory;
use crate::params::Params;

/// The state that one round hands to the next: part of every outcome, so that any member can lead
/// the next round.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The models that silos start from, by coalition. Before the first round: one, the initial, unless the
    /// strategy [begins](super::Strategy::initial_state) with several.
    pub models: Vec<Params>,
    /// Anything else a strategy keeps, by name (λ, a graph, counts).
    pub memory: Memory,
    /// Further models that it remembers, by name (every member's last, directions of groups), each
    /// of the layout of [`models`](Self::models). They travel by hash: one that was contributed as
    /// it is costs nothing.
    pub tables: BTreeMap<String, Vec<Params>>,
}

impl State {
    /// The state before the first round: all members in one coalition, with the initial model.
    pub fn genesis(initial: Params) -> Self {
        Self {
            models: vec![initial],
            memory: Memory::default(),
            tables: BTreeMap::new(),
        }
    }

    /// This state with other models.
    pub fn with(&self, models: Vec<Params>) -> Self {
        Self {
            models,
            memory: self.memory.clone(),
            tables: self.tables.clone(),
        }
    }
}
