//! Whole silos in virtual time, and their worker by itself.
#![allow(clippy::unwrap_used)]

mod bench;
mod door;
mod durable;
mod federation;
mod golden;
mod gone;
mod measure;
mod silo;
mod worker;

use std::time::Duration;

/// More virtual time than any of these federations needs.
const LONG: Duration = Duration::from_secs(600);
