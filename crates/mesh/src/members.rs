//! Who is who: members by position and by libp2p's name for their key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libp2p::PeerId;
use libp2p::identity::{PublicKey as Libp2pKey, ed25519};
use protocol::{MemberIndex, PublicKey};
use tokio::sync::{Semaphore, watch};

use crate::config::{Contact, MeshError};
use crate::direct::Line;
use crate::pace::{Pace, Paces};

/// Blob streams that are open to one member at once; further fetches wait.
const ASKED: usize = 16;
/// Blob streams that one member may have open here; more are closed. Above [`ASKED`], because the
/// two sides do not notice the end of a stream at the same moment.
const ASKING: usize = 32;

/// Another member.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) member: MemberIndex,
    pub(crate) id: PeerId,
    /// Whether there is a connection.
    connected: watch::Sender<bool>,
    /// Connections there were so far.
    met: AtomicU64,
    /// Frames on their way to it.
    pub(crate) line: Line,
    /// How fast it is listened to.
    pub(crate) pace: Arc<Pace>,
    /// Its turns as a holder of blobs.
    pub(crate) asked: Semaphore,
    /// Its turns as one who asks for blobs.
    pub(crate) asking: Arc<Semaphore>,
}

impl Peer {
    pub(crate) fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// There is a connection now, or there is none any more.
    pub(crate) fn set_connected(&self, is: bool) {
        self.met.fetch_add(u64::from(is), Ordering::Relaxed);
        self.connected.send_replace(is);
    }

    /// How many connections there were so far.
    pub(crate) fn met(&self) -> u64 {
        self.met.load(Ordering::Relaxed)
    }

    /// Ready when there is a connection.
    pub(crate) async fn returned(&self) {
        // The sender lives as long as this peer, so that waiting cannot fail.
        let _ = self.connected.subscribe().wait_for(|&up| up).await;
    }
}

/// All members but this one.
#[derive(Debug)]
pub(crate) struct Members {
    by_position: BTreeMap<MemberIndex, Arc<Peer>>,
    by_id: BTreeMap<PeerId, Arc<Peer>>,
}

impl Members {
    /// The others of the roster. `line` makes the sending end of a member's queue.
    pub(crate) fn new(
        others: &[&Contact],
        mut line: impl FnMut(MemberIndex) -> Line,
    ) -> Result<Self, MeshError> {
        let mut by_position = BTreeMap::new();
        for contact in others {
            let peer = Peer {
                member: contact.member,
                id: id(contact.member, &contact.key)?,
                connected: watch::Sender::new(false),
                met: AtomicU64::new(0),
                line: line(contact.member),
                pace: Arc::default(),
                asked: Semaphore::new(ASKED),
                asking: Arc::new(Semaphore::new(ASKING)),
            };
            by_position.insert(contact.member, Arc::new(peer));
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

    /// How fast each of them is listened to.
    pub(crate) fn paces(&self) -> Paces {
        let pace = |(id, peer): (&PeerId, &Arc<Peer>)| (*id, peer.pace.clone());
        self.by_id.iter().map(pace).collect()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.by_position.values()
    }
}

/// libp2p's name for a member's key.
fn id(member: MemberIndex, key: &PublicKey) -> Result<PeerId, MeshError> {
    let key = ed25519::PublicKey::try_from_bytes(&key.0)
        .map_err(|_| MeshError::Key { member, key: *key })?;
    Ok(Libp2pKey::from(key).to_peer_id())
}
