//! Builds the libp2p swarm: transports, behaviours, connection limits.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use futures::io::BufReader;
use libp2p::allow_block_list::{self, AllowedPeers};
use libp2p::connection_limits::{self, ConnectionLimits};
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::Boxed;
use libp2p::core::upgrade::Version;
use libp2p::gossipsub::IdentTopic;
use libp2p::identity::Keypair;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{self, NetworkBehaviour};
use libp2p::{PeerId, Swarm, Transport, gossipsub, mdns, memory_connection_limits, noise, ping};
use libp2p::{dcutr, quic, relay, tcp, yamux};

use crate::config::{Config, MeshError};
use crate::door::{Door, Doorway};
use crate::gossip;
use crate::members::Members;
use crate::only::Only;
use crate::pace::{Pace, Paced, Paces};
use crate::relaying;
use crate::streams::{self, StreamOpener};

/// Streams that one member may have open on one connection: frames, ping, gossip and blobs.
const STREAMS: usize = 128;
/// Connections to one member. A second one replaces the first, and while the first is being closed
/// the member may already have lost the second. Two more while a direct connection takes the place of
/// a relayed one.
const CONNECTIONS: u32 = 5;
/// Longest time for a connection that this node dials to prove the other's key. Connections that
/// come in have less time: see [`door`](crate::door).
const DIAL: Duration = Duration::from_secs(10);
/// Bytes that one call of the system reads from a TCP connection at most.
const READ: usize = 64 << 10;
/// Interval of measuring round trips, and time after which an answer is overdue. Guesses: a lead is replaced
/// by the protocol's own timers; pings only detect dead connections.
const PING: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));

/// The behaviours that every connection passes, in this order: nodes outside the roster are denied
/// first.
#[derive(NetworkBehaviour)]
pub(crate) struct MeshBehaviour {
    pub(crate) members: allow_block_list::Behaviour<AllowedPeers>,
    limits: connection_limits::Behaviour,
    memory: memory_connection_limits::Behaviour,
    pub(crate) streams: streams::StreamBehaviour,
    /// With members only.
    pub(crate) gossip: Only<gossipsub::Behaviour>,
    ping: ping::Behaviour,
    pub(crate) discovery: Toggle<mdns::tokio::Behaviour>,
    /// Relays between members.
    relay: Only<Toggle<relay::Behaviour>>,
    /// Makes and accepts connections that a member relays. On at every node, see [`Paced::new`].
    through: relay::client::Behaviour,
    /// Tries to replace a relayed connection by a direct one.
    upgrade: dcutr::Behaviour,
}

/// The swarm of one node, and the opener of its streams. `own_probe` is this node's own key for checking
/// addresses, with which it may meet another process that has its key.
pub(crate) fn swarm(
    config: &Config,
    (key, own_probe): (&Keypair, Option<PeerId>),
    (members, door): (&Members, Door),
    topic: &IdentTopic,
) -> Result<(Swarm<MeshBehaviour>, StreamOpener), MeshError> {
    let me = key.public().to_peer_id();
    let mut allowed = allow_block_list::Behaviour::<AllowedPeers>::default();
    for peer in members.all().map(|peer| peer.id).chain(own_probe) {
        allowed.allow_peer(peer);
    }
    let others = members.present().count();
    let all = members.all().count() as u32;
    let limits = ConnectionLimits::default()
        // Members, and what they check their addresses with.
        .with_max_established(Some((CONNECTIONS + 1) * (all + 1)))
        .with_max_established_per_peer(Some(CONNECTIONS));
    let discovery = if config.discovery {
        Some(
            mdns::tokio::Behaviour::new(mdns::Config::default(), me).map_err(|error| {
                MeshError::Start(format!("discovery on the local network: {error}"))
            })?,
        )
    } else {
        None
    };
    let present = || members.present().map(|peer| peer.id);
    let guests = || members.guests().map(|peer| peer.id);
    let names = (config.federation, config.epoch);
    let (streams, opener) = streams::StreamBehaviour::new(names, present(), guests());
    let (circuits, through) = relay::client::new(me);
    let relay = config.relay.then(|| relaying::server(me, others)).into();
    let behaviour = MeshBehaviour {
        members: allowed,
        limits: connection_limits::Behaviour::new(limits),
        memory: memory_connection_limits::Behaviour::with_max_percentage(config.memory),
        streams,
        gossip: Only::with(gossip::behaviour(topic)?, present()),
        ping: ping::Behaviour::new(
            ping::Config::new()
                .with_interval(PING.0)
                .with_timeout(PING.1),
        ),
        discovery: discovery.into(),
        relay: Only::without(relay, guests()),
        through,
        upgrade: dcutr::Behaviour::new(me),
    };
    let swarm_config = swarm::Config::with_tokio_executor()
        .with_smart_dial()
        .with_notify_handler_buffer_size(NonZeroUsize::new(32).expect("not zero"))
        .with_per_connection_event_buffer_size(32)
        .with_max_negotiating_inbound_streams(STREAMS);
    let transport = Doorway::new(transport(key, members.paces(), circuits)?, door);
    Ok((
        Swarm::new(transport.boxed(), behaviour, me, swarm_config),
        opener,
    ))
}

