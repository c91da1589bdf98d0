//! The stand-in by which an agreement is examined.

use task::{StandIn, TaskConfig};

use super::TaskStudy;

/// The stand-in of a task, as far as it can be told without rows and programs ([`task::MakeStandIn`]).
pub fn stand_in(task: &TaskConfig, seed: u64) -> Option<StandIn> {
    let names = ["silo".to_owned()];
    let (study, complete) = match task {
        TaskConfig::Table(task) => {
            let mut task = task.clone();
            // One silo stands for all, whatever their domains.
            task.domains = None;
            (task.stand_ins(&names, seed), true)
        }
        TaskConfig::External(task) => (task.stand_ins(&names, seed), false),
        TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => return None,
    };
    let silo = study.ok()?.silos.into_iter().next()?;
    Some(StandIn {
        learner: silo.learner,
        complete,
    })
}
