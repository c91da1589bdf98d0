//! Tries one way to a member, an address or another member that relays: name, connection, keys,
//! handshake, round trip.

use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime};

use futures::StreamExt;
use libp2p::core::transport::TransportError;
use libp2p::identity::Keypair;
use libp2p::multiaddr::{Multiaddr, Protocol};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{self, DialError, NetworkBehaviour, SwarmEvent};
use libp2p::{PeerId, Swarm, relay};
use protocol::{Hash, PublicKey, SecretKey};
use tokio::time::{sleep, timeout};

use crate::behaviour::transport;
use crate::config::{MeshError, parse};
use crate::dial::{innermost, resolve};
use crate::hello::{self, Greeted, OwnHandshake, Program};
use crate::listening::listening;
use crate::members::{id_of, key_of};
use crate::pace::Paces;
use crate::relaying;
use crate::streams::{self, StreamOpenError};

/// Longest time for the end of a connection.
const GOODBYE: Duration = Duration::from_millis(200);

/// A member that answered at an address.
#[derive(Debug, Clone, PartialEq)]
pub struct Met {
    /// The id of its federation.
    pub federation: Hash,
    /// Program of the member.
    pub program: Program,
    /// Duration of connecting, keys included.
    pub handshake: Duration,
    /// Round trip of the handshake.
    pub round_trip: Duration,
    /// Offset of its clock ahead of this machine's, in seconds; known to half a round trip.
    pub ahead: f64,
    /// The number of its process; 0 if it has none.
    pub instance: u64,
    /// Its answer to the challenge, if it answers challenges.
    pub rehearsal: Option<[u8; 32]>,
}

/// Statement of a probe about itself.
#[derive(Debug, Clone, Copy)]
pub struct Prober {
    /// The secret key: while the institution's own node runs, its [`probe_key`](crate::probe_key), which
    /// the others know from the node's handshakes; with its own key the others would take this for the node.
    pub key: [u8; 32],
    /// The id of the federation.
    pub federation: Hash,
    /// A challenge that the member is to answer, if any.
    pub challenge: Option<[u8; 32]>,
}

impl Prober {
    fn card(&self) -> OwnHandshake {
        let card = OwnHandshake::probing(self.federation, &self.key, 0);
        card.rehearsing(self.challenge)
    }
}

/// Reason for which a member was not met at an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The address or the key cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The name in the address has no address.
    #[error("{0}")]
    Unresolved(String),
    /// Nothing came back.
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The machine answered that nothing listens there.
    #[error("the machine answers, but nothing listens at this port")]
    Refused,
    /// Another failure to connect.
    #[error("{0}")]
    Failed(String),
    /// Another key than the member's.
    #[error("a node with another key answers{}", .0.map_or(String::new(), |key| format!(": {key}")))]
    OtherKey(Option<PublicKey>),
    /// The node closed the connection at once.
    #[error(
        "it has the right key, and refuses this institution's: its agreement does not have that key"
    )]
    TurnedAway,
    /// The member that was to relay has no connection to it.
    #[error("that member has no connection to it")]
    Unrelayed,
    /// The node does not know handshakes.
    #[error(
        "it has the right key, but does not answer handshakes: it runs another version of Rota"
    )]
    Mute,
}

/// Connects to the member with key `peer` at `address`, exchanges handshakes, and leaves.
///
/// # Errors
/// [`ProbeError`]: how far it came.
pub async fn probe(
    prober: &Prober,
    peer: &PublicKey,
    address: &str,
    patience: Duration,
) -> Result<Met, ProbeError> {
    let addresses = resolved(address).await?;
    let peer = identified(peer)?;
    meet((prober.key, prober.card()), peer, None, addresses, patience).await
}

/// Looks which process answers at an address of this node's own: `secret` is its key, `instance` the
/// number of its process.
pub(crate) async fn own(
    secret: [u8; 32],
    federation: Hash,
    instance: u64,
    address: &str,
    patience: Duration,
) -> Result<Met, ProbeError> {
    let addresses = resolved(address).await?;
    let peer = identified(&SecretKey::from_bytes(&secret).public())?;
    let card = OwnHandshake::probing(federation, &secret, instance);
    let key = hello::probe_key(&secret);
    meet((key, card), peer, None, addresses, patience).await
}

