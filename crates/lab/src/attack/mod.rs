//! Attacks on what a federation tells about single rows, and how they are measured.
//!
//! | part | what it is |
//! |---|---|
//! | [`membership()`] | which rows models learned from, guessed with the help of shadow federations |
//! | [`OwnMembership`] | the same by the losses of a node's local model, on its own rows |
//! | [`canary()`] | a lower bound on ε, from synthetic rows that are in a federation or not |
//! | [`AttackEstimate`] | a measured number with its 95 % interval |

mod canary;
mod estimate;
mod membership;
mod replay;
mod scored;

pub use canary::{CanaryAudit, CanaryOptions, CanaryRun, CoinGuesses, LEVEL, canary, canary_with};
pub use estimate::AttackEstimate;
pub use membership::{
    FEWEST_SHADOWS, MembershipAttack, MembershipBound, MembershipOptions, MembershipTest,
    OwnMembership, membership,
};
pub(crate) use replay::{PlayedRound, replay, total};
