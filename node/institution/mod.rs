//! One institution's node: its configuration, its run over a real network and a real disk, and
//! its output for the operator.

pub mod config;
mod file;
mod health;
mod leaving;
mod news;
mod output;
mod reporter;
mod run;
mod serving;
mod unreachable;
mod waiting;

pub use config::{Data, Institution, SetupError, state_folder};
pub use output::Output;
pub use run::{NodeError, Options, run};
