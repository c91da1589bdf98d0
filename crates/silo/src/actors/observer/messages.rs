//! What the observer is told.

use actix::Message;
use protocol::Time;

use crate::notice::Notice;

/// Notices of one moment, in order.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Notices {
    pub(crate) at: Time,
    pub(crate) list: Vec<Notice>,
}
