//! Nodes that are not in the roster: strangers, former members, and institutions that are to be
//! admitted.

use std::collections::BTreeMap;
use std::time::Duration;

use libp2p::swarm::ListenError;
use libp2p::{Multiaddr, PeerId};
use protocol::PublicKey;
use protocol::net::Event;
use tokio::time::Instant;

use super::Node;
use crate::guests::GuestChange;
use crate::members::id_of;

/// Keys that are awaited at the same time; more are not.
const AWAITED: usize = 256;
/// Least time between two reports of one awaited key.
const AGAIN: Duration = Duration::from_secs(1);

/// Keys whose nodes are reported when they connect, with the time of the last report.
pub(super) type Awaited = BTreeMap<PeerId, (PublicKey, Option<Instant>)>;

impl Node {
    /// Reports nodes with these keys from now on, and with no others.
    pub(super) fn awaits(&mut self, keys: &[PublicKey]) {
        let mut before = std::mem::take(&mut self.awaited);
        let awaited = keys.iter().take(AWAITED).filter_map(|key| {
            let id = id_of(key)?;
            let last = before.remove(&id).and_then(|(_, last)| last);
            Some((id, (*key, last)))
        });
        self.awaited = awaited.collect();
        // A former member that is to be admitted again may be here already.
        let keys = self.awaited.keys().copied();
        let here: Vec<_> = keys.filter(|id| self.swarm.is_connected(id)).collect();
        for id in here {
            self.arrived(&id);
        }
    }

    /// A node has proved this key. Whether that is awaited.
    fn arrived(&mut self, id: &PeerId) -> bool {
        let Some((key, last)) = self.awaited.get_mut(id) else {
            return false;
        };
        let now = Instant::now();
        if last.is_none_or(|last| now - last >= AGAIN) {
            *last = Some(now);
            self.outbox.push_back(Event::Arrived { key: *key });
        }
        true
    }

    /// A connection that came in was refused. If that is because its key is none of the roster, the
    /// key may be an awaited one, and is reported otherwise.
    pub(super) fn refused(&mut self, id: Option<PeerId>, address: &Multiaddr, error: &ListenError) {
        if let Some(id) = id
            && !self.arrived(&id)
            && self.members.of(&id).is_none()
        {
            return self.knocks.stranger(&id, address);
        }
        tracing::debug!(%address, "a connection was refused: {error}");
    }

    /// A former member has connected.
    pub(super) fn guest_came(&mut self, id: PeerId) {
        self.arrived(&id);
        if let Some(other) = self.guests.came(id) {
            self.swarm.behaviour_mut().members.disallow_peer(other);
        }
    }

    /// Ends the stays of former members that are over, and lets those come again that were away.
    pub(super) fn turn_guests(&mut self) {
        for (guest, turn) in self.guests.due() {
            tracing::debug!(%guest, ?turn, "a former member");
            let admitted = &mut self.swarm.behaviour_mut().members;
            match turn {
                GuestChange::Leave => admitted.disallow_peer(guest),
                GuestChange::Return => admitted.allow_peer(guest),
            };
        }
    }
}
