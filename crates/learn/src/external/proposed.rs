//! Start and terms of a federation of programs.

use methods::Params;

use task::external::ExternalTask;

/// Start and terms of a federation of programs, as the first silo's program gives them.
#[derive(Clone)]
pub struct Proposed {
    /// The task, with all that the first silo's program said of itself.
    pub task: ExternalTask,
    /// The model that it holds, from which all start; `None` where the task says the start.
    pub model: Option<Params>,
}
