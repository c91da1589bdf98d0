//! One institution's node: its configuration, its life over a real network and a real disk, and
//! what it tells its operator.

pub mod config;
mod leaving;
mod life;
mod news;
mod waiting;

pub use config::{Data, Institution, SetupError};
pub use life::{NodeError, Options, run};
pub use news::Teller;
