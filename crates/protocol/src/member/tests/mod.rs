//! Transition tests: exact effects of single steps (`one`, by rule), and small federations at one
//! table. Faults, delays and thousands of seeds are the business of the simulations.
#![allow(clippy::unwrap_used)]

mod adopt;
mod federations;
mod judge;
mod lead;
mod one;
mod propose;
mod round;
mod sheet;
mod table;
mod votes;
