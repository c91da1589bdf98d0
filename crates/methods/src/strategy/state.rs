//! The state that one round of a strategy hands to the next.

use std::collections::BTreeMap;

use crate::params::Params;

/// What one round hands to the next: part of every outcome, so that the next lead carries on.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The models that silos start from, by coalition. Before the first round: one, the initial.
    pub models: Vec<Params>,
    /// Anything else a strategy remembers, by name (λ, a graph, counters).
    pub memory: BTreeMap<String, Vec<f64>>,
    /// Further models that it remembers, by name (every member's last, directions of groups), each
    /// of the layout of [`models`](Self::models). They travel by hash: one that was contributed as
    /// it is costs nothing.
    pub tables: BTreeMap<String, Vec<Params>>,
}

impl State {
    /// The state before the first round: everybody in one coalition around the initial model.
    pub fn genesis(initial: Params) -> Self {
        Self {
            models: vec![initial],
            memory: BTreeMap::new(),
            tables: BTreeMap::new(),
        }
    }

    /// Other models, and everything else as it is.
    pub fn with(&self, models: Vec<Params>) -> Self {
        Self {
            models,
            memory: self.memory.clone(),
            tables: self.tables.clone(),
        }
    }
}
