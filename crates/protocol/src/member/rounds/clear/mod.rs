//! Rounds in clear: bundles are scored, and sheets are signed for.
//!
//! | file | holds |
//! |---|---|
//! | `judge` | whether to vote for the block of a round in clear |
//! | `scoring` | this member's losses of the round's entries |
//! | `sheets` | the sheets of the round that are kept |
//! | `signing` | `Signing`: scoring the entries of a bundle, signing for a sheet |

pub(in crate::member) mod judge;
pub(in crate::member) mod scoring;
pub(in crate::member) mod sheets;
pub(in crate::member) mod signing;
