//! Who acts: the actix actors of one silo. They bring together what is agreed (`protocol`) and
//! what is computed (`methods`); nothing here can tell a real node from a simulated one.
//!
//! | actor | does |
//! |---|---|
//! | `SiloActor` | owns the [`protocol::Member`] and the journal, runs effects, keeps one timer |
//! | `WorkerActor` | plans, trains, measures, decides, checks, settles and applies, in the [`Pool`] |
//! | `MeshActor` | pumps the network in both directions and opens envelopes |
//! | `ObserverActor` | turns reports into events, and forwards them to the [`Feed`] |
//!
//! ```text
//!             reports                    jobs
//!  Observer ◄───────── SiloActor ────────────────► Worker
//!      ▲                ▲  │   ▲                    │   ▲
//!      │          heard │  │   └─ answer (in job) ──┘   │ arrived (in fetch)
//!      │                │  ▼                            │
//!      └──────────────  MeshActor ◄──────── fetch ──────┘
//!                        ▲    │
//!                 events │    ▼ commands
//!                        network
//! ```
//!
//! Every queue has an end:
//!
//! - network → silo: the mesh actor takes one event at a time and waits while the silo's mailbox is
//!   full; so the network's channel fills, and the network waits.
//! - silo → network: one message per step into the mesh actor's bounded mailbox and from there into
//!   the bounded channel, both by `try_send`. What does not fit is lost, counted and reported; the
//!   protocol says it again.
//! - questions and answers: an answer is sent past the mailbox's bound, because there is exactly one
//!   per question, and the protocol has a bounded number of questions open: one of each kind per
//!   round, and one admission per member.
//! - reports: the observer never waits, so its mailbox is empty whenever the runtime comes round;
//!   in between a silo can do no more than its own, bounded, mailbox holds.

pub mod checks;
pub mod config;
pub mod handle;
pub mod notice;
pub mod outcome;
pub mod record;
pub mod replay;
pub mod surroundings;

mod actors;
mod clock;
mod needed;
mod restore;
mod spawn;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use checks::{Checks, Totals};
pub use config::SiloConfig;
pub use handle::{Counts, SiloHandle, Stopped};
pub use notice::{Feed, Gone, Notice};
pub use outcome::genesis_outcome;
pub use record::{Adopted, Adoptions, Record};
pub use replay::Replay;
pub use spawn::{SpawnError, block_on, spawn};
pub use surroundings::{Blobs, Done, Job, Journal, Network, Pool, StoreError, Surroundings, Work};
