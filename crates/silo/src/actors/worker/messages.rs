//! What the worker is asked.

use actix::{Message, Recipient};
use protocol::{Effect, Hash, MemberIndex};

use crate::actors::silo::Answer;

/// A heavy effect, and who waits for its answer. Answered at most once: not at all if the round it
/// is about is over.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Do {
    pub(crate) effect: Effect,
    pub(crate) reply: Recipient<Answer>,
}

/// Blobs without which work cannot begin, and who may have them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Hash and most bytes.
    pub(crate) blobs: Vec<(Hash, u64)>,
    pub(crate) from: Vec<MemberIndex>,
}
