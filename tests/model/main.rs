//! Models out of a real federation: three hospitals learn, then their models are listed, shown,
//! exported and used, by the program itself, by Python, and by a federation that goes on.

#![allow(clippy::unwrap_used)]

mod going_on;
mod hospitals;
mod nightly;
#[path = "../nodes/mod.rs"]
mod nodes;
mod python;
#[path = "../skipped/mod.rs"]
mod skipped;
mod taking_out;

use hospitals::Hospitals;
use nodes::{good, log, nowhere, output, text};
