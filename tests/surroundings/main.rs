//! Environment of a silo: the guarantees of networks, journals and stores of blobs, simulated and real, and federations
//! over the sockets of this machine.

mod loopback;
mod network;
#[path = "../skipped/mod.rs"]
mod skipped;
mod stores;
