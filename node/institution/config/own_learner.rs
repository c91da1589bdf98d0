//! Program with which an institution trains in place of Rota.

use std::sync::Arc;

use learn::external::LearnerConfig;
use methods::Learner;

/// Program that trains in place of Rota.
#[derive(Clone)]
pub enum OwnLearner {
    /// A program that speaks the learner protocol.
    Program(LearnerConfig),
    /// A learner of the program that the node is a part of, see [`run_with`](crate::institution::run_with).
    Here(Arc<dyn Learner>),
}
