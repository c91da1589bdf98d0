//! Learning tasks and their rows: tasks as scenarios and agreements hold them, tables of rows, and the schema
//! that institutions agree on. Nothing here computes a model.
//!
//! - [`TaskConfig`]: a task, with the configuration of its model ([`model`]) or the tensors of a
//!   program ([`external`]).
//! - [`data`]: rows from files or built in, split into training, validation and test rows,
//!   completed and standardised.
//! - [`schema`]: what the rows of all institutions have in common; [`survey`] holds an institution's
//!   files against it, [`propose`] drafts one for files that nobody has described yet, [`questions`] are those
//!   that only a person can answer about rows.
//! - [`survival`]: times to an event, of rows that are observed until it or for a while only.
//! - [`loss`] and [`metrics`]: how outputs of a model are compared with the targets.
//! - [`file`](mod@file): reads configurations and data with a bound on their size.
//!
//! Everything random follows from seeds.

mod config;
mod counted;
pub mod data;
pub mod external;
pub mod file;
pub mod loss;
pub mod machine_memory;
pub mod metrics;
pub mod model;
mod noise;
mod own_rows;
pub mod propose;
pub mod questions;
pub mod random;
pub mod schema;
mod source;
mod stand_in;
pub mod survey;
pub mod survival;
mod table;
mod typed;

pub use config::TaskConfig;
pub use model::ModelConfig;
pub use noise::NoiseFault;
pub use source::Source;
pub use stand_in::{MakeStandIn, StandIn};
pub use table::TableTask;

/// Default number of silos for sources whose rows can be partitioned into any number.
pub const SILOS: usize = 8;

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
