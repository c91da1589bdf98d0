//! Simulates whole federations in one process: in virtual time, with faults and checks that safety holds
//! after every event, or without messages.
//!
//! There are three simulators:
//!
//! - [`federate()`] runs a [`Scenario`] with real silos: actors, models and strategies over a simulated
//!   network, disk and pool. It plays the scripted faults (kills, network splits, Byzantine members), and
//!   returns a [`RunRecord`]: what every silo noticed, its traffic, its stops.
//! - With [`Surrounding::Direct`] [`federate()`] calls the same silos' functions in one loop, without
//!   messages, leads and votes: for those who study learning. The outcomes are the same, to the bit.
//! - [`bare::run`] runs the protocol's state machines alone, with faults drawn from a seed, for
//!   thousands of federations a minute.
//!
//! The first and the last check the same [`invariants`], the safety properties S1 to S10 of
//! `docs/protocol/properties.md`. All are deterministic: the same seed gives the same events, on any number of
//! threads. The hash over all events, [`ProtocolRecord::trace`], shows it.
//!
//! The laboratory (crate `lab`) makes a summary from a [`RunRecord`], with metrics and references beside each
//! other.
//!
//! # Parts
//!
//! | part | what it is |
//! |---|---|
//! | [`scenario`] | scenarios and their faults, read from TOML |
//! | [`network`], [`pool`], [`Disk`] | the simulated environment of a silo |
//! | [`EnvironmentFactory`] | gives silos their environment; a program can hand in another one, for example over real sockets (then time is real, and the order of events is not reproducible) |
//! | [`Recorder`] | receives every event; feeds invariants, trace and record |
//! | [`invariants`] | the safety properties |
//! | [`toy`] | studies of silos with a known optimum |
//! | [`Behaviour`] | what a Byzantine member does, in both simulators |
//! | [`Moment`], [`StepCut`] | when a member stops, in both simulators |
//! | [`bare`] | the protocol alone |

mod audit;
mod byzantine;
mod contributions;
mod direct;
mod director;
mod disk;
mod environment;
mod error;
mod federate;
mod federation;
mod linkage;
pub mod network;
mod options;
pub mod pool;
mod record;
mod recorder;
pub mod scenario;
mod tamper;
pub mod toy;

pub use bare::{Behaviour, Moment, StepCut, invariants, random};
pub use byzantine::lying;
pub use contributions::{AuthorMerges, Contributions, CrossLosses, GroupingBasis};
pub use disk::Disk;
pub use environment::{EnvironmentConfig, EnvironmentFactory, Mesh, Own};
pub use error::RunError;
pub use federate::federate;
pub use federation::{Federation, lies, position};
pub use linkage::{Clue, ClueKind, LinkageResult};
pub use options::{EndsAfter, MakeEnvironment, Options, RoundDone, Signatures, Surrounding};
pub use record::{Led, Mark, ProtocolRecord, RoundRecord, RunRecord, SiloStop};
pub use recorder::Recorder;
pub use scenario::{Overrides, Scenario, ScenarioError};
pub use tamper::Tamper;
