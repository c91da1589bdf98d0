//! Consensus on blocks, in views with rotating leads (R1–R3, R5): proposals, votes, certificates, and
//! catching up. Which block a round of learning demands is asked of [`rounds`](super::rounds).
//!
//! | file | holds |
//! |---|---|
//! | `proposals`, `judge` | `Judging`: whether to vote for a proposal (R1, R2) |
//! | `ballots` | own votes and proposals, and the votes of others (R1–R3, R5) |
//! | `voting` | `Voting`: votes of this member, and certificates of all votes |
//! | `chain` | final blocks and later certificates |
//! | `finality` | `Extending`: what follows from certificates and final blocks (R3, R4) |
//! | `views` | entering and leaving views |
//! | `stage` | how far this member is with leading the view |
//! | `links` | which members can be reached, and how fast |
//! | `sync` | `Syncing`: catching up with what became final elsewhere |
//! | `participation` | only listening, while this member cannot know what it has signed (R5) |
//! | `own_key` | `OwnKey`: what this member's key has signed, compared with the journal |
//! | `clock`, `timers` | the beat; `Timing`, how long phases and views may take |
//! | `reporting` | evidence, in bounded number |
//! | `outbox` | what leaves this member in a step |

pub(in crate::member) mod ballots;
pub(in crate::member) mod chain;
pub(in crate::member) mod clock;
pub(in crate::member) mod finality;
pub(in crate::member) mod judge;
pub(in crate::member) mod links;
pub(in crate::member) mod outbox;
pub(in crate::member) mod own_key;
pub(in crate::member) mod participation;
pub(in crate::member) mod proposals;
pub(in crate::member) mod reporting;
pub(in crate::member) mod stage;
pub(in crate::member) mod sync;
pub(in crate::member) mod timers;
pub(in crate::member) mod views;
pub(in crate::member) mod voting;
