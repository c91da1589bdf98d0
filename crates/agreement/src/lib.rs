//! The agreement of a federation: who takes part, what is learned, and how.
//!
//! Every member has the same agreement, as a file `federation.toml` that people can read and
//! compare. [`Agreement`] is that file after it was checked. [`Work`] is its learning part (task,
//! strategy, seed, bound on norms) as the canonical bytes that go into the federation's id: the id
//! follows from the meaning of the file, and not from comments, order or spacing.
//!
//! A simulation makes the same agreement from a scenario. What scenarios and the files of a node
//! share stands here too: spans of time ([`Span`]), errors with file and line ([`Source`]), and the
//! seed of a silo ([`silo_seed`]).

mod agreement;
mod canonical;
mod file;
mod schema;
mod seed;
mod source;
mod span;
mod strategy;
mod work;

pub use agreement::{Agreement, ConfigError, read_configuration};
pub use canonical::{Canonical, CanonicalError};
pub use schema::schema_of;
pub use seed::silo_seed;
pub use source::{FileError, Source};
pub use span::Span;
pub use strategy::strategy_error;
pub use work::Work;

/// The JSON Schema of `federation.toml`.
pub fn federation_schema() -> serde_json::Value {
    schema_of::<file::FederationFile>("federation.toml")
}
