//! Tests of the state machine: the exact effects of single steps of one member (`one`), and small
//! federations (`table`). Faults, delays and many seeds are tested by the simulations.
#![allow(clippy::unwrap_used, clippy::cloned_ref_to_slice_refs)]

mod adopt;
mod amendments;
mod answer;
mod approvals;
mod audit;
mod clock;
mod corrections;
mod expected;
mod federations;
mod formats;
mod judge;
mod lead;
mod listen;
mod masked;
mod masked_one;
mod noised;
mod nothing;
mod one;
mod outcome;
mod outdated;
mod prelude;
mod propose;
mod recovery;
mod refusals;
mod rotation;
mod round;
mod rows;
mod settled_one;
mod sheet;
mod sync;
mod table;
mod toy;
mod votes;
