//! Simulates whole federations in one process, in virtual time, with faults, and checks that safety
//! holds after every event.
//!
//! There are two simulators:
//!
//! - [`run`] and [`run_study`] run a [`Scenario`] with real silos: actors, models and strategies over
//!   a simulated network, disk and pool. They play the scripted faults (kills, network splits,
//!   Byzantine members), and return a [`Summary`]: rounds, coalitions, held-out metrics, traffic.
//! - [`bare::run`] runs the protocol's state machines alone, with faults drawn from a seed, for
//!   thousands of federations a minute.
//!
//! Both check the same [`invariants`], the safety properties S1 to S10 of `docs/protocol.md`. Both are
//! deterministic: the same seed gives the same events, on any number of threads. The hash over all
//! events, [`Summary::trace`], shows it.
//!
//! # A federation in a test
//!
//! ```
//! use simulations::toy::toy_study;
//! use simulations::{Options, Scenario, run_study};
//!
//! let scenario = Scenario::parse(
//!     "toy.toml",
//!     r#"
//!     name = "toy"
//!     seed = 3
//!     rounds = 2
//!     task = { constant = { parameters = 1 } }
//!
//!     [strategy]
//!     name = "fedavg"
//!     training = { epochs = 5, batch = 0, optimiser = { name = "sgd", rate = 0.5 } }
//!
//!     ## The lead of round 2 stops for good after its proposal; the others finish.
//!     [[fault]]
//!     kill = "lead"
//!     phase = "voting"
//!     round = 2
//!     "#,
//! )?;
//! // Four silos, each with its own centre; the mean is the optimum of the federation.
//! let (study, _learners) = toy_study(&[vec![0.0], vec![1.0], vec![2.0], vec![5.0]]);
//! let summary = run_study(&scenario, &study, Options::default())?;
//! assert_eq!(summary.rounds.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`run`] does the same with the data of the scenario's own task; the built-in scenarios are in
//! [`scenario::BUILT_IN`].
//!
//! # Parts
//!
//! | part | what it is |
//! |---|---|
//! | [`scenario`] | scenarios and their faults, read from TOML |
//! | [`network`], [`pool`], [`Disk`] | the simulated surroundings of a silo |
//! | [`Environment`] | gives silos their surroundings; a program can hand in another one, for example over real sockets (then time is real, and the order of events is not reproducible) |
//! | [`Recorder`] | receives every event; feeds invariants, trace and summary |
//! | [`invariants`] | the safety properties |
//! | [`summary`] | the result of a run, as a document |
//! | [`lab`] | experiments: a federation under several rotations of leads |
//! | [`toy`] | studies of silos with a known optimum |
//! | [`Behaviour`] | what a Byzantine member does, in both simulators |
//! | [`Moment`], [`StepCut`] | when a member stops, in both simulators |
//! | [`bare`] | the protocol alone |

mod audit;
pub mod bare;
mod byzantine;
pub mod compare;
mod cuts;
mod director;
mod disk;
mod environment;
mod error;
mod federate;
mod federation;
mod genesis;
pub mod invariants;
pub mod lab;
mod linkage;
mod moments;
pub mod network;
mod options;
mod participation;
pub mod pool;
mod random;
mod recorder;
mod reference;
mod run;
pub mod scenario;
mod signatures;
mod statistic;
pub mod summary;
mod tamper;
pub mod toy;

pub use byzantine::Behaviour;
pub use disk::Disk;
pub use environment::{Environment, EnvironmentConfig, Mesh};
pub use error::RunError;
pub use federation::Federation;
pub use linkage::{Clue, ClueKind, Linkage};
pub use moments::{Moment, StepCut};
pub use options::{MakeEnvironment, Options, RoundDone};
pub use recorder::Recorder;
pub use run::{run, run_study};
pub use scenario::{Overrides, Scenario, ScenarioError};
pub use summary::Summary;
pub use tamper::Tamper;

#[cfg(test)]
#[path = "../../tests/skipped/mod.rs"]
mod skipped;
