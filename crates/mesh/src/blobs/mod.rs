//! Fetches and serves blobs, such as whole models, by their hash, in verified chunks over streams.
//!
//! `tree` cuts a blob into chunks that can be verified, `board` tracks the chunks of one blob, `batch`
//! the state of all blobs of a fetch, `wire` is the format on a stream, `pull` fetches from one
//! holder, `client` from several, `spool` keeps large blobs out of memory, and `server` serves blobs that the silo allows.

mod batch;
mod chunk_map;
mod client;
mod pull;
mod server;
mod spool;
mod tree;
mod wire;

pub(crate) use client::Fetcher;
pub(crate) use server::BlobServer;
pub use spool::{Place, Spool};

#[cfg(test)]
mod tests;
