//! The mathematics that hides one silo's update from everybody else in the federation.
//!
//! The crate is pure: no network, no disk, no clock, no randomness of its own. Random bytes are
//! arguments, everything else follows from them. It knows nothing of views, votes and messages; the
//! surroundings carry its bytes and decide when each step may be taken.
//!
//! [`masks`] has masked sums: of the vectors that several silos send, only the sum can be opened, and
//! only after consensus has made the set of its authors final.
//!
//! *Experimental: no cryptographer has reviewed it.*

pub mod masks;
