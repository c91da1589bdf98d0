//! The mathematics that hides one silo's update from everybody else in the federation.
//!
//! The crate is pure: no network, no disk, no clock, no randomness of its own. Random bytes are
//! arguments, everything else follows from them. It knows nothing of views, votes and messages; the
//! surroundings carry its bytes and decide when each step may be taken.
//!
//! [`masks`] has masked sums: of the vectors that several silos send, only the sum can be opened, and
//! only after consensus has made the set of its authors final.
//!
//! Three modules bound what a sum tells about one patient:
//!
//! 1. [`sensitivity`] makes integers of the vector of one unit (a row, or a person), such that no unit
//!    changes a sum by more than a known length Δ.
//! 2. [`noise`] adds random integers to it, so that nobody can tell from a sum whether a unit was there.
//! 3. [`accountant`] says how well: ε and δ of all sums so far.
//!
//! [`least_squares`] has sums from which a linear model is solved at once.
//!
//! *Experimental: no cryptographer has reviewed it.*

pub mod accountant;
pub mod least_squares;
pub mod masks;
pub mod noise;
pub mod sensitivity;
