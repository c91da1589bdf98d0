//! Connections through other members: slots, circuits, and their replacement by direct connections.

use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::{Multiaddr, Protocol};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{PeerId, dcutr, relay};
use protocol::MemberIndex;

use super::Node;
use crate::dial::{self, Attempt};
use crate::relaying::{self, ranked};

/// Attempts for which a node that others can dial waits for the connection of a member without an
/// address, before it tries to reach it through others.
const WAITING: u32 = 4;
/// Questions for this node's address under way at the same time.
const QUESTIONS: usize = 16;

impl Node {
    /// Begins an attempt to reach a member.
    pub(super) fn attempt(&mut self, attempt: Attempt) {
        let Attempt {
            member,
            addresses,
            failures,
        } = attempt;
        if !addresses.is_empty() {
            self.resolving
                .spawn(async move { (member, dial::resolve(addresses).await) });
            return;
        }
        if !self.dials_only && failures < WAITING {
            return self.dialer.waits(member);
        }
        let relays = self.relays_to(member);
        let Some(&relay) = relays.get(failures as usize % relays.len().max(1)) else {
            if self.dials_only {
                let why = "has no address, and no member that could relay to it is connected";
                self.peers.failed(member, why);
            }
            return self.dialer.waits(member);
        };
        let (Some(peer), Some(slot)) = (self.members.at(member).cloned(), self.slot_at(relay))
        else {
            return self.dialer.waits(member);
        };
        let dial = DialOpts::peer_id(peer.id)
            .condition(PeerCondition::DisconnectedAndNotDialing)
            .addresses(vec![slot.with(Protocol::P2p(peer.id))])
            .build();
        tracing::debug!(%member, %relay, "an attempt through another member");
        if let Err(error) = self.swarm.dial(dial) {
            self.failed(member, dial::explain(&error), false);
        }
    }

    /// The members with an address that are directly connected, in the order in which they are asked
    /// to relay to `target`.
    fn relays_to(&self, target: MemberIndex) -> Vec<MemberIndex> {
        let streams = &self.swarm.behaviour().streams;
        let connected = self.members.all().filter(|peer| {
            self.addressed.contains(&peer.member) && streams.direct(&peer.id).is_some()
        });
        ranked(target, connected.map(|peer| peer.member))
    }

    /// The address of a slot at a member that is directly connected.
    fn slot_at(&self, relay: MemberIndex) -> Option<Multiaddr> {
        let relay = self.members.at(relay)?;
        let address = self.swarm.behaviour().streams.direct(&relay.id)?;
        Some(relaying::slot(address.clone(), relay.id))
    }

    /// Asks members to relay to this node, if it needs that and has not enough of them.
    pub(super) fn take_slots(&mut self) {
        if !self.dials_only {
            return;
        }
        let relays = self.relays_to(self.me);
        for relay in self.slots.missing(&relays) {
            let asked = self.slot_at(relay).map(|slot| self.swarm.listen_on(slot));
            match asked {
                Some(Ok(listener)) => self.slots.ask(relay, listener),
                _ => self.slots.refuse(self.me, relay),
            }
        }
    }

    /// A slot ended or was refused: asks elsewhere. False if it was no slot that ended.
    pub(super) fn slot_closed(&mut self, listener: ListenerId, why: &str) -> bool {
        let Some(relay) = self.slots.closed(self.me, listener) else {
            return false;
        };
        tracing::debug!(member = %relay, "the member does not relay to this node: {why}");
        self.take_slots();
        true
    }

    /// A connection was made, or one of several ended. Notes through whom the member is connected now.
    pub(super) fn note_way(&mut self, id: &PeerId) {
        let Some(member) = self.members.of(id).map(|peer| peer.member) else {
            return;
        };
        let relay = self.swarm.behaviour().streams.relayed_by(id);
        let relay = relay.and_then(|relay| self.members.of(&relay));
        self.peers
            .goes_through(member, relay.map(|relay| relay.member));
    }

    /// A direct connection to a member was made.
    pub(super) fn directly_connected(&mut self, id: PeerId, dialled: bool) {
        let known = self.members.of(&id).map(|peer| peer.member);
        if !known.is_some_and(|member| self.addressed.contains(&member)) {
            return;
        }
        self.dialer.may_relay();
        self.take_slots();
        // Only where this node dialled, from the port at which it listens, does the address help.
        if self.dials_only && dialled && self.told.len() < QUESTIONS {
            self.told
                .spawn(relaying::ask_address(self.opener.clone(), id));
        }
    }

    /// A member said how it sees this node: there others may try to make a direct connection.
    pub(super) fn seen_at(&mut self, address: Multiaddr) {
        if self.transport.uses(&address) {
            tracing::debug!(%address, "others see this node here");
            self.swarm.behaviour_mut().streams.candidate(address);
        }
    }

    pub(super) fn through_event(&mut self, event: relay::client::Event) {
        match event {
            relay::client::Event::ReservationReqAccepted {
                relay_peer_id: id,
                renewal,
                ..
            } => {
                let Some(relay) = self.members.of(&id).map(|peer| peer.member) else {
                    return;
                };
                self.slots.granted(relay);
                if !renewal {
                    tracing::info!(member = %relay, "the member relays to this node");
                }
            }
            event => tracing::debug!(?event, "a connection through another member"),
        }
    }

    pub(super) fn relay_event(&self, event: relay::Event) {
        let member = |id: &PeerId| self.members.of(id).map(|peer| peer.member);
        match event {
            relay::Event::ReservationReqAccepted {
                src_peer_id,
                renewed: false,
            } => {
                let member = member(&src_peer_id);
                tracing::info!(?member, "this node relays to the member");
            }
            relay::Event::CircuitReqAccepted {
                src_peer_id,
                dst_peer_id,
            } => {
                let (from, to) = (member(&src_peer_id), member(&dst_peer_id));
                tracing::info!(?from, ?to, "this node relays a connection");
            }
            event => tracing::debug!(?event, "relaying"),
        }
    }

    pub(super) fn upgrade_event(&self, event: dcutr::Event) {
        let member = self.members.of(&event.remote_peer_id);
        let member = member.map(|peer| peer.member);
        match event.result {
            Ok(_) => tracing::info!(?member, "a direct connection replaces the relayed one"),
            Err(error) => {
                tracing::debug!(?member, "the connection stays relayed: {error}");
            }
        }
    }
}
