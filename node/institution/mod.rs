//! One institution's node: its configuration, its run over a real network and a real disk, and
//! its output for the operator.

mod admission;
mod amendments;
mod asking;
mod audited;
mod before;
mod columns;
pub mod config;
mod consent;
mod error;
mod farewell;
mod file;
mod fit;
mod formats;
mod given;
mod health;
mod knocks;
mod late;
mod learning;
mod leaving;
mod links;
mod living;
mod news;
mod opening;
mod output;
mod own_learner;
mod past;
mod places;
mod present;
mod recovery;
mod reporter;
mod role;
mod run;
mod serving;
mod signals;
mod signature;
pub mod typed;
mod unreachable;
mod usage;
mod waiting;
mod watch;
mod weaknesses;
mod weights;

pub use amendments::{AmendmentFolder, AmendmentWord, FoundAmendments, KnownAmendment, Unused};
pub use config::opened_ledger;
pub(crate) use config::source_of;
pub use config::{Configured, Data, Institution, SetupError, agreement_in, state_folder};
pub use consent::CONSENT;
pub use consent::{Unsigned, consent_in};
pub use error::NodeError;
pub use fit::{RowsFit, fit, misfits, surveyed};
pub use formats::other_format;
pub(crate) use opening::IN_FORCE;
pub use output::OutputLines;
pub use own_learner::OwnLearner;
pub use places::Places;
pub use present::{Membership, Present, PresentError, place, present, protocol_records, standing};
pub use recovery::{RecoveryWish, WishFile};
pub use run::{NodeOptions, run, run_with};
pub use signature::{Owed, SignatureState};
pub use usage::parsed as cpu_seconds;

fn locked<T>(shared: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No code panics while it holds this lock.
    let guard = shared.lock();
    guard.unwrap_or_else(std::sync::PoisonError::into_inner)
}
