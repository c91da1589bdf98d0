//! Starts a node.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Multiaddr;
use libp2p::swarm::SwarmEvent;
use protocol::PublicKey;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::judging::Judging;
use super::{Ends, Node};
use crate::behaviour;
use crate::blobs::{Desk, Fetcher};
use crate::config::{Config, Contact, MeshError, parse, socket};
use crate::dial::Dialer;
use crate::direct::{self, Reader};
use crate::gossip;
use crate::hello::Card;
use crate::knocks::Knocks;
use crate::members::Members;
use crate::peers::Peers;
use crate::queue::queue;
use crate::relaying::Slots;

/// How long the operating system may take to give an address.
const LISTEN: Duration = Duration::from_secs(5);

impl Node {
    pub(crate) async fn start(
        config: Config,
        key: [u8; 32],
        roster: Vec<Contact>,
    ) -> Result<(Self, Ends), MeshError> {
        let card = Card::new(config.federation, config.program.clone(), &key);
        let key = Keypair::ed25519_from_bytes(key)
            .map_err(|error| MeshError::Start(format!("its key: {error}")))?;
        let own = own_key(&key)?;
        let me = roster.iter().find(|contact| contact.key == own);
        let me = me.ok_or(MeshError::NotAMember(own))?.member;
        let others: Vec<_> = roster
            .iter()
            .filter(|contact| contact.member != me)
            .collect();

        let mut targets = Vec::new();
        for contact in &others {
            let parsed: Result<Vec<_>, _> = contact.addresses.iter().map(|a| parse(a)).collect();
            let used = parsed?
                .into_iter()
                .filter(|a| config.transport.uses(a))
                .collect();
            targets.push((contact.member, used));
        }
        let addressed = targets
            .iter()
            .filter(|(_, used): &&(_, Vec<_>)| !used.is_empty());
        let addressed = addressed.map(|(member, _)| *member).collect();
        let dialer = Dialer::new(me, (config.first_retry, config.last_retry), targets);

        let mut queues = BTreeMap::new();
        let members = Arc::new(Members::new(&others, |member| {
            let (sender, receiver) = queue(config.queue, config.queue_bytes);
            queues.insert(member, receiver);
            sender
        })?);
        let (commands_in, commands) = mpsc::channel(config.commands.max(1));
        let (events, events_out) = mpsc::channel(config.events.max(1));
        let topic = gossip::topic(config.federation);
        let peers = Peers::new(others.iter().map(|contact| contact.member));
        let (swarm, opener) = behaviour::swarm(&config, &key, &members, &topic)?;

        let seen = Arc::new(Mutex::default());
        let (mut tasks, mut readers) = (JoinSet::new(), BTreeMap::new());
        for (member, frames) in queues {
            let Some(peer) = members.at(member) else {
                continue;
            };
            tasks.spawn(direct::write(peer.clone(), opener.clone(), frames));
            let (reader, streams) = mpsc::channel(1);
            readers.insert(member, reader);
            let reader = Reader {
                member,
                pace: peer.pace.clone(),
                streams,
                events: events.clone(),
                seen: seen.clone(),
                limit: config.frame,
            };
            tasks.spawn(reader.run());
        }
        let fetcher = Fetcher {
            members: members.clone(),
            opener: opener.clone(),
            events: events.clone(),
            patience: config.patience,
            resume: config.resume,
            spool: config.spool.clone(),
            unfinished: Mutex::default(),
        };
        let (knocks, notices) = Knocks::new();
        let desk = Desk::new(events.clone());
        let served = desk.served.clone();
        let mut node = Self {
            me,
            members,
            swarm,
            transport: config.transport,
            frame: config.frame,
            commands,
            desk: Arc::new(desk),
            events,
            outbox: VecDeque::new(),
            topic,
            seen,
            links: BTreeMap::new(),
            readers,
            dialer,
            peers: peers.clone(),
            resolving: JoinSet::new(),
            fetcher: Arc::new(fetcher),
            fetches: JoinSet::new(),
            tasks,
            opener,
            greetings: JoinSet::new(),
            card,
            probes: BTreeMap::new(),
            knocks,
            judging: Judging::default(),
            dials_only: config.dials_only,
            addressed,
            slots: Slots::default(),
            told: JoinSet::new(),
            muted: BTreeMap::new(),
        };
        let addresses = node.listen(&config).await?;
        // What a member that relays tells those that it relays to. They do not use it, but the relay
        // protocol wants an address. A node that nobody can dial has none until others see it.
        let own = roster.iter().filter(|contact| contact.member == me);
        let own = own.flat_map(|contact| &contact.addresses);
        let reachable = own.chain(&addresses).filter(|_| !config.dials_only);
        for address in reachable {
            node.swarm.add_external_address(parse(address)?);
        }
        let ends = Ends {
            commands: commands_in,
            events: events_out,
            addresses,
            peers,
            served,
            notices,
        };
        Ok((node, ends))
    }

