//! One silo: the actors that act for one institution in a federation.
//!
//! A silo brings together the agreement ([`protocol`]) and the mathematics ([`methods`]). It runs the
//! protocol's state machine, trains and evaluates models, checks and computes outcomes, and makes
//! durable what it must not lose. It has no network, disk or clock of its own: these are its
//! [`SiloEnvironment`], and a silo cannot tell a node from a simulation.
//!
//! # Overview
//!
//! - [`spawn`] starts a silo from a [`SiloConfig`] and its [`SiloEnvironment`]; [`block_on`] runs the
//!   actix system that it needs. The result is a [`SiloHandle`], or a [`SpawnError`].
//! - [`Network`], [`Journal`], [`Blobs`] and [`Pool`] are what a caller implements; [`threads`] helps with a pool.
//! - [`JournalRecord`] is what a journal is made of; [`Adopted`] is the silo's state after a final round.
//! - [`Notice`] is what a silo reports while it runs; a [`Feed`] receives the notices.
//! - [`Activities`] is what a silo works on at the moment.
//! - [`rounds`] is a round as functions of their arguments.
//! - [`outcome`] has the documents that members vote on, [`Replay`] recomputes final rounds.
//! - [`Checks`] counts expensive checks, and caches them for the silos of one process.
//!
//! # Actors
//!
//! | actor | task |
//! |---|---|
//! | `SiloActor` | owns the [`protocol::Member`] and the journal, carries out effects, keeps one timer |
//! | `WorkerActor` | plans, trains, evaluates, decides, checks, settles and applies, in the [`Pool`] |
//! | `MeshActor` | connects the silo to its network in both directions, and opens envelopes |
//! | `ObserverActor` | logs notices, and passes them to the [`Feed`] |
//!
//! ```text
//!             notices               work requests
//!  Observer ◄───────── SiloActor ────────────────► Worker
//!      ▲                ▲  │   ▲                    │   ▲
//!      │       incoming │  │   └──── work results ──┘   │ fetched
//!      │                │  ▼                            │
//!      └──────────────  MeshActor ◄──────── fetch ──────┘
//!                        ▲    │
//!                 events │    ▼ commands
//!                        network
//! ```
//!
//! # Queues
//!
//! Every queue is bounded:
//!
//! - network → silo: the mesh actor takes one event at a time and waits while the silo's mailbox is
//!   full. Then the network's channel fills, and the network waits.
//! - silo → network: one message per step goes into the mesh actor's bounded mailbox, and its commands
//!   into the bounded channel. What does not fit is lost, counted and reported; the protocol sends it
//!   again.
//! - work: a result is sent past the mailbox's bound, because there is exactly one per request, and the
//!   protocol has a bounded number of requests open: one of each kind per round, and one admission
//!   per member.
//! - notices: the observer never waits, so its mailbox is empty whenever the runtime runs it. In
//!   between a silo can send no more notices than its own bounded mailbox causes.

pub mod activity;
pub mod checks;
pub mod config;
pub mod environment;
pub mod error;
pub mod handle;
pub mod notice;
pub mod outcome;
pub mod record;
pub mod replay;
pub mod rounds;
pub mod run_state;
pub mod threads;

mod actors;
mod clock;
mod needed;
mod restore;
mod secrets;
mod site;
mod spans;
mod spawn;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod trimmed;
mod undone;

pub use activity::{Activities, Activity, Spent};
pub use checks::{Checks, Totals};
pub use config::SiloConfig;
pub use environment::{
    Blobs, Done, Journal, Network, Pool, PoolJob, RoundPolicy, SiloEnvironment, Site, WorkSize,
};
pub use error::{SpawnError, Stopped, StoreError};
pub use handle::SiloHandle;
pub use notice::{Feed, Missing, Notice};
pub use outcome::genesis_outcome;
pub use record::{Adopted, Adoptions, JournalRecord};
pub use replay::Replay;
pub use restore::forget_ended;
pub use run_state::Counts;
pub use secrets::{RoundSecrets, SeededSecrets};
pub use site::OwnContributions;
pub use spawn::{block_on, bystand, spawn};
