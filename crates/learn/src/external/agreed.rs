//! Agreed properties of a program besides the tensors of its model: those that the agreement has, or in a
//! simulation those of the first silo's program.

use methods::Params;

use super::frozen::Frozen;
use task::external::Trial;
use task::external::{ExternalTask, StartFrom};

/// Agreed properties of a program besides the tensors of its model.
#[derive(Clone)]
pub(super) struct Agreed {
    /// Tensors that it has besides and does not train.
    pub(super) frozen: Frozen,
    /// The model before the first round.
    pub(super) begins: Begins,
    /// Names of the columns of its rows, in order; empty where nothing is agreed.
    pub(super) columns: Vec<String>,
    /// Labels of the classes, in order; empty where nothing is agreed.
    pub(super) classes: Vec<String>,
    /// Outputs of the program for a made-up batch; `None` where nothing is agreed.
    pub(super) trial: Option<Trial>,
}

/// Source from which a learner takes the model before the first round.
#[derive(Clone)]
pub(super) enum Begins {
    /// From the values that the agreement describes.
    Tensors,
    /// From its own program.
    Own,
    /// From its own program, whose silo is the first, if it gives one. The program must give one where
    /// this is `true`.
    First(bool),
    /// The model is this one, which the first silo's program gave.
    Copy(Params),
}

impl Agreed {
    /// Returns what an agreement says. The model that a proposer's program held reaches the learner from
    /// outside.
    pub(super) fn by(task: &ExternalTask) -> Self {
        Self {
            frozen: Frozen::Agreed(task.frozen.clone(), task.held.clone()),
            begins: match task.start() {
                StartFrom::Learner => Begins::Own,
                StartFrom::Tensors | StartFrom::Proposer => Begins::Tensors,
            },
            columns: task.columns.clone(),
            classes: task.classes.clone(),
            trial: task.trial.clone(),
        }
    }

    /// Returns what is agreed before the first silo of a simulation: the rest is as its program says.
    pub(super) fn before(task: &ExternalTask) -> Self {
        Self {
            frozen: match &task.frozen {
                None => Frozen::Open,
                some => Frozen::Agreed(some.clone(), task.held.clone()),
            },
            begins: match (task.start, &task.model) {
                (Some(StartFrom::Learner), _) => Begins::Own,
                (Some(StartFrom::Tensors), _) => Begins::Tensors,
                (Some(StartFrom::Proposer), _) | (None, Some(_)) => Begins::First(true),
                (None, None) => Begins::First(false),
            },
            ..Self::by(task)
        }
    }
}
