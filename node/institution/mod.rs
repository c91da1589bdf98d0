//! One institution's node: its configuration, its run over a real network and a real disk, and
//! its output for the operator.
//!
//! | part | what it holds |
//! |---|---|
//! | [`config`] | `node.toml`, checked, and the files that it names |
//! | `report` | what a node says of itself and of others |
//! | `agreement` | the agreement in force, amendments, recoveries, and what the institution has signed |
//! | `serve` | which model the silo serves after the last round |
//! | `start` | what a node needs and makes known before its silo runs |
//! | `run` | one silo from its start to an orderly end |
//!
//! Each part names only those above it (`tests/architecture/parts.rs`).

mod agreement;
pub mod config;
#[cfg(test)]
mod earlier;
mod error;
mod report;
mod run;
mod serve;
mod signals;
mod start;

pub use self::agreement::amendments::{
    AmendmentFolder, AmendmentWord, FoundAmendments, KnownAmendment, Unused,
};
pub(crate) use self::agreement::history::agreements;
pub use self::agreement::in_force::{
    Membership, Present, PresentError, place, present, present_and_contributed, protocol_records,
    standing,
};
pub use self::agreement::recovery_wish::{RecoveryWish, WishFile};
pub use self::agreement::short_id;
pub use self::agreement::signed::{Owed, SignatureState};
pub use config::consent::{CONSENT, Unsigned, consent_in};
pub use config::opened_ledger;
pub use config::own_learner::OwnLearner;
pub use config::paths::Places;
pub use config::{Configured, Data, Institution, SetupError, agreement_in, state_folder};
pub(crate) use config::{policy_of, source_of};
pub use error::NodeError;
pub use report::format_texts::other_format;
pub use report::output::OutputLines;
pub use report::usage::parsed as cpu_seconds;
pub use run::{NodeOptions, run, run_with};
pub(crate) use start::announce::IN_FORCE;
pub use start::rows_fit::{PASTE, RowsFit, fit, misfits, names_that_fit, surveyed};
pub use start::signed_rows::{keep_profile, signed_profile};

fn locked<T>(shared: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No code panics while it holds this lock.
    let guard = shared.lock();
    guard.unwrap_or_else(std::sync::PoisonError::into_inner)
}
