//! The earlier federation that a federation continues.

use std::fmt;

use protocol::Hash;
use protocol::parameters::{Group, ProtocolParameters, RoundMode};

use crate::file::Mode;

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
    /// What members saw of contributions in the earlier federation.
    pub seen: Seen,
    /// The groups whose models were added up without noise, in the earlier federation and those before it. Who is
    /// in one is added up with the same others, or with nobody: the difference of two such sums may be the model
    /// of a single institution, in whichever federations they were opened.
    pub summed: Vec<Group>,
}

/// What members see of each other's contributions, from most to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Seen {
    /// Every model.
    #[default]
    Models,
    /// Sums of groups.
    Sums,
    /// Sums with noise.
    NoisedSums,
}

impl Seen {
    /// Returns what members see under this parameter set.
    pub fn under(protocol: &ProtocolParameters) -> Self {
        match protocol.privacy.mode() {
            RoundMode::Clear | RoundMode::Named => Self::Models,
            RoundMode::Masked(_) => Self::Sums,
            RoundMode::Noised(..) => Self::NoisedSums,
        }
    }

    /// As the file has it; `None` for what it leaves out.
    pub(crate) fn mode(self) -> Option<Mode> {
        match self {
            Self::Models => None,
            Self::Sums => Some(Mode::Masked),
            Self::NoisedSums => Some(Mode::MaskedNoised),
        }
    }

    /// Returns what the file says.
    pub(crate) fn of(mode: Option<Mode>) -> Self {
        match mode {
            None | Some(Mode::Clear) => Self::Models,
            Some(Mode::Masked) => Self::Sums,
            Some(Mode::MaskedNoised) => Self::NoisedSums,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Models => "every model",
            Self::Sums => "only sums of groups",
            Self::NoisedSums => "only sums with noise",
        }
    }
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
