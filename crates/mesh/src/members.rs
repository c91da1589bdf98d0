//! The other members, by position and by libp2p's id of their key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libp2p::PeerId;
use libp2p::identity::{PublicKey as Libp2pKey, ed25519};
use protocol::{MemberIndex, PublicKey};
use tokio::sync::{Semaphore, watch};

use crate::config::{Contact, MeshError};
use crate::pace::{Pace, Paces};
use crate::queue::QueueSender;

/// Blob streams that this node opens to one member at once; further fetches wait.
const FETCHING: usize = 16;
/// Blob streams that one member may open to this node; more are closed. Above [`FETCHING`], because the
/// two sides do not notice the end of a stream at the same moment.
const SERVING: usize = 32;

/// Another member.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) member: MemberIndex,
    pub(crate) id: PeerId,
    /// `true` if there is a connection.
    connected: watch::Sender<bool>,
    /// Number of connections so far.
    connections: AtomicU64,
    /// Frames that wait to be sent to it.
    pub(crate) queue: QueueSender,
    /// True if the peer is a former member.
    pub(crate) guest: bool,
    /// Pace at which its streams are read.
    pub(crate) pace: Arc<Pace>,
    /// Permits for blob streams to it.
    pub(crate) fetching: Semaphore,
    /// Permits for blob streams from it.
    pub(crate) serving: Arc<Semaphore>,
}

impl Peer {
    pub(crate) fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// Notes that a connection was made, or that the last one ended.
    pub(crate) fn set_connected(&self, is: bool) {
        self.connections.fetch_add(u64::from(is), Ordering::Relaxed);
        self.connected.send_replace(is);
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Waits for a connection.
    pub(crate) async fn wait_connected(&self) {
        // The sender lives as long as this peer, so that waiting cannot fail.
        let _ = self.connected.subscribe().wait_for(|&up| up).await;
    }
}

/// All members but this one, and former members.
#[derive(Debug)]
pub(crate) struct Members {
    by_position: BTreeMap<MemberIndex, Arc<Peer>>,
    by_id: BTreeMap<PeerId, Arc<Peer>>,
}

impl Members {
    /// The other members of the roster, and former members. `queue` makes the sending end of the queue
    /// of each.
    pub(crate) fn new(
        others: &[&Contact],
        guests: impl IntoIterator<Item = (MemberIndex, PublicKey)>,
        mut queue: impl FnMut(MemberIndex) -> QueueSender,
    ) -> Result<Self, MeshError> {
        let mut by_position = BTreeMap::new();
        let others = others.iter().map(|one| (one.member, one.key, false));
        let guests = guests.into_iter().map(|(member, key)| (member, key, true));
        for (member, key, guest) in others.chain(guests) {
            let pace = if guest {
                Pace::of_guest()
            } else {
                Pace::default()
            };
            let peer = Peer {
                member,
                id: id(member, &key)?,
                connected: watch::Sender::new(false),
                connections: AtomicU64::new(0),
                queue: queue(member),
                guest,
                pace: Arc::new(pace),
                fetching: Semaphore::new(FETCHING),
                serving: Arc::new(Semaphore::new(SERVING)),
            };
            by_position.insert(member, Arc::new(peer));
        }
        let by_id = by_position
            .values()
            .map(|peer| (peer.id, peer.clone()))
            .collect();
        Ok(Self { by_position, by_id })
    }

    pub(crate) fn at(&self, member: MemberIndex) -> Option<&Arc<Peer>> {
        self.by_position.get(&member)
    }

    pub(crate) fn of(&self, id: &PeerId) -> Option<&Arc<Peer>> {
        self.by_id.get(id)
    }

    /// Returns how fast the streams of each are read.
    pub(crate) fn paces(&self) -> Paces {
        let pace = |(id, peer): (&PeerId, &Arc<Peer>)| (*id, peer.pace.clone());
        self.by_id.iter().map(pace).collect()
    }

    /// Members and former members.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.by_position.values()
    }

    /// The other members of the roster.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.all().filter(|peer| !peer.guest)
    }

    /// Former members.
    pub(crate) fn guests(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.all().filter(|peer| peer.guest)
    }
}

/// libp2p's id of a member's key.
fn id(member: MemberIndex, key: &PublicKey) -> Result<PeerId, MeshError> {
    id_of(key).ok_or(MeshError::Key { member, key: *key })
}

/// libp2p's id of a key; `None` if it is not an Ed25519 key.
pub(crate) fn id_of(key: &PublicKey) -> Option<PeerId> {
    let key = ed25519::PublicKey::try_from_bytes(&key.0).ok()?;
    Some(Libp2pKey::from(key).to_peer_id())
}

/// The Ed25519 key of libp2p's id, which contains it; `None` for another kind of key.
pub(crate) fn key_of(id: &PeerId) -> Option<PublicKey> {
    let key = Libp2pKey::try_decode_protobuf(id.as_ref().digest()).ok()?;
    Some(PublicKey(key.try_into_ed25519().ok()?.to_bytes()))
}
