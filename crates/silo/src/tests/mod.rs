//! Whole silos in virtual time, and a worker alone.
#![allow(clippy::unwrap_used)]

mod bench;
mod durable;
mod epochs;
mod federation;
mod golden;
mod gone;
mod limits;
mod measure;
mod recovery;
mod silo;
mod worker;

use std::time::Duration;

/// More virtual time than any of these federations needs.
const LONG: Duration = Duration::from_secs(600);
