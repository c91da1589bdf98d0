//! The models that a node's state holds, for `rota model`: what there is, which one a silo serves,
//! and how one is taken out.
//!
//! Everything is read from the state folder, as `rota chain` reads it: nothing is changed, and the
//! node may run meanwhile.

mod choice;
mod error;
mod held;
mod notes;
mod personal;
mod start;

pub use choice::{Choice, ChosenModel, Which, choose};
pub use error::ModelError;
pub use held::{HeldModel, HeldRound, HeldRounds};
pub use notes::{
    DecisionNote, Noted, ServedNote, keep_preparation, keep_served, preparation, served,
    served_note,
};
pub(crate) use personal::keep_personal_hash;
pub use personal::{PERSONAL, kept_personal};
pub use start::{GivenStart, START, StartError, find_start, keep_start};
