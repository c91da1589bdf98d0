//! Handles the events of the swarm.

use std::time::Duration;

use libp2p::core::ConnectedPoint;
use libp2p::gossipsub::{self, MessageAcceptance, MessageId};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{ConnectionId, DialError, SwarmEvent};
use libp2p::{Multiaddr, PeerId, mdns, ping};
use protocol::Hash;
use protocol::net::{Acceptance, Event};
use tokio::time::Instant;

use super::judging::WaitingFrame;
use super::{MemberLink, Node};
use crate::behaviour::MeshBehaviourEvent;
use crate::dial;
use crate::gossip::FrameOrigin;
use crate::members::Peer;
use crate::relaying;
use crate::streams::{Inbound, StreamKind};

/// Two members that dial each other at the same time make both connections within this time.
const SIMULTANEOUS: Duration = Duration::from_secs(1);
/// Unanswered pings in a row after which a connection is closed.
const UNANSWERED: u32 = 2;

impl Node {
    pub(super) fn swarm_event(&mut self, event: SwarmEvent<MeshBehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(MeshBehaviourEvent::Streams(inbound)) => self.accept(inbound),
            SwarmEvent::Behaviour(MeshBehaviourEvent::Gossip(event)) => self.gossip_event(event),
            SwarmEvent::Behaviour(MeshBehaviourEvent::Ping(event)) => self.ping_event(event),
            SwarmEvent::Behaviour(MeshBehaviourEvent::Discovery(mdns::Event::Discovered(
                found,
            ))) => {
                found
                    .into_iter()
                    .for_each(|(id, address)| self.found(id, address));
            }
            SwarmEvent::Behaviour(MeshBehaviourEvent::Through(event)) => self.through_event(event),
            SwarmEvent::Behaviour(MeshBehaviourEvent::Relay(event)) => self.relay_event(event),
            SwarmEvent::Behaviour(MeshBehaviourEvent::Upgrade(event)) => self.upgrade_event(event),
            SwarmEvent::ConnectionEstablished {
                peer_id, endpoint, ..
            } => self.established(peer_id, &endpoint),
            SwarmEvent::ConnectionClosed {
                peer_id,
                num_established,
                cause,
                ..
            } => {
                let why = cause.map_or("it was closed".into(), |cause| cause.to_string());
                match num_established {
                    0 => self.disconnected(peer_id, &why),
                    _ => self.note_way(&peer_id),
                }
            }
            SwarmEvent::OutgoingConnectionError {
                peer_id: Some(id),
                error,
                ..
            } => self.not_reached(&id, &error),
            SwarmEvent::IncomingConnectionError {
                peer_id,
                send_back_addr,
                error,
                ..
            } => {
                self.refused(peer_id, &send_back_addr, &error);
            }
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!("listening at an address failed: {error}");
            }
            SwarmEvent::ListenerClosed {
                listener_id,
                addresses,
                reason,
            } => {
                let why = reason.as_ref().err().map(|error| dial::innermost(error));
                if self.slot_closed(listener_id, why.as_deref().unwrap_or("it left")) {
                    return;
                }
                tracing::warn!(
                    ?addresses,
                    ?reason,
                    "this node stopped listening at these addresses"
                );
            }
            _ => {}
        }
    }

    fn established(&mut self, id: PeerId, endpoint: &ConnectedPoint) {
        self.connected(id, endpoint.get_remote_address(), endpoint.is_relayed());
        if !endpoint.is_relayed() {
            self.directly_connected(id, endpoint.is_dialer());
        }
        if endpoint.is_dialer() {
            self.greet(id, endpoint.get_remote_address().clone());
        }
    }

    /// An attempt to dial a member failed.
    fn not_reached(&mut self, id: &PeerId, error: &DialError) {
        let Some(peer) = self.members.of(id) else {
            return;
        };
        let member = peer.member;
        if peer.is_connected() {
            tracing::debug!(%member, "a further connection failed: {}", dial::explain(error));
            return self.dialer.again_directly(member);
        }
        self.failed(member, dial::explain(error), dial::is_configuration(error));
    }

    fn connected(&mut self, id: PeerId, address: &Multiaddr, relayed: bool) {
        let Some(peer) = self.members.of(&id).cloned() else {
            return;
        };
        let member = peer.member;
        tracing::debug!(%member, %address, "connected");
        peer.set_connected(true);
        if peer.guest {
            self.guest_came(id);
        } else {
            self.links.entry(member).or_default().renewed = true;
            self.door.know(member, address);
        }
        // If both members dialled at the same time, the newest connection is kept, and the first of
        // the two in the roster closes the other, so that both keep the same. A member dials only
        // without a connection: if the same side dialled both, or the old connection is older, the
        // member has lost it, perhaps in a restart, and only this node does not know yet.
        let age = if self.me < member {
            Duration::ZERO
        } else {
            SIMULTANEOUS
        };
        let streams = &self.swarm.behaviour().streams;
        let old = streams.superseded(&id, age, SIMULTANEOUS);
        let relayed = relayed && streams.direct(&id).is_none();
        self.dialer.connected(member, relayed);
        self.note_way(&id);
        for old in old {
            self.swarm.close_connection(old);
        }
    }

    fn disconnected(&mut self, id: PeerId, why: &str) {
        let Some(peer) = self.members.of(&id).cloned() else {
            return;
        };
        peer.set_connected(false);
        if peer.guest {
            return self.guests.went(&id);
        }
        let link = self.links.remove(&peer.member);
        let probing = link.as_ref().is_some_and(|link| link.probing);
        if link.is_some_and(|link| link.round_trip.is_some()) {
            self.outbox.push_back(Event::Down { peer: peer.member });
            tracing::info!(member = %peer.member, "the connection ended: {why}");
            self.peers.lost(peer.member, why);
            self.dialer.lost(peer.member);
        } else if probing || self.dialer.is_calm(peer.member) {
            // If both dialled at the same time, one connection may end before the other is made.
            tracing::debug!(member = %peer.member, "a connection ended at once: {why}");
            self.dialer.lost(peer.member);
        } else {
            let why = format!("closed the connection at once ({why}): is this node in its roster?");
            self.failed(peer.member, why, false);
        }
    }

    fn accept(&mut self, inbound: Inbound) {
        if inbound.kind == StreamKind::Hello {
            return self.answer(inbound);
        }
        let Inbound {
            peer,
            kind,
            stream,
            remote,
            ..
        } = inbound;
        let Some(peer) = self.members.of(&peer) else {
            return;
        };
        let member = peer.member;
        if peer.pace.muted().is_some() {
            return;
        }
        match kind {
            StreamKind::Frames | StreamKind::Between => {
                let reader = self.readers.get(&member);
                if reader.is_none_or(|reader| reader.try_send(stream).is_err()) {
                    tracing::debug!(%member, "one more stream of frames is closed");
                }
            }
            StreamKind::Blob => {
                let Ok(permit) = peer.serving.clone().try_acquire_owned() else {
                    if peer.pace.may_warn() {
                        tracing::warn!(%member, "requests for blobs are refused: too many at the same time");
                    }
                    return;
                };
                let desk = self.desk.clone();
                self.tasks.spawn(async move {
                    let _permit = permit;
                    if let Err(error) = desk.serve(member, stream).await {
                        tracing::debug!(%member, "serving a blob ended: {error}");
                    }
                });
            }
            StreamKind::Address => {
                self.tasks.spawn(relaying::tell_address(stream, remote));
            }
            StreamKind::Question => {
                if let Some(answer) = self.answers.answer(member, stream) {
                    self.tasks.spawn(answer);
                }
            }
            // Answered above.
            StreamKind::Hello => {}
        }
    }

    fn gossip_event(&mut self, event: gossipsub::Event) {
        let gossipsub::Event::Message {
            propagation_source: source,
            message_id,
            message,
        } = event
        else {
            return;
        };
        let Some(peer) = self.members.of(&source).cloned() else {
            return;
        };
        let within = peer.pace.published();
        if peer.pace.muted().is_some() {
            self.mute_gossip(&peer);
            return self.report(&message_id, &source, MessageAcceptance::Ignore);
        }
        let hash = Hash::of(&message.data);
        let new = within && {
            let mut seen = self
                .seen
                .lock()
                .expect("no code panics while it holds this lock");
            seen.first(hash, FrameOrigin::Gossip)
        };
        if !new {
            // The silo has had this frame directly, and judged it for itself only.
            return self.report(&message_id, &source, MessageAcceptance::Ignore);
        }
        let (ticket, dropped) = self.judging.ask(message_id, source, hash);
        if let Some(WaitingFrame { id, source, .. }) = dropped {
            self.report(&id, &source, MessageAcceptance::Ignore);
        }
        self.outbox.push_back(Event::Received {
            from: peer.member,
            frame: message.data.into(),
            ticket: Some(ticket),
        });
    }

    /// Takes the verdict of the silo: gossip passes the frame on, or drops it.
    pub(super) fn judged(&mut self, ticket: u64, verdict: Acceptance) {
        let Some(WaitingFrame {
            id, source, frame, ..
        }) = self.judging.answer(ticket)
        else {
            return;
        };
        let acceptance = match verdict {
            Acceptance::Accept => MessageAcceptance::Accept,
            Acceptance::Ignore => MessageAcceptance::Ignore,
            Acceptance::Reject => MessageAcceptance::Reject,
        };
        if verdict == Acceptance::Ignore {
            let mut seen = self
                .seen
                .lock()
                .expect("no code panics while it holds this lock");
            seen.forget(&frame);
        }
        self.report(&id, &source, acceptance);
    }

    fn report(&mut self, id: &MessageId, source: &PeerId, acceptance: MessageAcceptance) {
        let gossip = &mut self.swarm.behaviour_mut().gossip.inner;
        gossip.report_message_validation_result(id, source, acceptance);
    }

    /// Makes gossip ignore a muted member. Otherwise frames that it passes on first would count as
    /// repeated when others pass them on.
    pub(super) fn mute_gossip(&mut self, peer: &Peer) {
        let Some(left) = peer.pace.muted() else {
            return;
        };
        let until = Instant::now() + left;
        if self.muted.insert(peer.member, until).is_none() {
            tracing::debug!(member = %peer.member, ?left, "a member is muted");
            let gossip = &mut self.swarm.behaviour_mut().gossip.inner;
            gossip.blacklist_peer(&peer.id);
        }
    }

    /// Ends the mutes that are over.
    pub(super) fn unmute(&mut self) {
        let now = Instant::now();
        for peer in self.members.all() {
            let over = self
                .muted
                .get(&peer.member)
                .is_some_and(|until| *until <= now);
            if !over {
                continue;
            }
            // It may have been muted again meanwhile.
            if let Some(left) = peer.pace.muted() {
                self.muted.insert(peer.member, now + left);
            } else {
                self.muted.remove(&peer.member);
                let gossip = &mut self.swarm.behaviour_mut().gossip.inner;
                gossip.remove_blacklisted_peer(&peer.id);
            }
        }
    }

    fn ping_event(
        &mut self,
        ping::Event {
            peer: id,
            connection,
            result,
        }: ping::Event,
    ) {
        let Some(peer) = self.members.of(&id).map(|peer| peer.member) else {
            return;
        };
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        match result {
            Ok(measured) => {
                link.silent = 0;
                if let Some(round_trip) = link.measured(measured) {
                    self.outbox.push_back(Event::Up { peer, round_trip });
                }
                self.peers.answered(peer, measured);
                self.dialer.works(peer);
            }
            Err(ping::Failure::Timeout) => {
                link.silent += 1;
                if link.silent >= UNANSWERED {
                    self.give_up(id, connection);
                }
            }
            Err(error) => tracing::debug!(member = %peer, "a ping failed: {error}"),
        }
    }

    fn give_up(&mut self, id: PeerId, connection: ConnectionId) {
        tracing::debug!(%id, "a connection is closed, because its other end does not answer");
        self.swarm.close_connection(connection);
    }

    fn found(&mut self, id: PeerId, mut address: Multiaddr) {
        if let Some(Protocol::P2p(_)) = address.iter().last() {
            address.pop();
        }
        let Some(peer) = self
            .members
            .of(&id)
            .filter(|_| self.transport.uses(&address))
        else {
            return;
        };
        self.dialer.found(peer.member, address, peer.is_connected());
    }
}

