//! The agreement of a federation: its members, its task, its strategy and its rules.
//!
//! Every member has the same agreement in its file `federation.toml`. [`Agreement`] is the checked
//! content of that file. [`Work`] is its learning part (task, strategy, seed, bound on norms) in the
//! canonical encoding that is part of the federation's id. The id depends on the meaning of the file,
//! and not on comments, order or spacing.
//!
//! A simulation makes the same agreement from a scenario. This crate also has the code that scenarios
//! and the files of a node share: spans of time ([`Span`]), errors with file and line ([`Source`]), and the
//! seed of a silo ([`silo_seed`]).

mod agreement;
mod canonical;
mod continues;
mod file;
mod schema;
mod seed;
mod source;
mod span;
mod strategy;
mod work;

pub use agreement::{Agreement, ConfigError, public_key, read_configuration};
pub use canonical::{Canonical, CanonicalError};
pub use continues::Continues;
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
