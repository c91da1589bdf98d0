//! Byte streams between members: one protocol for frames, one for blobs, one for handshakes, one for
//! what a node wants to know about its own address, one for what other nodes say of themselves, and one
//! for frames between nodes in different epochs.
//!
//! The protocols of frames, blobs and questions have the epoch in their names, so that nodes in different epochs
//! exchange neither. What they still have to tell each other, above all that an epoch is over, goes by
//! the protocol between epochs, whose name has the federation. Former members are offered that
//! protocol and handshakes, and nothing else; who is none of both only handshakes.
//!
//! A behaviour of libp2p that does nothing but hand out streams: those that members opened as
//! [`Inbound`] events, those that this node opens through [`StreamOpener::open`]. It keeps connections alive.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, OutboundUpgrade, UpgradeInfo};
use libp2p::core::{ConnectedPoint, Endpoint, Multiaddr};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::handler::{
    ConnectionEvent, ConnectionHandler, ConnectionHandlerEvent, DialUpgradeError,
    FullyNegotiatedInbound, FullyNegotiatedOutbound, SubstreamProtocol,
};
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, NotifyHandler, StreamUpgradeError,
    THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{PeerId, Stream, StreamProtocol};
use protocol::Hash;
use tokio::sync::{mpsc, oneshot};

/// Requests for streams that may wait for the swarm.
const REQUESTS: usize = 64;
/// The protocol of handshakes.
const HELLO: StreamProtocol = StreamProtocol::new("/rota/hello/1");
/// The protocol of [`StreamKind::Address`].
const ADDRESS: StreamProtocol = StreamProtocol::new("/rota/address/1");

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// Frames in one direction, between members in the same epoch.
    Frames,
    /// Frames in one direction, between nodes in different epochs.
    Between,
    /// A fetch of blobs.
    Blob,
    /// A handshake, whose protocol is the same in every federation.
    Hello,
    /// The question from which address this node's connection comes.
    Address,
    /// The question what a member says of itself.
    Question,
}

/// Why a stream could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StreamOpenError {
    #[error("there is no connection to it")]
    Unconnected,
    #[error(
        "it does not support this federation's protocol: does it run another version of the program?"
    )]
    Unsupported,
    #[error("the connection failed: {0}")]
    Failed(String),
}

/// A stream that a member opened.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) peer: PeerId,
    pub(crate) kind: StreamKind,
    pub(crate) stream: Stream,
    /// Where the connection comes from.
    pub(crate) remote: Multiaddr,
    /// When the connection was made.
    pub(crate) since: Instant,
}

type StreamReply = oneshot::Sender<Result<Stream, StreamOpenError>>;

/// A request to open a stream.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    peer: PeerId,
    kind: StreamKind,
    reply: StreamReply,
}

/// Opens streams.
#[derive(Debug, Clone)]
pub(crate) struct StreamOpener(mpsc::Sender<OpenRequest>);

impl StreamOpener {
    /// A new stream on the newest direct connection to `peer`, or on the newest relayed one. One for
    /// frames is one between epochs where the peer is in another epoch.
    pub(crate) async fn open(
        &self,
        peer: PeerId,
        kind: StreamKind,
    ) -> Result<Stream, StreamOpenError> {
        let (reply, answer) = oneshot::channel();
        let open = OpenRequest { peer, kind, reply };
        self.0
            .send(open)
            .await
            .map_err(|_| StreamOpenError::Unconnected)?;
        answer.await.map_err(|_| StreamOpenError::Unconnected)?
    }
}

/// A connection.
#[derive(Debug, Clone)]
struct Made {
    id: ConnectionId,
    at: Instant,
    /// True if this node dialled.
    dialled: bool,
    /// True if another member relays it.
    relayed: bool,
    /// The address of the other end; of a connection that a member relays and this node did not dial,
    /// the one at which this node listens through that member.
    address: Multiaddr,
}

