//! The program of an institution: its node, and the commands around it.
//!
//! | part | what |
//! |---|---|
//! | [`federation`], [`identity`], [`split_key`] | the agreement of a federation, a member's key, and the secret by which it holds out rows, as files |
//! | [`draft`] | drafts: a scenario from data files, and the agreement of a new federation |
//! | [`institution`] | one institution's node: its configuration and its run |
//! | [`check`] | looks at everything that a node needs, before it runs or while it does |
//! | [`status`], [`events`] | what a running node says of itself: socket, text, screen, page, metrics, lines |
//! | [`chain`] | the agreed chain, read from a journal |
//! | [`answers`] | answers to the questions of an agreement, from all rows of an institution |
//! | [`model`], [`equipment`] | the models that a node's state holds; what a silo learns with |
//! | [`store`] | the journal and blobs of a silo on disk |
//! | [`audit`] | the log of everything that a node sent, and its check |
//! | [`backup`] | saves what an institution cannot get back from others, and puts it back |
//! | [`verify`] | evidence and state folders, checked without a key |
//! | [`blame`] | who corrupted the sum of a secure-aggregation round, from what its authors disclose |
//! | [`spending`] | what a federation tells about one unit of an institution's rows, so far and to come |
//! | [`pool`] | threads for heavy work |
//! | [`prompt`] | questions to a person at a terminal |
//! | [`cli`], [`commands`], [`exit`], [`logging`] | the command line around a node |
//!
//! The program `rota-node` is these commands alone; the program `rota` adds the laboratory.

pub mod answers;
pub mod audit;
pub mod backup;
pub mod blame;
pub mod chain;
pub mod check;
pub mod cli;
mod clock;
pub mod commands;
mod comparison;
mod corrupters;
pub mod draft;
pub mod equipment;
pub mod events;
pub mod exit;
pub mod federation;
pub mod identity;
pub mod institution;
pub mod logging;
pub mod model;
#[cfg(feature = "otlp")]
mod otlp;
pub mod paths;
pub mod policy;
pub mod pool;
pub mod prompt;
mod row_answers;
mod secrets;
pub mod spending;
pub mod split_key;
pub mod status;
pub mod store;
pub mod verify;
mod waiting_lines;

#[cfg(test)]
mod fixture;
#[cfg(test)]
#[path = "../tests/golden/mod.rs"]
mod golden;
#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;
