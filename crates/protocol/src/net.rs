//! What the state machine's surroundings say to a network and hear from it: plain values, so that
//! a real mesh and a simulated one are alike.

use std::time::Duration;

use bytes::Bytes;

use crate::hash::Hash;
use crate::roster::MemberIndex;

/// Silo → network. The channel is bounded; what does not fit counts as lost, and is said again.
#[derive(Debug, Clone)]
pub enum Command {
    /// To one member, privately.
    Send {
        /// The reader.
        to: MemberIndex,
        /// A sealed envelope.
        frame: Bytes,
    },
    /// To all other members. The same bytes reach a member at most once.
    Publish {
        /// A sealed envelope.
        frame: Bytes,
    },
    /// Get a blob from any of these members, tried in this order.
    Fetch {
        /// Its hash.
        hash: Hash,
        /// Most bytes that it may have; more are never read.
        limit: u64,
        /// Who may have it.
        from: Vec<MemberIndex>,
    },
    /// The answer to [`Event::Wanted`].
    Serve {
        /// Which question.
        ticket: u64,
        /// The blob, or none to refuse.
        blob: Option<Bytes>,
    },
}

/// Network → silo. The network waits while the channel is full.
#[derive(Debug, Clone)]
pub enum Event {
    /// Bytes, not opened yet.
    Received {
        /// Who passed them on; not necessarily who signed them.
        from: MemberIndex,
        /// A sealed envelope, or anything else.
        frame: Bytes,
    },
    /// A member can be reached.
    Up {
        /// Which.
        peer: MemberIndex,
        /// Measured round trip. Said again when the measure changes much.
        round_trip: Duration,
    },
    /// A member cannot be reached.
    Down {
        /// Which.
        peer: MemberIndex,
    },
    /// A blob arrived whole, and has the hash that was asked for.
    Fetched {
        /// Its hash.
        hash: Hash,
        /// Its bytes.
        blob: Bytes,
    },
    /// Nobody who was asked for a blob gave it.
    Missing {
        /// Its hash.
        hash: Hash,
    },
    /// A member asks for a blob; answered with [`Command::Serve`].
    Wanted {
        /// Who asks.
        by: MemberIndex,
        /// Which.
        hash: Hash,
        /// Names the question.
        ticket: u64,
    },
}
