//! Attacks on what a federation tells about single rows, and how they are measured.
//!
//! | part | what it is |
//! |---|---|
//! | [`AttackEstimate`] | a measured number with its 95 % interval |
//! | `replay` | rounds with noise, played without masks and messages |

mod estimate;
mod replay;

pub use estimate::AttackEstimate;
pub(crate) use replay::{replay, total};
