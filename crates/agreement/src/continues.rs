//! The earlier federation that a federation continues.

use std::fmt;

use protocol::Hash;

/// The model of an earlier federation that a federation starts from. It is part of the agreement,
/// so of the new federation's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continues {
    /// Name of the earlier federation, for people.
    pub name: String,
    /// Id of the earlier federation.
    pub federation: Hash,
    /// The round after which the model was adopted.
    pub round: u64,
    /// Hash of the final block of that round.
    pub block: Hash,
    /// Hash of the canonical safetensors document of the model's tensors.
    pub model: Hash,
}

impl fmt::Display for Continues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the federation {} ({:#}), from a model of its round {} (block {:#})",
            self.name, self.federation, self.round, self.block
        )
    }
}