pub(crate) struct StreamBehaviour {
    /// What members, former members, and others are offered.
    offers: [Offer; 3],
    members: BTreeSet<PeerId>,
    guests: BTreeSet<PeerId>,
    wishes: mpsc::Receiver<OpenRequest>,
    /// Oldest first.
    connections: BTreeMap<PeerId, Vec<Made>>,
    inbound: VecDeque<Inbound>,
    /// Addresses at which this node may be reached, to be given to the other behaviours.
    candidates: VecDeque<Multiaddr>,
}

impl StreamBehaviour {
    /// For members and former members. The names have the federation, so that nodes of two federations
    /// with common members do not connect by mistake, and those of what only members get the epoch.
    pub(crate) fn new(
        (federation, epoch): (Hash, Hash),
        members: impl IntoIterator<Item = PeerId>,
        guests: impl IntoIterator<Item = PeerId>,
    ) -> (Self, StreamOpener) {
        let (opener, wishes) = mpsc::channel(REQUESTS);
        let name = |of: Hash, what| {
            StreamProtocol::try_from_owned(format!("/rota/{of:#}/{what}/1"))
                .expect("a protocol's name begins with a slash")
        };
        let between = (name(federation, "between"), StreamKind::Between);
        let member = vec![
            (name(epoch, "frames"), StreamKind::Frames),
            between.clone(),
            (name(epoch, "blob"), StreamKind::Blob),
            (name(epoch, "status"), StreamKind::Question),
            (HELLO, StreamKind::Hello),
            (ADDRESS, StreamKind::Address),
        ];
        let guest = vec![between, (HELLO, StreamKind::Hello)];
        let other = vec![(HELLO, StreamKind::Hello)];
        let behaviour = Self {
            members: members.into_iter().collect(),
            guests: guests.into_iter().collect(),
            ..Self::offering([member, guest, other].map(Offer), wishes)
        };
        (behaviour, StreamOpener(opener))
    }

    /// For handshakes alone.
    pub(crate) fn handshake() -> (Self, StreamOpener) {
        let (opener, wishes) = mpsc::channel(REQUESTS);
        let hello = || Offer(vec![(HELLO, StreamKind::Hello)]);
        let offers = [hello(), hello(), hello()];
        (Self::offering(offers, wishes), StreamOpener(opener))
    }

    fn offering(offers: [Offer; 3], wishes: mpsc::Receiver<OpenRequest>) -> Self {
        Self {
            offers,
            members: BTreeSet::new(),
            guests: BTreeSet::new(),
            wishes,
            connections: BTreeMap::new(),
            inbound: VecDeque::new(),
            candidates: VecDeque::new(),
        }
    }

    /// The connections to `peer` that are not needed after its newest one was made. The newest replaces
    /// those that the same side dialled, because a member dials only without a connection, and those
    /// that are older by at least `age`. A direct one replaces all that are relayed; one that is relayed
    /// is not needed if a direct one was made within `simultaneous` before it.
    pub(crate) fn superseded(
        &self,
        peer: &PeerId,
        age: Duration,
        simultaneous: Duration,
    ) -> Vec<ConnectionId> {
        let all = self.connections.get(peer).map_or(&[][..], Vec::as_slice);
        let Some((newest, older)) = all.split_last() else {
            return Vec::new();
        };
        let since = |old: &Made| newest.at - old.at;
        if newest.relayed
            && older
                .iter()
                .any(|old| !old.relayed && since(old) < simultaneous)
        {
            return vec![newest.id];
        }
        let replaced = |old: &&Made| {
            old.dialled == newest.dialled || since(old) >= age || (old.relayed && !newest.relayed)
        };
        older.iter().filter(replaced).map(|old| old.id).collect()
    }

    /// The connection on which streams to `peer` are opened.
    fn preferred(&self, peer: &PeerId) -> Option<&Made> {
        let all = self.connections.get(peer)?;
        let direct = all.iter().rev().find(|made| !made.relayed);
        direct.or_else(|| all.last())
    }

