//! The network of a silo: libp2p over QUIC or TCP. [`Peers`] tells operators who is connected, and why others are not.
//!
//! A mesh connects the members of one federation. [`spawn`] starts it from a [`Config`], the node's
//! key, and the roster as [`Contact`]s. The resulting [`Handle`] has two bounded channels of plain
//! values, [`Command`]s in and [`Event`]s out; no type of libp2p leaves this crate. An address or a
//! key that cannot be used is a [`MeshError`]; [`check`] checks how an address is written,
//! [`Transport`] selects QUIC or TCP.
//!
//! [`probe`] tries one address of a member without starting a mesh, and says what was found there.
//!
//! # Guarantees
//!
//! Every implementation of the two channels, this one and the simulated network alike, guarantees:
//!
//! - Frames arrive whole and unchanged or not at all, in any order. A frame sent to one member may
//!   arrive more than once, a published frame at most once.
//! - A frame comes with the member that passed it on; its author's signature is in the frame itself.
//! - A blob is delivered whole, after its BLAKE3 hash was verified, and never larger than the `limit`
//!   of its request.
//! - Every blob of a `Fetch` is answered once, with `Fetched` or `Missing`. The silo answers `Wanted`
//!   with `Serve`.
//! - A published frame that a member passed on has a ticket. It is passed on to others only after the
//!   silo has accepted it ([`Command::Judge`]) within [`protocol::net::JUDGED`].
//! - No frame of a muted member ([`Command::Mute`]) is delivered until its mute ends.
//! - A node that proves an awaited key ([`Command::Await`]) when it connects is reported, about once a
//!   second, whether it is let in or not.
//! - Commands that do not fit into the channel are lost, and the protocol sends them again. Events wait
//!   for the silo and are never lost.
//!
//! # Mechanisms
//!
//! | what | how |
//! |---|---|
//! | admission | members of the roster, and former members for a while; others are denied before any protocol runs |
//! | strangers | connections that have proved no key are limited by address and net, and members' addresses have places of their own |
//! | epochs | the names of the gossip topic and of the protocols of frames and blobs have the epoch; former members get none of these |
//! | handshake | on every new connection: each side's federation, version, message formats, clock and number of its process, see [`Hello`] |
//! | connections | QUIC, or TCP with Noise and Yamux; one per member, dialled again with back-off |
//! | NAT | a member that no other can dial is reached through a member that is connected to both, or directly where both sides can make their NATs let packets through |
//! | rates | streams that a member opened are read at a fixed rate; a frame over the limit ends its stream |
//! | `Send` | a stream of frames to each member, in order; frames to a member that never connected wait |
//! | `Publish` | gossipsub without an author up to 52 KiB, directly to every member above that |
//! | `Judge` | gossipsub's own validation |
//! | questions | a stream to a member, which answers with what it says of itself to that member, see [`Asker`] |
//! | `Fetch`, `Serve` | a stream to each holder; small blobs together, large ones in verified chunks |
//! | `Up`, `Down` | libp2p's ping, and the end of the last connection |

mod asking;
mod behaviour;
mod blobs;
mod config;
mod dial;
mod direct;
mod door;
mod gossip;
mod guests;
mod hello;
mod listening;
mod members;
mod node;
mod notices;
mod only;
mod pace;
mod peers;
mod probe;
mod queue;
mod rehearsal;
mod relaying;
mod streams;
mod tells;
mod twins;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use asking::{AskError, Asker};
pub use blobs::{Place, Spool};
pub use config::{Config, Contact, MeshError, Transport, check};
pub use guests::AWAY;
pub use hello::{Hello, Program, probe_key};
pub use notices::Notice;
pub use peers::{PeerState, Peers, Problem};
pub use probe::{Met, Port, ProbeError, Prober, bindable, port, probe, probe_through};
pub use protocol::net::{Acceptance, BlobRequest, Command, Event};
pub use rehearsal::Rehearsal;
pub use relaying::rank;
pub use tells::{DOCUMENT, Tells};
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A running mesh.
#[derive(Debug)]
pub struct Handle {
    /// Silo → mesh. The mesh ends when all clones of this sender are dropped.
    pub commands: mpsc::Sender<Command>,
    /// Mesh → silo. The mesh ends when this receiver is dropped.
    pub events: mpsc::Receiver<Event>,
    /// Addresses at which the mesh listens, ports included.
    pub addresses: Vec<String>,
    /// What is known of the connections to the other members.
    pub peers: Peers,
    /// Asks other members what they say of themselves.
    pub asker: Asker,
    /// Bytes of blobs sent so far.
    pub served: Arc<AtomicU64>,
    /// What the operator should know about nodes that are not of this federation. What nobody
    /// receives is logged only.
    pub notices: mpsc::Receiver<Notice>,
    /// Ends when the mesh has closed its connections and ports.
    pub ended: JoinHandle<()>,
}

/// Starts the mesh of one node on `runtime`, which needs timers and I/O enabled. `key` is the node's
/// Ed25519 secret key; `roster` are all members, this node included (its own addresses there are not
/// used).
///
/// # Errors
/// [`MeshError`]: an invalid key or address, or an address at which the node cannot listen.
pub async fn spawn(
    runtime: &runtime::Handle,
    config: Config,
    key: [u8; 32],
    roster: Vec<Contact>,
) -> Result<Handle, MeshError> {
    let (started, start) = tokio::sync::oneshot::channel();
    let ended = runtime.spawn(async move {
        match node::Node::start(config, key, roster).await {
            Err(error) => drop(started.send(Err(error))),
            Ok((node, ends)) => {
                // If the caller does not wait any more, it has dropped its channels, which ends the node.
                let _ = started.send(Ok(ends));
                node.run().await;
            }
        }
    });
    let ends = start
        .await
        .map_err(|_| MeshError::Start("its runtime was shut down".into()))??;
    Ok(Handle {
        commands: ends.commands,
        events: ends.events,
        addresses: ends.addresses,
        peers: ends.peers,
        asker: ends.asker,
        served: ends.served,
        notices: ends.notices,
        ended,
    })
}