    /// Listens at every address. Returns the actual addresses, ports included.
    async fn listen(&mut self, config: &Config) -> Result<Vec<String>, MeshError> {
        let mut waiting = Vec::new();
        for address in &config.listen {
            let parsed = parse(address)?;
            let (address, transport) = (address.clone(), config.transport);
            if !transport.uses(&parsed) {
                return Err(MeshError::Transport { address, transport });
            }
            if let Err(why) = listening(&parsed) {
                return Err(MeshError::Listen { address, why });
            }
            match self.swarm.listen_on(parsed) {
                Ok(listener) => waiting.push((listener, address)),
                Err(error) => {
                    let why = error.to_string();
                    return Err(MeshError::Listen { address, why });
                }
            }
        }
        let mut addresses = Vec::new();
        while let Some((_, address)) = waiting.first().cloned() {
            let event = timeout(LISTEN, self.swarm.select_next_some()).await;
            match event {
                Err(_) => {
                    let why = "the system gives no address: is its network up?".into();
                    return Err(MeshError::Listen { address, why });
                }
                Ok(SwarmEvent::NewListenAddr {
                    listener_id,
                    address,
                }) => {
                    waiting.retain(|(waiting, ..)| *waiting != listener_id);
                    addresses.push(address.to_string());
                }
                Ok(SwarmEvent::ListenerClosed {
                    listener_id,
                    reason: Err(error),
                    ..
                }) if waiting.iter().any(|(waiting, ..)| *waiting == listener_id) => {
                    let why = error.to_string();
                    return Err(MeshError::Listen { address, why });
                }
                Ok(event) => self.swarm_event(event),
            }
        }
        Ok(addresses)
    }
}

fn own_key(key: &Keypair) -> Result<PublicKey, MeshError> {
    let key = key.public().try_into_ed25519();
    let key = key.map_err(|error| MeshError::Start(format!("its key: {error}")))?;
    Ok(PublicKey(key.to_bytes()))
}

/// Checks that a node can listen at an address. libp2p's own errors hide the system's message, and it
/// shares a TCP port with any process that allows it.
pub(crate) fn listening(address: &Multiaddr) -> Result<(), String> {
    let Some((ip, port, udp)) = socket(address) else {
        let why = "a node listens at an IP address, not at a name: /ip4/0.0.0.0/... is all of them";
        return Err(why.into());
    };
    let bound = match udp {
        true => std::net::UdpSocket::bind((ip, port)).map(drop),
        false => std::net::TcpListener::bind((ip, port)).map(drop),
    };
    let Err(error) = bound else { return Ok(()) };
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses this port; stop it, or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; /ip4/0.0.0.0/... listens at all it has"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 need privileges; choose a higher one",
        _ => return Err(error.to_string()),
    };
    Err(format!("{error}: {advice}"))
}
