//! What a federation of programs starts from and agrees on.

use methods::Params;

use task::external::ExternalTask;

/// What a federation of programs starts from and agrees on, as the first silo's program says it.
#[derive(Clone)]
pub struct Proposed {
    /// The task, with all that the first silo's program said of itself.
    pub task: ExternalTask,
    /// The model that it holds, from which all start; `None` where the task says the start.
    pub model: Option<Params>,
}
