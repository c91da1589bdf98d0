//! The commands and events between a silo and its network: plain values, the same for the real mesh
//! and the simulated one.

use std::time::Duration;

use bytes::Bytes;

use crate::hash::Hash;
use crate::identity::PublicKey;
use crate::roster::MemberIndex;

/// A blob to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobRequest {
    /// Hash of the blob.
    pub hash: Hash,
    /// Most bytes that the blob may have. More are not read.
    pub limit: u64,
}

/// Silo → network. The channel is bounded; a command that does not fit is lost, and members send
/// everything again that was not answered.
#[derive(Debug, Clone)]
pub enum Command {
    /// Send a frame to one member.
    Send {
        /// The receiver.
        to: MemberIndex,
        /// A sealed envelope.
        frame: Bytes,
    },
    /// Send a frame to all other members. The same bytes reach a member at most once.
    Publish {
        /// A sealed envelope.
        frame: Bytes,
    },
    /// Fetch blobs from these members, asked in this order. Each blob is answered once, with
    /// [`Event::Fetched`] or [`Event::Missing`]. Small blobs travel together.
    Fetch {
        /// The blobs, without repetition.
        blobs: Vec<BlobRequest>,
        /// Members that may have them.
        from: Vec<MemberIndex>,
    },
    /// Answer to [`Event::Wanted`].
    Serve {
        /// The ticket of the question.
        ticket: u64,
        /// The blobs in the order of the question; `None` for those that are refused.
        blobs: Vec<Option<Bytes>>,
    },
    /// Answer to the ticket of [`Event::Received`]: whether gossip may pass the frame on. A frame
    /// that is not judged within [`JUDGED`] is ignored.
    Judge {
        /// The ticket of the frame.
        ticket: u64,
        /// Permission to pass the frame on.
        verdict: Acceptance,
    },
    /// Report when nodes with these keys connect, which are in a proposed roster and not in the present
    /// one. Takes the place of the keys that were named before. → [`Event::Arrived`]
    Await {
        /// The keys.
        keys: Vec<PublicKey>,
    },
    /// Mute a member: what it sends is read slowly and dropped before it costs anything.
    Mute {
        /// The member.
        peer: MemberIndex,
        /// Length of the mute, from now on. A mute that would end later stays.
        span: Duration,
    },
}

/// Longest time for which a network keeps a frame that is not judged.
pub const JUDGED: Duration = Duration::from_secs(2);

/// Permission to pass a published frame on by gossip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// The frame opened and is new: it is passed on.
    Accept,
    /// The frame is known, outdated, or beyond a budget: it is not passed on.
    Ignore,
    /// The frame is no message of a member: it is not passed on.
    Reject,
}

/// Network → silo. The network waits while the channel is full.
#[derive(Debug, Clone)]
pub enum Event {
    /// A frame arrived. It is not opened.
    Received {
        /// The neighbour that sent it; another member may have signed it.
        from: MemberIndex,
        /// A sealed envelope, or any other bytes.
        frame: Bytes,
        /// For frames that came by gossip: the network passes the frame on only when
        /// [`Command::Judge`] accepts this ticket. None for frames sent directly.
        ticket: Option<u64>,
    },
    /// A member can be reached.
    Up {
        /// The member.
        peer: MemberIndex,
        /// Measured round trip. The event comes again when it changes much.
        round_trip: Duration,
    },
    /// A member cannot be reached.
    Down {
        /// The member.
        peer: MemberIndex,
    },
    /// A node proved, when it connected, that it has this key, which [`Command::Await`] has named. Comes
    /// again while it goes on to connect, at most about once a second.
    Arrived {
        /// The key.
        key: PublicKey,
    },
    /// Another process uses this node's key at the same time: one that has copied it. Comes once.
    KeyElsewhere,
    /// Blobs arrived, and match the hashes that they were asked for by.
    Fetched {
        /// Hashes and bytes.
        blobs: Vec<(Hash, Bytes)>,
    },
    /// None of the members that were asked gave these blobs.
    Missing {
        /// Hashes of the missing blobs.
        blobs: Vec<Hash>,
    },
    /// A member asks for blobs; answered with [`Command::Serve`].
    Wanted {
        /// The member that asks.
        by: MemberIndex,
        /// The hashes of the blobs.
        blobs: Vec<Hash>,
        /// Names the question in the answer.
        ticket: u64,
    },
}
