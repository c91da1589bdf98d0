//! Whole federations in one process, in virtual time, with faults and invariants.
//!
//! [`run`] brings every silo of a [`Scenario`] to life through `silo::spawn` and nothing else,
//! gives each of them simulated surroundings on a paused clock, plays the script of faults, and
//! checks the [`invariants`] after every event. The same seed gives the same events, however many
//! threads compute: that is what the trace hash of a [`Summary`] shows.
//!
//! A [`World`] of another kind can be handed in, real sockets for example: then the clock is real
//! too, and the order of events is nobody's choice.
//!
//! [`bare`] leaves actors and models away and runs the agreement alone, for thousands of seeds.

mod audit;
pub mod bare;
mod director;
mod disk;
mod environment;
mod error;
mod federate;
mod federation;
mod genesis;
pub mod invariants;
pub mod network;
mod options;
pub mod pool;
mod random;
mod recorder;
mod run;
pub mod scenario;
pub mod summary;
mod tamper;
pub mod toy;

pub use disk::{Cut, Disk};
pub use environment::{Environment, EnvironmentConfig, Mesh};
pub use error::RunError;
pub use federation::Federation;
pub use options::{MakeEnvironment, Options, RoundDone};
pub use recorder::Recorder;
pub use run::{run, run_study};
pub use scenario::{Overrides, Scenario, ScenarioError};
pub use summary::Summary;
pub use tamper::{Misbehaviour, Tamper};
