//! The mode of a federation's rounds: what becomes of a contribution.

use super::{Masked, Noise, Privacy, Sums};

/// What becomes of a contribution, with what is agreed on it. Whatever depends on it outside of this crate
/// matches every mode by name, so that the compiler finds all places that a further mode concerns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RoundMode<'a> {
    /// Every member sees every model, without its author's name.
    Clear,
    /// Every member sees every model, with its author's name.
    Named,
    /// The models of groups are added up, and nothing but the sums is opened.
    Masked(&'a Masked),
    /// What rows say is added up over all ready members, and nothing but the sum with noise is opened.
    Noised(&'a Masked, &'a Noise),
}

impl Privacy {
    /// The mode of the rounds.
    pub fn mode(&self) -> RoundMode<'_> {
        match self {
            Self::Clear => RoundMode::Clear,
            Self::ClearWithNames => RoundMode::Named,
            Self::Masked(masked) => match &masked.sums {
                Sums::Groups(_) => RoundMode::Masked(masked),
                Sums::Noised(noise) => RoundMode::Noised(masked, noise),
            },
        }
    }

    /// The agreement on masked rounds, if rounds are masked.
    pub fn masked(&self) -> Option<&Masked> {
        match self.mode() {
            RoundMode::Masked(masked) | RoundMode::Noised(masked, _) => Some(masked),
            RoundMode::Clear | RoundMode::Named => None,
        }
    }

    /// Whether silos add noise to what they send, which bounds what is told about a row.
    pub fn is_noised(&self) -> bool {
        match self.mode() {
            RoundMode::Noised(..) => true,
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => false,
        }
    }
}
