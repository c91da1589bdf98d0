//! Models out of a real federation: three hospitals learn, then their models are listed, shown,
//! exported and used, by the program itself, by Python, and by a federation that goes on.

#![allow(clippy::unwrap_used)]

mod branches;
mod damaged;
mod going_on;
mod hospitals;
mod nightly;
mod python;
mod shrunken;
mod taking_out;

use crate::nodes;
use crate::nodes::{good, log, nowhere, output, text};
use hospitals::TestHospitals;
