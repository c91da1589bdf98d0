//! One institution's node: its configuration, its run over a real network and a real disk, and
//! its output for the operator.

pub mod config;
mod file;
mod leaving;
mod life;
mod news;
mod waiting;

pub use config::{Data, Institution, SetupError};
pub use life::{NodeError, Options, run};
pub use news::Teller;
