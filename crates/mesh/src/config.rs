//! The configuration of a mesh, and the errors of its start.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use libp2p::multiaddr::{Multiaddr, Protocol};
use protocol::{Hash, MemberIndex, PublicKey};

use crate::blobs::Spool;
use crate::hello::Program;
use crate::rehearsal::Rehearsal;
use crate::tells::Tells;

/// The transports that a node offers and uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// QUIC (UDP) alone.
    Quic,
    /// TCP with Noise and Yamux alone.
    Tcp,
    /// QUIC first; TCP where QUIC does not get through.
    #[default]
    Both,
}

impl Transport {
    /// The addresses of one port at one host, an IP address or a name, best first.
    pub fn addresses(self, host: &str, port: u16) -> Vec<String> {
        let kind = match host.parse() {
            Ok(std::net::IpAddr::V4(_)) => "ip4",
            Ok(std::net::IpAddr::V6(_)) => "ip6",
            Err(_) => "dns",
        };
        let quic = (self != Self::Tcp).then(|| format!("/{kind}/{host}/udp/{port}/quic-v1"));
        let tcp = (self != Self::Quic).then(|| format!("/{kind}/{host}/tcp/{port}"));
        quic.into_iter().chain(tcp).collect()
    }

    /// Returns whether this node uses such addresses.
    pub(crate) fn uses(self, address: &Multiaddr) -> bool {
        match kind(address) {
            Some(kind) => self == Self::Both || self == kind,
            None => false,
        }
    }
}

fn kind(address: &Multiaddr) -> Option<Transport> {
    let parts: Vec<_> = address.iter().collect();
    match &parts[..] {
        [host, Protocol::Udp(_), Protocol::QuicV1] if is_host(host) => Some(Transport::Quic),
        [host, Protocol::Tcp(_)] if is_host(host) => Some(Transport::Tcp),
        _ => None,
    }
}

fn is_host(part: &Protocol<'_>) -> bool {
    use Protocol::{Dns, Dns4, Dns6, Ip4, Ip6};
    matches!(part, Ip4(_) | Ip6(_) | Dns(_) | Dns4(_) | Dns6(_))
}

/// The configuration of a mesh. The defaults suit a federation of up to a hundred institutions; where no
/// source is named they are guesses.
#[derive(Debug, Clone)]
pub struct Config {
    /// The federation's id: handshakes have it, and the protocol between nodes in different epochs.
    pub federation: Hash,
    /// The epoch in force, which names the gossip topic and the protocols of what only its members
    /// get. Default: the federation's id, for a network without epochs.
    pub epoch: Hash,
    /// Former members, which may have to learn that they are none any more. Those that were replaced
    /// because their key was stolen are left out: they are refused as strangers are. The first has the
    /// position behind the last of the roster.
    pub guests: Vec<PublicKey>,
    /// How long a former member stays connected. It is refused for [`AWAY`](crate::AWAY) then.
    /// Default 60 s.
    pub stay: Duration,
    /// A number that no other process has, by which others notice that two processes have one key.
    /// Default: drawn once for each process.
    pub instance: u64,
    /// Number of members that have to say that this node's key is used by another process, too, before the
    /// silo is told: one more than those that may be Byzantine. Default 1.
    pub witnesses: usize,
    /// How often the node tries its own addresses of the roster, to find another process with its key.
    /// Default 60 s.
    pub look: Duration,
    /// What this node says of its program. Default: this program, with an unknown format in force.
    pub program: Program,
    /// What this node tells the members that ask. Default: nothing.
    pub tells: Tells,
    /// What this node answers to challenges. Default: nothing.
    pub rehearsal: Rehearsal,
    /// Default: both.
    pub transport: Transport,
    /// Where to listen, for example `/ip4/0.0.0.0/udp/4400/quic-v1`. None: others cannot reach
    /// this node, but it reaches them.
    pub listen: Vec<String>,
    /// True if members on the same local network may find each other by multicast DNS, which makes this
    /// node visible to every machine there. Default: no.
    pub discovery: bool,
    /// Commands that may be queued; more are lost. Default 1024.
    pub commands: usize,
    /// Events that may be queued; then the mesh waits. Default 1024.
    pub events: usize,
    /// Largest frame in bytes, sent or received; a stream on which a larger one begins is closed.
    /// Default 64 MiB, the largest encoding of the protocol. A node uses `protocol::envelope::limit`,
    /// the largest message of its federation.
    pub frame: usize,
    /// Frames that may wait for one member; more are lost. Default 1024.
    pub queue: usize,
    /// Bytes of frames that may wait for one member; more are lost, except that a frame always
    /// fits into an empty queue. Default 64 MiB.
    pub queue_bytes: usize,
    /// Part of the machine's memory that the process may use before the mesh takes no further
    /// connections. Default 0.9, from 0 to 1.
    pub memory: f64,
    /// Pause before the second attempt to reach a member; doubled with each further one, and
    /// shortened by up to a half at random, so that nodes do not dial in step. Default 250 ms.
    pub first_retry: Duration,
    /// The longest such pause. Default 15 s.
    pub last_retry: Duration,
    /// True if this node relays connections between members that cannot reach each other. Default: yes.
    pub relay: bool,
    /// True if this node asks other members to relay to it, because no other node can dial it: it is
    /// behind NAT or a firewall. Default: no.
    pub dials_only: bool,
    /// How long a holder may take to answer, or to deliver a chunk of 256 KiB. Default 20 s.
    pub patience: Duration,
    /// How long a fetch that received chunks waits for a disconnected holder to return, when no other
    /// holder is left to ask. Default 20 s.
    pub resume: Duration,
    /// Where large blobs wait while they are fetched. Default: in memory.
    pub spool: Option<Arc<dyn Spool>>,
}

