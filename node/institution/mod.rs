//! One institution's node: its configuration, its run over a real network and a real disk, and
//! its output for the operator.

mod columns;
pub mod config;
mod consent;
mod file;
mod fit;
mod health;
mod knocks;
mod leaving;
mod news;
mod output;
mod reporter;
mod run;
mod serving;
mod signals;
mod unreachable;
mod usage;
mod waiting;

pub use config::{Configured, Data, Institution, SetupError, agreement_in, state_folder};
pub(crate) use consent::CONSENT;
pub use consent::{Unsigned, consent_in};
pub use fit::{Fit, fit};
pub use news::phase_name;
pub use output::Output;
pub use run::{NodeError, Options, run};
pub use usage::parsed as cpu_seconds;
