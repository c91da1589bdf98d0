//! What the mesh actor is asked, and what it tells.

use actix::{Message, Recipient};
use bytes::Bytes;
use protocol::envelope::Known;
use protocol::net::Command;
use protocol::{Hash, Input, MemberIndex};

/// Whom to tell what is heard. The pump starts with it.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Listen {
    pub(crate) heard: Recipient<Heard>,
    pub(crate) known: Recipient<WhatIsKnown>,
}

/// Something came in.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Heard {
    /// For the state machine.
    Input(Input),
    /// A member asks for a blob.
    Wanted {
        by: MemberIndex,
        hash: Hash,
        ticket: u64,
    },
    /// The network ended.
    End,
}

/// Which certificates need no checking any more.
#[derive(Message)]
#[rtype(result = "Known")]
pub(crate) struct WhatIsKnown;

/// Everything that one step has to say.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Outgoing(pub(crate) Vec<Command>);

/// Get these blobs (hash, most bytes), none of which is under way. Each is answered once.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Fetch {
    pub(crate) blobs: Vec<(Hash, u64)>,
    pub(crate) from: Vec<MemberIndex>,
    pub(crate) reply: Recipient<Arrived>,
}

/// A blob, or that nobody gave it.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Arrived {
    pub(crate) hash: Hash,
    pub(crate) blob: Option<Bytes>,
}
