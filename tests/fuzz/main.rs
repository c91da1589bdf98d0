//! Everything that reads bytes from outside gets damaged and synthetic ones: no panic, and no more
//! memory than the declared limits.
//!
//! The blob stream is fuzzed beside its code (`crates/mesh/src/blobs/tests/fuzz.rs`).

#![allow(clippy::unwrap_used)]

mod agreements;
mod engine;
mod journal;
mod member;
mod messages;
mod models;
mod sent;
mod world;