    /// The address of the direct connection to `peer`, if there is one.
    pub(crate) fn direct(&self, peer: &PeerId) -> Option<&Multiaddr> {
        let preferred = self.preferred(peer).filter(|made| !made.relayed);
        preferred.map(|made| &made.address)
    }

    /// The member that relays the connection to `peer`, if it is relayed.
    pub(crate) fn relayed_by(&self, peer: &PeerId) -> Option<PeerId> {
        let made = self.preferred(peer).filter(|made| made.relayed)?;
        let mut relay = Multiaddr::empty();
        for part in &made.address {
            match part {
                Protocol::P2p(id) => return Some(id),
                Protocol::P2pCircuit => break,
                other => relay.push(other),
            }
        }
        // The address has no key where the member at it dialled this node.
        let is_relay = |made: &Made| !made.relayed && made.address == relay;
        let of = |(id, all): (&PeerId, &Vec<Made>)| all.iter().any(is_relay).then_some(*id);
        self.connections.iter().find_map(of)
    }

    /// Tells the other behaviours of an address at which this node may be reached.
    pub(crate) fn candidate(&mut self, address: Multiaddr) {
        self.candidates.push_back(address);
    }

    fn handler(&self, peer: &PeerId) -> Handler {
        let [member, guest, other] = &self.offers;
        let offer = if self.members.contains(peer) {
            member
        } else if self.guests.contains(peer) {
            guest
        } else {
            other
        };
        Handler {
            offer: offer.clone(),
            events: VecDeque::new(),
        }
    }
}

impl NetworkBehaviour for StreamBehaviour {
    type ConnectionHandler = Handler;
    type ToSwarm = Inbound;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.handler(&peer))
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.handler(&peer))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(new) => {
                let connections = self.connections.entry(new.peer_id).or_default();
                let relayed = new.endpoint.is_relayed();
                let address = match new.endpoint {
                    ConnectedPoint::Listener { local_addr, .. } if relayed => local_addr,
                    endpoint => endpoint.get_remote_address(),
                };
                connections.push(Made {
                    id: new.connection_id,
                    at: Instant::now(),
                    dialled: new.endpoint.is_dialer(),
                    relayed,
                    address: without_key(address.clone(), relayed),
                });
            }
            FromSwarm::ConnectionClosed(old) => {
                if let Some(connections) = self.connections.get_mut(&old.peer_id) {
                    connections.retain(|made| made.id != old.connection_id);
                }
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        (kind, stream): THandlerOutEvent<Self>,
    ) {
        let all = self.connections.get(&peer).map_or(&[][..], Vec::as_slice);
        let made = all.iter().find(|made| made.id == connection);
        self.inbound.push_back(Inbound {
            peer,
            kind,
            stream,
            remote: made.map_or_else(Multiaddr::empty, |made| made.address.clone()),
            since: made.map_or_else(Instant::now, |made| made.at),
        });
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        if let Some(inbound) = self.inbound.pop_front() {
            return Poll::Ready(ToSwarm::GenerateEvent(inbound));
        }
        if let Some(candidate) = self.candidates.pop_front() {
            return Poll::Ready(ToSwarm::NewExternalAddrCandidate(candidate));
        }
        while let Poll::Ready(Some(open)) = self.wishes.poll_recv(context) {
            match self.preferred(&open.peer).map(|made| made.id) {
                Some(preferred) => {
                    return Poll::Ready(ToSwarm::NotifyHandler {
                        peer_id: open.peer,
                        handler: NotifyHandler::One(preferred),
                        event: open,
                    });
                }
                None => drop(open.reply.send(Err(StreamOpenError::Unconnected))),
            }
        }
        Poll::Pending
    }
}

