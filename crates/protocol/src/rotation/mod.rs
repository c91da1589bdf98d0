//! The rotation of leads: which member leads which view, under the policy that the parameter set names.
//!
//! Under `every-round` the lead follows from the number of the view alone. Under the others it
//! follows from the final learning blocks and the number of the view: [`Turns`] holds what it takes
//! from the blocks. Empty blocks and views that failed never change it, so members that know the
//! same last final learning block agree on the lead of every later view.

mod cycles;
mod turns;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::roster::MemberIndex;

pub(crate) use cycles::Cycles;
pub use turns::Turns;

/// Who leads when. In files and on the command line a policy is a word: see [`Rotation::from_str`].
///
/// Under every policy but [`Fixed`](Self::Fixed), any n views in a row that follow one final
/// learning block have n different leads, so a federation goes on without any f of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rotation {
    /// `every-round`: a new lead in every view; each member leads once per cycle of n views.
    EveryRound,
    /// `every-K-rounds`, K at least 2: the lead of a final round leads the next ones too, until K
    /// rounds in a row are its own. Then, and after every view that fails, the next member leads.
    EveryRounds(u32),
    /// `on-failure`: the lead of a final round leads the next one too. After a view that fails, the
    /// next member leads.
    OnFailure,
    /// `reliability`: after every final round the leads of the next n views are drawn, all members
    /// in an order in which those that lost views or did not contribute come later. See [`Turns`].
    Reliability,
    /// `fixed`: the first silo of the roster leads every view, as a server does. No round becomes
    /// final without it.
    Fixed,
}

impl Rotation {
    /// A rotation of each kind, with K = 5.
    pub const ALL: [Self; 5] = [
        Self::EveryRound,
        Self::EveryRounds(5),
        Self::OnFailure,
        Self::Reliability,
        Self::Fixed,
    ];

    /// Whether the lead of a view depends on the final rounds before it.
    pub fn follows_rounds(self) -> bool {
        match self {
            Self::EveryRound | Self::Fixed => false,
            Self::EveryRounds(_) | Self::OnFailure | Self::Reliability => true,
        }
    }
}

impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryRound => f.write_str("every-round"),
            Self::EveryRounds(rounds) => write!(f, "every-{rounds}-rounds"),
            Self::OnFailure => f.write_str("on-failure"),
            Self::Reliability => f.write_str("reliability"),
            Self::Fixed => f.write_str("fixed"),
        }
    }
}

/// What the rotation needs of a federation: an `Epoch`, also behind an `Arc`.
pub trait Setting {
    /// The policy.
    fn rotation(&self) -> Rotation;
    /// What shuffles and draws follow from: the federation's id in the first epoch, later the
    /// epoch's.
    fn seed(&self) -> &Hash;
    /// Number of members.
    fn members(&self) -> usize;
    /// The lead of a view under `every-round`.
    fn lead_by_view(&self, view: u64) -> MemberIndex;
}

impl<T: Setting> Setting for Arc<T> {
    fn rotation(&self) -> Rotation {
        (**self).rotation()
    }

    fn seed(&self) -> &Hash {
        (**self).seed()
    }

    fn members(&self) -> usize {
        (**self).members()
    }

    fn lead_by_view(&self, view: u64) -> MemberIndex {
        (**self).lead_by_view(view)
    }
}

/// A text that names no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no rotation: expected every-round, every-K-rounds with K from 2 (such as \
     every-5-rounds), on-failure, reliability or fixed"
)]
pub struct RotationError(String);

impl FromStr for Rotation {
    type Err = RotationError;

    /// Reads `every-round`, `every-K-rounds`, `on-failure`, `reliability` or `fixed`.
    fn from_str(text: &str) -> Result<Self, RotationError> {
        let of_k = |text: &str| {
            let k = text.strip_prefix("every-")?.strip_suffix("-rounds")?;
            k.parse().ok().filter(|&k| k >= 2).map(Self::EveryRounds)
        };
        let one = Self::ALL.into_iter().find(|one| one.to_string() == text);
        let found = one.or_else(|| of_k(text));
        // One policy has one name: "every-05-rounds" has another.
        found
            .filter(|found| found.to_string() == text)
            .ok_or_else(|| RotationError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_policy_has_one_name() {
        for policy in Rotation::ALL.into_iter().chain([Rotation::EveryRounds(2)]) {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for wrong in [
            "",
            "every-1-rounds",
            "every-05-rounds",
            "every-k-rounds",
            "every-99999999999-rounds",
            "Fixed",
        ] {
            let error = wrong.parse::<Rotation>().unwrap_err();
            assert!(error.to_string().contains("every-K-rounds"), "{error}");
        }
    }

    /// An agreement that says nothing of rotation keeps its id.
    #[test]
    fn every_round_is_encoded_as_one_zero_byte() {
        assert_eq!(crate::codec::encode(&Rotation::EveryRound), [0]);
        let mut all = Rotation::ALL
            .map(|policy| crate::codec::encode(&policy))
            .to_vec();
        all.dedup();
        assert_eq!(all.len(), Rotation::ALL.len());
    }
}