/// QUIC; TCP with Noise and Yamux; and connections through other members (`circuits`), which have
/// Noise and Yamux between the two ends, so that the member between them sees encrypted bytes only.
/// All are read at the pace of the member at the other end. The address of a member determines which
/// of them is used.
pub(crate) fn transport(
    key: &Keypair,
    paces: Paces,
    circuits: relay::client::Transport,
) -> Result<Boxed<(PeerId, StreamMuxerBox)>, MeshError> {
    let mut quic_config = quic::Config::new(key);
    quic_config.max_concurrent_stream_limit = STREAMS as u32;
    let quic = quic::tokio::Transport::new(quic_config);
    let noise = noise::Config::new(key)
        .map_err(|error| MeshError::Start(format!("encryption of TCP connections: {error}")))?;
    let mut yamux = yamux::Config::default();
    yamux.set_max_num_streams(STREAMS);
    let tcp = tcp::tokio::Transport::new(tcp::Config::new().nodelay(true))
        // Noise reads eight kilobytes at a time, each with a call of the system without this.
        .map(|socket, _| BufReader::with_capacity(READ, socket))
        .upgrade(Version::V1Lazy)
        .authenticate(noise.clone())
        .multiplex(yamux.clone())
        .outbound_timeout(DIAL);
    let circuits = circuits
        .upgrade(Version::V1Lazy)
        .authenticate(noise)
        .multiplex(yamux)
        .outbound_timeout(DIAL);
    // A connection from outside the roster is denied before anything is read from it.
    let pace = move |peer: &PeerId| -> Arc<Pace> { paces.get(peer).cloned().unwrap_or_default() };
    Ok(circuits
        .or_transport(quic.or_transport(tcp))
        .map(move |either, _| {
            let (peer, muxer, direct) = match either {
                Either::Left((peer, muxer)) => (peer, StreamMuxerBox::new(muxer), false),
                Either::Right(Either::Left((peer, muxer))) => {
                    (peer, StreamMuxerBox::new(muxer), true)
                }
                Either::Right(Either::Right((peer, muxer))) => {
                    (peer, StreamMuxerBox::new(muxer), true)
                }
            };
            let paced = Paced::new(muxer, pace(&peer), direct);
            (peer, StreamMuxerBox::new(paced))
        })
        .boxed())
}

#[cfg(test)]
mod tests {
    use protocol::{Hash, MemberIndex, SecretKey};

    use super::*;
    use crate::config::Contact;
    use crate::queue::queue;

    #[tokio::test]
    async fn discovery_runs_only_where_it_is_configured() {
        let silent = Config::new(Hash::of(b"mesh"), Vec::new());
        let asked = Config {
            discovery: true,
            ..silent.clone()
        };
        let key = Keypair::ed25519_from_bytes([1; 32]).expect("any bytes are a key");
        let contact = Contact {
            member: MemberIndex(1),
            key: SecretKey::from_bytes(&[2; 32]).public(),
            addresses: Vec::new(),
        };
        let start = |config: &Config| {
            let members = Members::new(&[&contact], [], |_| queue(1, 1).0).expect("a key");
            let topic = gossip::topic(config.epoch);
            let here = (&members, Door::new(1).0);
            swarm(config, (&key, None), here, &topic).map(|(swarm, _)| swarm)
        };
        let swarm = start(&silent).expect("starting without discovery needs no network");
        assert!(!swarm.behaviour().discovery.is_enabled());
        // On a machine without a suitable network the start fails; it does not continue without discovery.
        match start(&asked) {
            Ok(swarm) => assert!(swarm.behaviour().discovery.is_enabled()),
            Err(error) => assert!(error.to_string().contains("discovery on the local network")),
        }
    }
}