/// As [`probe`], of a member without an address, through the member with key `relay`, which answers at
/// `address`.
///
/// # Errors
/// [`ProbeError`]: how far it came.
pub async fn probe_through(
    prober: &Prober,
    peer: &PublicKey,
    (relay, address): (&PublicKey, &str),
    patience: Duration,
) -> Result<Met, ProbeError> {
    let (peer, relay) = (identified(peer)?, identified(relay)?);
    let addresses = resolved(address).await?.into_iter();
    let through = |address| relaying::slot(address, relay).with(Protocol::P2p(peer));
    let addresses = addresses.map(through).collect();
    let card = (prober.key, prober.card());
    meet(card, peer, Some(relay), addresses, patience).await
}

fn unusable(error: impl std::fmt::Display) -> ProbeError {
    ProbeError::Unusable(error.to_string())
}

fn identified(key: &PublicKey) -> Result<PeerId, ProbeError> {
    id_of(key).ok_or_else(|| unusable("its key is not an Ed25519 key"))
}

/// The addresses that an address with a name stands for.
async fn resolved(address: &str) -> Result<Vec<Multiaddr>, ProbeError> {
    let address = parse(address).map_err(unusable)?;
    let resolved = resolve(vec![address]).await;
    if resolved.addresses.is_empty() {
        Err(ProbeError::Unresolved(resolved.problems.join("; ")))
    } else {
        Ok(resolved.addresses)
    }
}

/// Network behaviour of a probe on its connections.
#[derive(NetworkBehaviour)]
struct ProbeBehaviour {
    streams: streams::StreamBehaviour,
    through: relay::client::Behaviour,
}

async fn meet(
    (key, card): ([u8; 32], OwnHandshake),
    peer: PeerId,
    relay: Option<PeerId>,
    addresses: Vec<Multiaddr>,
    patience: Duration,
) -> Result<Met, ProbeError> {
    let pair = Keypair::ed25519_from_bytes(key).map_err(unusable)?;
    let (streams, opener) = streams::StreamBehaviour::handshake();
    let me = pair.public().to_peer_id();
    let (circuits, through) = relay::client::new(me);
    let transport = transport(&pair, Paces::new(), circuits).map_err(unusable)?;
    let behaviour = ProbeBehaviour { streams, through };
    let config = swarm::Config::with_tokio_executor();
    let mut swarm = Swarm::new(transport, behaviour, me, config);
    let began = Instant::now();
    let dial = DialOpts::peer_id(peer)
        .condition(PeerCondition::Always)
        .addresses(addresses)
        .build();
    swarm.dial(dial).map_err(|error| why(&error, patience))?;
    let deadline = sleep(patience);
    tokio::pin!(deadline);
    let mut handshake = None;
    let mut answer: Option<Pin<Box<dyn Future<Output = ProbeAnswer> + Send>>> = None;
    let met = loop {
        tokio::select! {
            () = &mut deadline => break Err(ProbeError::Silent(patience)),
            answered = waiting(&mut answer), if answer.is_some() => break match answered {
                Ok((greeted, round_trip)) => {
                    let hello = greeted.hello;
                    Ok(Met {
                        federation: hello.federation,
                        program: hello.program,
                        handshake: handshake.unwrap_or_default(),
                        round_trip,
                        ahead: ahead(hello.clock, round_trip),
                        instance: hello.instance,
                        rehearsal: hello.rehearsal,
                    })
                }
                Err(StreamOpenError::Unsupported) => Err(ProbeError::Mute),
                Err(_) => Err(ProbeError::TurnedAway),
            },
            event = swarm.select_next_some() => match event {
                // The member that relays is greeted, too, so that it knows that this only checks.
                SwarmEvent::ConnectionEstablished { peer_id, .. } if Some(peer_id) == relay => {
                    let relay = (peer_id, Multiaddr::empty());
                    tokio::spawn(hello::ask(opener.clone(), relay, card.clone()));
                }
                SwarmEvent::ConnectionEstablished { .. } if handshake.is_none() => {
                    handshake = Some(began.elapsed());
                    let peer = (peer, Multiaddr::empty());
                    let ask = hello::ask(opener.clone(), peer, card.clone());
                    answer = Some(Box::pin(ask));
                }
                SwarmEvent::ConnectionClosed { .. } => break Err(ProbeError::TurnedAway),
                SwarmEvent::OutgoingConnectionError { error, .. } => {
                    break Err(why(&error, patience));
                }
                _ => {}
            },
        }
    };
    leave(swarm, relay.into_iter().chain([peer])).await;
    met
}

