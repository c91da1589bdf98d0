//! Transition tests: exact effects of single steps (`one`, by rule), and small federations at one
//! table. Faults, delays and thousands of seeds are the business of the simulations.
#![allow(clippy::unwrap_used, clippy::cloned_ref_to_slice_refs)]

mod adopt;
mod answer;
mod clock;
mod expected;
mod federations;
mod judge;
mod lead;
mod listen;
mod one;
mod outcome;
mod propose;
mod refusals;
mod round;
mod sheet;
mod sync;
mod table;
mod votes;
