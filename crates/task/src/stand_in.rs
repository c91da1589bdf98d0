//! Learners in the place of those of institutions whose rows and programs are elsewhere.

use std::sync::Arc;

use methods::Learner;

use crate::TaskConfig;

/// A learner with the layout of a task's models, of rows that mean nothing.
#[derive(Clone)]
pub struct StandIn {
    /// The learner.
    pub learner: Arc<dyn Learner>,
    /// True if the stand-in can do all that the institutions' learners can; a program may be able to do more.
    pub complete: bool,
}

/// Makes the stand-in of a task from the federation's seed; `None` where that takes data. Who reads an
/// agreement asks by it what models of the agreed task are like, and needs no code that trains any.
pub type MakeStandIn = fn(&TaskConfig, u64) -> Option<StandIn>;
