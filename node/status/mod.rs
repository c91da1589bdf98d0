//! The status of a running node: one document, and the ways in which people and programs read it.
//!
//! [`Status`] is the one source. A node serves it over a socket in its state folder that only its owner
//! can open ([`socket`]). `rota status` prints it ([`text`]), `rota watch` draws it in a terminal
//! ([`watch`]). Where the operator asks for it, the node also serves it over HTTP on this machine
//! ([`http`]): as a page ([`page`]) and as metrics for Prometheus ([`metrics`]). What members tell each
//! other of it, and one page for all nodes, is in [`all`].

pub mod all;
mod curve;
pub mod document;
pub mod http;
pub mod metrics;
pub mod page;
pub mod socket;
pub mod text;
pub mod watch;

use std::sync::Arc;

pub use document::Status;

/// Gives the status at this moment.
pub type StatusSource = Arc<dyn Fn() -> Status + Send + Sync>;

#[cfg(test)]
pub(crate) mod fixture;