impl Config {
    /// The defaults, listening at `listen`.
    pub fn new(federation: Hash, listen: Vec<String>) -> Self {
        Self {
            federation,
            epoch: federation,
            guests: Vec::new(),
            stay: Duration::from_secs(60),
            instance: instance(),
            witnesses: 1,
            look: Duration::from_secs(60),
            program: Program::this(None),
            tells: Tells::default(),
            rehearsal: Rehearsal::default(),
            transport: Transport::default(),
            listen,
            discovery: false,
            commands: 1024,
            events: 1024,
            frame: 64 << 20,
            queue: 1024,
            queue_bytes: 64 << 20,
            memory: 0.9,
            first_retry: Duration::from_millis(250),
            last_retry: Duration::from_secs(15),
            relay: true,
            dials_only: false,
            patience: Duration::from_secs(20),
            resume: Duration::from_secs(20),
            spool: None,
        }
    }
}

/// The number of this process.
fn instance() -> u64 {
    static DRAWN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
    // 0 stands for none.
    (*DRAWN).max(1)
}

/// A member of the roster, with its addresses.
#[derive(Debug, Clone)]
pub struct Contact {
    /// Position of the member.
    pub member: MemberIndex,
    /// Identity of the member, which its node must prove.
    pub key: PublicKey,
    /// Multiaddrs, tried together, QUIC with a head start. None: it has to find this node, or another
    /// member relays between the two.
    pub addresses: Vec<String>,
}

/// Why a mesh did not start.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The key is not in the roster.
    #[error(
        "this node's key {0} is not in the roster: use the identity of the roster, or ask to be added to it"
    )]
    NotAMember(PublicKey),
    /// A key that is no Ed25519 key.
    #[error("the key {key} of member {member} is not an Ed25519 key: correct the roster")]
    Key {
        /// The member.
        member: MemberIndex,
        /// The key.
        key: PublicKey,
    },
    /// Not an address, or not one of those used here.
    #[error(
        "{address:?} is not an address of a node ({why}): write it like /ip4/192.0.2.7/udp/4400/quic-v1 or /dns/node.example.org/tcp/4400"
    )]
    Address {
        /// As it was written.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// An address of a transport that is switched off.
    #[error("cannot listen at {address}: the transport is set to {transport:?} alone")]
    Transport {
        /// The address.
        address: String,
        /// The configured transport.
        transport: Transport,
    },
    /// The operating system refuses the address.
    #[error("cannot listen at {address}: {why}")]
    Listen {
        /// The address.
        address: String,
        /// The system's message, and what to try.
        why: String,
    },
    /// A part of the network could not be set up.
    #[error("the network could not start: {0}")]
    Start(String),
}

/// Returns whether a node can be found or listen at such an address.
///
/// # Errors
/// [`MeshError::Address`]: what is wrong with it, and what would be right.
pub fn check(address: &str) -> Result<(), MeshError> {
    parse(address).map(drop)
}

/// Reads an address. A trailing `/p2p/...` is left out: the roster says whose address it is.
pub(crate) fn parse(address: &str) -> Result<Multiaddr, MeshError> {
    let bad = |why: String| MeshError::Address {
        address: address.into(),
        why,
    };
    let mut parsed: Multiaddr = address.parse().map_err(|e| bad(format!("{e}")))?;
    if let Some(Protocol::P2p(_)) = parsed.iter().last() {
        parsed.pop();
    }
    match kind(&parsed) {
        Some(_) => Ok(parsed),
        None => Err(bad("neither QUIC over UDP nor TCP at a host".into())),
    }
}

/// Returns whether an address leads through another member.
pub(crate) fn is_relayed(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// IP address, port, and whether it is UDP, of an address without a name.
pub(crate) fn socket(address: &Multiaddr) -> Option<(IpAddr, u16, bool)> {
    let mut parts = address.iter();
    let ip = match parts.next()? {
        Protocol::Ip4(ip) => ip.into(),
        Protocol::Ip6(ip) => ip.into(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Udp(port) => Some((ip, port, true)),
        Protocol::Tcp(port) => Some((ip, port, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_port_can_be_read_back() {
        for host in ["192.0.2.7", "2001:db8::7", "node.example.org"] {
            for transport in [Transport::Quic, Transport::Tcp, Transport::Both] {
                for address in transport.addresses(host, 4400) {
                    assert!(
                        parse(&address).is_ok_and(|a| transport.uses(&a)),
                        "{address}"
                    );
                }
            }
        }
        assert_eq!(
            Transport::Both.addresses("::1", 1)[0],
            "/ip6/::1/udp/1/quic-v1"
        );
    }

    #[test]
    fn a_bad_address_is_named_with_an_example() {
        for bad in [
            "node.example.org:4400",
            "/ip4/192.0.2.7/udp/4400",
            "/ip4/1.2.3/tcp/1",
            "",
        ] {
            let error = parse(bad).expect_err("bad").to_string();
            assert!(
                error.starts_with(&format!("{bad:?} is not an address")),
                "{error}"
            );
            assert!(error.contains("/ip4/192.0.2.7/udp/4400/quic-v1"), "{error}");
        }
    }
}
