//! What the state machine's surroundings say to a network and hear from it: plain values, so that
//! a real mesh and a simulated one are alike.

use std::time::Duration;

use bytes::Bytes;

use crate::hash::Hash;
use crate::roster::MemberIndex;

/// A blob that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Its hash.
    pub hash: Hash,
    /// Most bytes that it may have; more are never read.
    pub limit: u64,
}

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
    /// Get blobs from any of these members, tried in this order. Each blob is answered once, with
    /// [`Event::Fetched`] or [`Event::Missing`]; many small ones travel together.
    Fetch {
        /// Which, without repetition.
        blobs: Vec<Wish>,
        /// Who may have them.
        from: Vec<MemberIndex>,
    },
    /// The answer to [`Event::Wanted`].
    Serve {
        /// Which question.
        ticket: u64,
        /// The blobs in the order of the question, none for those refused.
        blobs: Vec<Option<Bytes>>,
    },
    /// What came of a frame that others are waiting for: the answer to the ticket of
    /// [`Event::Received`]. One that comes later than [`JUDGED`] counts as [`Verdict::Ignore`].
    Judge {
        /// Which frame.
        ticket: u64,
        /// What came of it.
        verdict: Verdict,
    },
    /// Hear nothing more from a member for that long: what it sends is dropped before it costs
    /// anything, and slowly taken from it.
    Mute {
        /// Whom.
        peer: MemberIndex,
        /// From now on; what an earlier command said longer stays.
        span: Duration,
    },
}

/// How long a network keeps a frame that is not judged yet.
pub const JUDGED: Duration = Duration::from_secs(2);

/// What comes of a frame that was published and may be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It opened and was wanted: it is passed on.
    Accept,
    /// Known, of the past, or more than somebody may say: it goes no further.
    Ignore,
    /// No member's message: it goes no further.
    Reject,
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
        /// Names a published frame that came by way of `from`, whoever published it, and that the
        /// network passes on only when [`Command::Judge`] accepts it. None for what `from` itself
        /// sent here.
        ticket: Option<u64>,
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
    /// Blobs arrived whole, each with the hash that it was asked for by.
    Fetched {
        /// Hashes and bytes.
        blobs: Vec<(Hash, Bytes)>,
    },
    /// Nobody who was asked for these blobs gave them.
    Missing {
        /// Their hashes.
        blobs: Vec<Hash>,
    },
    /// A member asks for blobs; answered with [`Command::Serve`].
    Wanted {
        /// Who asks.
        by: MemberIndex,
        /// Which.
        blobs: Vec<Hash>,
        /// Names the question.
        ticket: u64,
    },
}
