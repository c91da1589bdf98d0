//! How bytes travel between silos.
//!
//! The contract is two bounded channels of plain values: [`Command`]s in, [`Event`]s out. Whoever
//! implements it promises:
//!
//! - frames arrive whole or not at all, unchanged, in any order, perhaps more than once when sent
//!   to one member, at most once when published;
//! - a frame says who passed it on; who signed it is in the frame itself;
//! - a blob is handed over only whole, after its BLAKE3 hash was verified, and never larger than
//!   the `limit` it was asked for with;
//! - every blob of a `Fetch` is answered once, with `Fetched` or `Missing`; the answer to `Wanted`
//!   is `Serve`;
//! - a frame that was published and came by way of a member has a ticket, and is passed on to
//!   others only after the silo accepted it ([`Command::Judge`]), within [`protocol::net::JUDGED`]; what is not
//!   accepted goes no further;
//! - nothing is heard from a muted member ([`Command::Mute`]) until its mute ends;
//! - commands that do not fit into the channel are lost (the protocol says everything again);
//!   events wait for the silo, so the silo sees every one.
//!
//! The simulated network of `simulations` is one implementation. The libp2p swarm behind [`spawn`]
//! is the other: nothing outside this crate names libp2p, and no type of it leaves.
//!
//! | what | how |
//! |---|---|
//! | who may connect | members of the roster; strangers are denied before any protocol sees them |
//! | connections | QUIC, or TCP with Noise and Yamux; one to a member, dialled again with back-off |
//! | how fast | what a member opened is read at its share; a frame over the limit ends its stream |
//! | `Send` | a stream of frames to each member, in order; those said before it was ever reached wait |
//! | `Publish` | anonymous gossipsub up to 52 KiB, directly to everybody above that |
//! | `Judge` | gossipsub's own validation: nothing is passed on before |
//! | `Fetch`, `Serve` | a stream to each holder; small blobs together, large ones in verified chunks |
//! | `Up`, `Down` | libp2p's ping, and the end of the last connection |

mod behaviour;
mod blobs;
mod config;
mod dial;
mod direct;
mod gossip;
mod members;
mod node;
mod pace;
mod streams;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use config::{Config, Contact, MeshError, Transport, check};
pub use protocol::net::{Acceptance, BlobRequest, Command, Event};
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A running mesh.
#[derive(Debug)]
pub struct Handle {
    /// Silo → mesh. The mesh ends when all of these are gone.
    pub commands: mpsc::Sender<Command>,
    /// Mesh → silo. The mesh ends when this is gone.
    pub events: mpsc::Receiver<Event>,
    /// Where others can reach it, ports included.
    pub addresses: Vec<String>,
    /// Bytes of blobs that it sent so far.
    pub served: Arc<AtomicU64>,
    /// Done when the mesh has ended, said goodbye to its peers and closed its ports.
    pub ended: JoinHandle<()>,
}

/// Starts the mesh of one node on `runtime`, which must have its timers and input and output
/// switched on. `key` is the node's Ed25519 secret key; `roster` are all members, this node
/// included (its own addresses there are not used).
///
/// # Errors
/// [`MeshError`]: a key or address that is none, or an address that cannot be listened at.
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
                // A caller that is gone has dropped its ends, which ends the node.
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
        served: ends.served,
        ended,
    })
}
