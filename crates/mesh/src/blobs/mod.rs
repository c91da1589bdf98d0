//! Blobs by hash: whole models, pulled over streams in verified chunks.
//!
//! `tree` says what a chunk is, `board` which are missing, `batch` how far several blobs have come,
//! `wire` what is said, `pull` takes from one holder, `client` from several, and `server` asks the
//! silo whether to hold.

mod batch;
mod board;
mod client;
mod pull;
mod server;
mod tree;
mod wire;

pub(crate) use client::Fetcher;
pub(crate) use server::Desk;

#[cfg(test)]
mod tests;
