//! Guarantees of the libp2p mesh beyond those of every network, on real sockets of this machine.

#![allow(clippy::unwrap_used)]

mod common;
mod crowd;
mod epochs;
mod guests;
mod links;
mod probe;
mod relay;
mod twins;
