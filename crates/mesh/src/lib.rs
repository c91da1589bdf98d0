//! How bytes travel between silos.
//!
//! The contract is two bounded channels of plain values: [`Command`]s in, [`Event`]s out. Whoever
//! implements it promises:
//!
//! - frames arrive whole or not at all, unchanged, in any order, perhaps more than once when sent
//!   to one member, at most once when published;
//! - a frame says who passed it on; who signed it is in the frame itself;
//! - a blob is handed over only whole, after its BLAKE3 hash was verified, and never larger than
//!   the `limit` it was asked for with;
//! - the answer to `Fetch` is `Fetched` or `Missing`, always; the answer to `Wanted` is `Serve`;
//! - commands that do not fit into the channel are lost (the protocol says everything again);
//!   events wait for the silo, so the silo sees every one.
//!
//! The simulated network of `simulations` is one implementation. The libp2p swarm is the other, and
//! this crate is its place: nothing outside it names libp2p.

pub use protocol::net::{Command, Event};