/// The other side's handshake and the round trip.
type ProbeAnswer = Result<(Greeted, Duration), StreamOpenError>;

/// The answer to a handshake, once there is one under way.
async fn waiting(
    handshake: &mut Option<Pin<Box<dyn Future<Output = ProbeAnswer> + Send>>>,
) -> ProbeAnswer {
    match handshake {
        Some(handshake) => handshake.await,
        None => pending().await,
    }
}

/// Closes the connection in order.
async fn leave(mut swarm: Swarm<ProbeBehaviour>, peers: impl Iterator<Item = PeerId>) {
    for peer in peers {
        let _ = swarm.disconnect_peer_id(peer);
    }
    let _ = timeout(GOODBYE, async {
        while swarm.connected_peers().next().is_some() {
            swarm.select_next_some().await;
        }
    })
    .await;
}

/// Returns how far a clock was ahead that was read half a round trip ago.
fn ahead(clock: SystemTime, round_trip: Duration) -> f64 {
    let then = SystemTime::now() - round_trip / 2;
    match clock.duration_since(then) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    }
}

/// A failed dial.
fn why(error: &DialError, patience: Duration) -> ProbeError {
    match error {
        DialError::WrongPeerId { obtained, .. } => ProbeError::OtherKey(key_of(obtained)),
        DialError::LocalPeerId { .. } => ProbeError::Unusable("it is this node's own key".into()),
        DialError::Transport(tried) => {
            let each = tried.iter().map(|(_, error)| match error {
                TransportError::MultiaddrNotSupported(_) => {
                    ProbeError::Failed("not supported".into())
                }
                TransportError::Other(error) => of_system(error, patience),
            });
            each.last().unwrap_or(ProbeError::Silent(patience))
        }
        other => ProbeError::Failed(other.to_string()),
    }
}

/// An error of the transport. Its layers hide the kind, which its text still names.
fn of_system(error: &io::Error, patience: Duration) -> ProbeError {
    let text = innermost(error);
    let said = text.to_lowercase();
    if said.contains("no reservation") {
        ProbeError::Unrelayed
    } else if said.contains("refused") {
        ProbeError::Refused
    } else if said.contains("timed out") || said.contains("timeout") {
        ProbeError::Silent(patience)
    } else {
        ProbeError::Failed(text)
    }
}

/// A port of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// Number of the port.
    pub number: u16,
    /// True if this is a UDP port, for QUIC, and not a TCP port.
    pub udp: bool,
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.udp { "UDP" } else { "TCP" };
        write!(f, "{kind} {}", self.number)
    }
}

/// The port of an address, and the IP address if it has one in place of a name; `None` if it is no
/// address of a node.
pub fn port(address: &str) -> Option<(Option<IpAddr>, Port)> {
    let address: Multiaddr = parse(address).ok()?;
    let mut parts = address.iter();
    let ip = match parts.next()? {
        Protocol::Ip4(ip) => Some(ip.into()),
        Protocol::Ip6(ip) => Some(ip.into()),
        _ => None,
    };
    let port = match parts.next()? {
        Protocol::Udp(number) => Port { number, udp: true },
        Protocol::Tcp(number) => Port { number, udp: false },
        _ => return None,
    };
    Some((ip, port))
}

/// Returns whether a node could listen at an address now.
///
/// # Errors
/// [`MeshError`]: it is no such address, or the system refuses it; with what to try.
pub fn bindable(address: &str) -> Result<(), MeshError> {
    let parsed = parse(address)?;
    listening(&parsed).map_err(|why| MeshError::Listen {
        address: address.into(),
        why,
    })
}
