//! What the mesh actor is asked, and what it tells.

use actix::{Message, Recipient};
use bytes::Bytes;
use protocol::envelope::Known;
use protocol::net::{BlobRequest, Command};
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
    Input(Box<Input>),
    /// A member asks for blobs.
    Wanted {
        by: MemberIndex,
        blobs: Vec<Hash>,
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

/// Get these blobs, none of which is under way. Each is answered once.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Fetch {
    pub(crate) blobs: Vec<BlobRequest>,
    pub(crate) from: Vec<MemberIndex>,
    pub(crate) reply: Recipient<Arrived>,
}

/// Blobs, and those that nobody gave.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Arrived {
    pub(crate) blobs: Vec<(Hash, Bytes)>,
    pub(crate) missing: Vec<Hash>,
}
