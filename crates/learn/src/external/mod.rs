//! Learners in other programs: a child process of the silo, or a program at a socket, trains and
//! measures the models.
//!
//! [`LearnerConfig`] names the program. It speaks the protocol of `docs/learner-protocol.md`
//! (`wire`): framed JSON messages, with parameters in safetensors files of a shared folder. There
//! are two uses:
//!
//! - A task of its own, [`task::external::ExternalTask`]: the agreement lists the tensors of the model, and the
//!   program has the rows. [`ExternalLearner`].
//! - A task on tables, whose model Rota knows: the program gets the silo's rows and trains the
//!   agreed model; Rota measures it. Silos that train with a program and silos that train by
//!   themselves federate with each other. [`TableByProgram`].
//!
//! Rust code beside the node needs no program: [`own_silo`].
//!
//! A program that dies, hangs, or gives a wrong answer fails the request, and is started again for
//! the next one ([`Programs`]).

pub(crate) mod absent;
mod agreed;
mod child;
mod config;
mod described;
mod folder;
mod frozen;
mod kin;
mod learner;
mod line;
mod metric;
mod outputs;
mod own;
mod programs;
mod proposed;
mod results;
mod said;
mod session;
mod study;
mod table;
mod targets;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use config::LearnerConfig;
pub use described::Described;
pub use learner::ExternalLearner;
pub use own::own_silo;
pub use programs::Programs;
pub use proposed::Proposed;
pub use study::{MOST_HELD, external_silo, external_study};
pub use table::TableByProgram;
pub use wire::PROTOCOL;

/// Returns what a mutex guards, also after a thread panicked that held it: nothing here is left half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
