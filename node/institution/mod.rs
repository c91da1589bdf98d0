//! One institution's node: its configuration, its run over a real network and a real disk, and
//! its output for the operator.

mod columns;
pub mod config;
mod file;
mod leaving;
mod news;
mod run;
mod serving;
mod waiting;

pub use config::{Data, Institution, SetupError};
pub use news::Output;
pub use run::{NodeError, Options, run};
