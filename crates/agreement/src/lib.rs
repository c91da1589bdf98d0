//! The agreement of a federation: its members, its task, its strategy and its rules.
//!
//! Every member has the same agreement in its file `federation.toml`. [`Agreement`] is the checked
//! content of that file. [`AgreedWork`] is its learning part (task, strategy, seed, bound on norms) in the
//! canonical encoding that is part of the federation's id. The id depends on the meaning of the file,
//! and not on comments, order or spacing.
//!
//! A [`Draft`] is such a file before all members are in it. An [`Invitation`] carries it to the members
//! as one line of text, and a [`Consent`] is a member's signature under it.
//!
//! A simulation makes the same agreement from a scenario. This crate also has the code that scenarios
//! and the files of a node share: rules of the rounds with defaults ([`ProtocolConfig`], [`DraftCheck`]), spans
//! of time ([`Span`]), errors with file and line ([`TomlText`]), and the seed of a silo ([`silo_seed`]).

mod agreement;
mod alike;
mod amend;
mod asked;
mod canonical;
mod config_error;
mod consent;
mod continues;
mod date;
mod difference;
mod draft;
mod draft_check;
mod examine;
mod file;
mod held_out;
mod invitation;
mod keys;
mod mail;
mod policy;
mod privacy;
mod protocol_config;
mod question;
mod renamed;
mod request;
mod rotation;
mod schema;
mod schema_questions;
mod seed;
mod serving;
mod source;
mod span;
mod strategy;
mod summed;
mod token;
mod verification;
mod work;

pub use agreement::{
    Agreement, LINE_MBIT, Unfit, bounds_fault, default_min_contributions, default_view_timeout,
    enough_patience, models_take, public_key, read_configuration,
};
pub use alike::{LookError, check_new, confusing};
pub use amend::AmendError;
pub use canonical::{Canonical, CanonicalError};
pub use config_error::ConfigError;
pub use consent::{Consent, ConsentError};
pub use continues::{Continues, Seen};
pub use difference::{Changed, Difference, MemberCounts};
pub use draft::{AddError, Draft, Joining, NewDraft};
pub use draft_check::{DraftCheck, SCENARIO_FORMAT};
pub use file::{Mode, PrivacyTable, StatusFor};
pub use invitation::{InForce, Invitation, TokenError};
pub use policy::Routine;
pub use privacy::{DeltaDoubt, MaskedTask, NOISED, NoisedSettings, PrivacyOf, bound, most_auc};
pub use protocol_config::ProtocolConfig;
pub use question::{AgreedQuestion, QuestionStage, bytes_of_round, summed_with};
pub use renamed::current;
pub use request::{JoinRequest, RequestError};
pub use rotation::RotationName;
pub use schema::schema_of;
pub use schema_questions::{
    AnswerFileError, SchemaAnswers, SchemaQuestion, SchemaQuestions, SettledSchema,
    schema_questions, settled, with_schema,
};
pub use seed::silo_seed;
pub use serving::ServingTable;
pub use source::{FileError, TomlText};
pub use span::Span;
pub use strategy::strategy_error;
pub use verification::VerificationName;
pub use work::AgreedWork;

/// The JSON Schema of `federation.toml`.
pub fn federation_schema() -> serde_json::Value {
    schema_of::<file::FederationFile>("federation.toml")
}
