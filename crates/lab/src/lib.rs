//! The laboratory: what a researcher does with federations, on data that are at hand.
//!
//! | part | what it is |
//! |---|---|
//! | [`run`], [`run_study`], [`Summary`] | one simulated federation, with the references that it is compared with |
//! | [`compare`] | strategies on the same data, over several seeds, and advice on them |
//! | [`absence`] | what sums tell that differ by one institution |
//! | [`attack`] | what the models of a federation with noise tell about single rows |
//! | [`rotation`] | a federation under several rotations of leads |
//! | [`loopback`] | whole federations over real sockets of this machine |
//! | [`deploy`] | the laboratory of rotating leads with real processes |
//! | [`history`] | a real federation, put together from the logs of its nodes |
//! | [`demo`] | a federation to try out |
//! | [`datasets`] | public data sets: where they are from, downloads, checksums |
//!
//! # A federation in a test
//!
//! ```
//! use simulations::toy::toy_study;
//! use simulations::{Options, Scenario};
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
//! let summary = lab::run_study(&scenario, &study, Options::default())?;
//! assert_eq!(summary.rounds.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`run`] does the same with the data of the scenario's own task; the built-in scenarios are in
//! [`simulations::scenario::BUILT_IN`].

pub mod absence;
pub mod attack;
pub mod compare;
pub mod datasets;
pub mod demo;
pub mod deploy;
#[cfg(test)]
mod fixture;
pub mod history;
mod keep;
pub mod loopback;
mod participation;
mod reference;
pub mod rotation;
mod run;
mod statistic;
pub mod summary;
mod widening;

pub use keep::KeepError;
pub use run::{run, run_and_keep, run_study};
pub use summary::Summary;

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
