//! What the silo actor is told, besides what is heard from the network.

use actix::Message;
use protocol::{Hash, Input};

use crate::notice::Notice;
use crate::record::Record;

/// What became of a job.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Answer {
    /// Made durable before anything else happens.
    pub(crate) keep: Vec<Record>,
    /// The only blobs that are needed after that, ascending.
    pub(crate) retain: Option<Vec<Hash>>,
    /// Said after that.
    pub(crate) notices: Vec<Notice>,
    /// For the state machine; or why the silo cannot go on.
    pub(crate) input: Result<Input, String>,
}

impl From<Input> for Answer {
    fn from(input: Input) -> Self {
        Self {
            keep: Vec::new(),
            retain: None,
            notices: Vec::new(),
            input: Ok(input),
        }
    }
}

impl Answer {
    /// The silo cannot go on.
    pub(crate) fn defect(why: String) -> Self {
        Self {
            keep: Vec::new(),
            retain: None,
            notices: Vec::new(),
            input: Err(why),
        }
    }
}

/// Finish.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Stop;

/// End here and now. Each actor is told by the silo actor when that is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Halt;
