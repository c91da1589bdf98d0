//! How far this member is with leading a view.

use bytes::Bytes;

use crate::certificate::Certificate;
use crate::hash::Hash;
use crate::message::{Content, Message, Phase};

/// What a member keeps while it leads a view. What it gathers for a block stands with the round.
pub(in crate::member) struct Lead {
    pub(in crate::member) stage: Stage,
    /// The counter of the next Progress message.
    pub(in crate::member) heartbeats: u64,
    /// The phase that was reported last.
    pub(in crate::member) reported: Option<Phase>,
}

/// How far a lead is.
pub(in crate::member) enum Stage {
    /// A notarised block has to become final first.
    Waiting,
    /// The content of a block is gathered.
    Gathering,
    /// The block is proposed.
    Voting { message: Box<Message>, frame: Bytes },
    /// This lead has voted against its own view.
    Over,
}

impl Lead {
    pub(in crate::member) fn new() -> Self {
        Self {
            stage: Stage::Gathering,
            heartbeats: 0,
            reported: None,
        }
    }

    /// Whether this lead has proposed a block.
    pub(in crate::member) fn proposed(&self) -> bool {
        matches!(self.stage, Stage::Voting { .. })
    }
}

/// A block that a lead is about to propose.
pub(in crate::member) struct BlockDraft {
    pub(in crate::member) content: Content,
    pub(in crate::member) parent: Hash,
    /// The certificate of the parent.
    pub(in crate::member) proof: Option<Certificate>,
}