/// An address as it is compared: a direct one without the key at its end.
fn without_key(mut address: Multiaddr, relayed: bool) -> Multiaddr {
    if !relayed && let Some(Protocol::P2p(_)) = address.iter().last() {
        address.pop();
    }
    address
}

/// Handles one connection.
pub(crate) struct Handler {
    offer: Offer,
    events: VecDeque<ConnectionHandlerEvent<Offer, StreamReply, (StreamKind, Stream)>>,
}

impl ConnectionHandler for Handler {
    type FromBehaviour = OpenRequest;
    type ToBehaviour = (StreamKind, Stream);
    type InboundProtocol = Offer;
    type OutboundProtocol = Offer;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = StreamReply;

    fn listen_protocol(&self) -> SubstreamProtocol<Offer> {
        SubstreamProtocol::new(self.offer.clone(), ())
    }

    fn connection_keep_alive(&self) -> bool {
        true
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<Offer, StreamReply, (StreamKind, Stream)>> {
        self.events.pop_front().map_or(Poll::Pending, Poll::Ready)
    }

    fn on_behaviour_event(&mut self, open: OpenRequest) {
        let protocol = SubstreamProtocol::new(self.offer.only(open.kind), open.reply);
        self.events
            .push_back(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
    }

    fn on_connection_event(&mut self, event: ConnectionEvent<'_, Offer, Offer, (), StreamReply>) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound {
                protocol, ..
            }) => {
                let event = ConnectionHandlerEvent::NotifyBehaviour(protocol);
                self.events.push_back(event);
            }
            ConnectionEvent::FullyNegotiatedOutbound(FullyNegotiatedOutbound {
                protocol: (_, stream),
                info,
            }) => drop(info.send(Ok(stream))),
            ConnectionEvent::DialUpgradeError(DialUpgradeError { info, error }) => {
                let _ = info.send(Err(match error {
                    StreamUpgradeError::NegotiationFailed => StreamOpenError::Unsupported,
                    StreamUpgradeError::Timeout => {
                        StreamOpenError::Failed("no answer in time".into())
                    }
                    StreamUpgradeError::Io(error) => StreamOpenError::Failed(error.to_string()),
                    StreamUpgradeError::Apply(never) => match never {},
                }));
            }
            _ => {}
        }
    }
}

/// The protocols offered when a stream is negotiated.
#[derive(Debug, Clone)]
pub(crate) struct Offer(Vec<(StreamProtocol, StreamKind)>);

impl Offer {
    /// Returns what is offered for this: for frames both protocols, that of the epoch first.
    fn only(&self, kind: StreamKind) -> Self {
        let fits = |offered: StreamKind| {
            offered == kind || (kind == StreamKind::Frames && offered == StreamKind::Between)
        };
        Self(
            self.0
                .iter()
                .filter(|(_, offered)| fits(*offered))
                .cloned()
                .collect(),
        )
    }

    fn chosen(self, stream: Stream, name: &StreamProtocol) -> (StreamKind, Stream) {
        let kind = self.0.iter().find(|(offered, _)| offered == name);
        (
            kind.map(|(_, kind)| *kind)
                .expect("only what was offered is negotiated"),
            stream,
        )
    }
}

impl UpgradeInfo for Offer {
    type Info = StreamProtocol;
    type InfoIter = std::vec::IntoIter<StreamProtocol>;

    fn protocol_info(&self) -> Self::InfoIter {
        let names: Vec<_> = self.0.iter().map(|(name, _)| name.clone()).collect();
        names.into_iter()
    }
}

impl InboundUpgrade<Stream> for Offer {
    type Output = (StreamKind, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_inbound(self, stream: Stream, name: StreamProtocol) -> Self::Future {
        ready(Ok(self.chosen(stream, &name)))
    }
}

impl OutboundUpgrade<Stream> for Offer {
    type Output = (StreamKind, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_outbound(self, stream: Stream, name: StreamProtocol) -> Self::Future {
        ready(Ok(self.chosen(stream, &name)))
    }
}