impl MemberLink {
    /// Takes a measured round trip. Returns the smoothed one if it should be reported to the silo.
    fn measured(&mut self, now: Duration) -> Option<Duration> {
        let renewed = std::mem::take(&mut self.renewed);
        let Some((smooth, known)) = &mut self.round_trip else {
            self.round_trip = Some((now, now));
            return Some(now);
        };
        *smooth = (*smooth * 7 + now) / 8;
        let (longer, shorter) = (*smooth.max(known), *smooth.min(known));
        let much = longer > shorter.mul_f64(1.5) && longer - shorter > Duration::from_millis(1);
        if much || renewed {
            *known = *smooth;
        }
        (much || renewed).then_some(*smooth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_reported_when_new_reconnected_or_changed() {
        let mut link = MemberLink::default();
        let ms = Duration::from_millis;
        assert_eq!(link.measured(ms(20)), Some(ms(20)));
        assert_eq!(link.measured(ms(25)), None);
        link.renewed = true;
        assert!(link.measured(ms(20)).is_some());
        assert_eq!(link.measured(ms(20)), None);
        let reported: Vec<_> = (0..40).filter_map(|_| link.measured(ms(80))).collect();
        assert!(reported.len() >= 2 && reported.is_sorted(), "{reported:?}");
        assert!(reported.last().is_some_and(|last| *last > ms(50)));
        assert!(
            (0..40)
                .filter_map(|_| link.measured(ms(20)))
                .last()
                .is_some_and(|l| l < ms(40))
        );
    }
}
