//! Masked rounds (secure aggregation): sums of models are opened once their block is final (M2–M6).
//!
//! | file | holds |
//! |---|---|
//! | `kept` | the lists and sheets of the round that are kept |
//! | `answering` | `Masking`: answering lists, signing for sheets |
//! | `judge` | whether to vote for the block of a masked round |
//! | `outcomes` | votes for the outcome of a final masked round |
//! | `settling` | `Settling`: the outcome of a final masked round |

pub(in crate::member) mod answering;
pub(in crate::member) mod judge;
pub(in crate::member) mod kept;
pub(in crate::member) mod outcomes;
pub(in crate::member) mod settling;
