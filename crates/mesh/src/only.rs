//! A behaviour that takes part in connections to some nodes only.
//!
//! Former members are connected until they know that they are none any more, and programs that check
//! an address for a moment. Neither of them may take part in gossip, whatever topic it names, nor make
//! this node relay.

use std::collections::BTreeSet;
use std::task::{Context, Poll, ready};

use libp2p::core::transport::PortUse;
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::derive_prelude::Either;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{PeerId, core};

/// `inner`, for connections to some nodes.
pub(crate) struct Only<B> {
    pub(crate) inner: B,
    nodes: BTreeSet<PeerId>,
    /// True if `nodes` are those that it is for, and not those that it is not for.
    these: bool,
}

impl<B> Only<B> {
    /// For connections to these nodes.
    pub(crate) fn with(inner: B, nodes: impl IntoIterator<Item = PeerId>) -> Self {
        let nodes = nodes.into_iter().collect();
        let these = true;
        Self {
            inner,
            nodes,
            these,
        }
    }

    /// For connections to all others.
    pub(crate) fn without(inner: B, nodes: impl IntoIterator<Item = PeerId>) -> Self {
        Self {
            these: false,
            ..Self::with(inner, nodes)
        }
    }

    fn is_for(&self, peer: &PeerId) -> bool {
        self.nodes.contains(peer) == self.these
    }
}

impl<B: NetworkBehaviour> NetworkBehaviour for Only<B> {
    type ConnectionHandler = Either<THandler<B>, dummy::ConnectionHandler>;
    type ToSwarm = B::ToSwarm;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.inner
            .handle_pending_inbound_connection(id, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        if !self.is_for(&peer) {
            return Ok(Either::Right(dummy::ConnectionHandler));
        }
        self.inner
            .handle_established_inbound_connection(id, peer, local, remote)
            .map(Either::Left)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        self.inner
            .handle_pending_outbound_connection(id, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        if !self.is_for(&peer) {
            return Ok(Either::Right(dummy::ConnectionHandler));
        }
        self.inner
            .handle_established_outbound_connection(id, peer, address, role, port)
            .map(Either::Left)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        let peer = match &event {
            FromSwarm::ConnectionEstablished(of) => Some(of.peer_id),
            FromSwarm::ConnectionClosed(of) => Some(of.peer_id),
            FromSwarm::AddressChange(of) => Some(of.peer_id),
            _ => None,
        };
        if peer.is_none_or(|peer| self.is_for(&peer)) {
            self.inner.on_swarm_event(event);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {
            Either::Left(event) => {
                self.inner
                    .on_connection_handler_event(peer, connection, event);
            }
            Either::Right(never) => core::util::unreachable(never),
        }
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        let event = ready!(self.inner.poll(context));
        Poll::Ready(event.map_in(Either::Left))
    }
}
