//! Starts a node.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use protocol::net::Event;
use protocol::{MemberIndex, PublicKey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::handshake::OwnKeySearch;
use super::judging::WaitingFrames;
use super::outside::Awaited;
use super::{Ends, Node};
use crate::asking::{Answerer, Asker};
use crate::behaviour;
use crate::blobs::{BlobServer, Fetcher};
use crate::config::{Config, Contact, MeshError, parse};
use crate::dial::Dialer;
use crate::direct::{self, Reader};
use crate::door::{Crowd, Door};
use crate::gossip;
use crate::guests::Guests;
use crate::hello::OwnHandshake;
use crate::listening::listening;
use crate::members::Members;
use crate::notices::NoticeFilter;
use crate::peers::Peers;
use crate::queue::{QueueReceiver, queue};
use crate::relaying::Slots;
use crate::streams::StreamOpener;
use crate::twins::Twins;

/// How long the operating system may take to give an address.
const LISTEN: Duration = Duration::from_secs(5);

/// The receiving ends of the members' queues.
type Queues = BTreeMap<MemberIndex, QueueReceiver>;

/// Members and their addresses that this node's transport uses.
type DialTargets = Vec<(MemberIndex, Vec<Multiaddr>)>;

impl Node {
    pub(crate) async fn start(
        config: Config,
        key: [u8; 32],
        roster: Vec<Contact>,
    ) -> Result<(Self, Ends), MeshError> {
        let (mut node, mut ends) = Self::new(&config, key, &roster)?;
        ends.addresses = node.listen(&config).await?;
        node.add_external(&roster, &ends.addresses)?;
        Ok((node, ends))
    }

    /// A node that does not listen yet, and the caller's ends, without addresses.
    ///
    /// # Errors
    /// [`MeshError`]: the key, an address of the roster, or the swarm.
    fn new(
        config: &Config,
        secret: [u8; 32],
        roster: &[Contact],
    ) -> Result<(Self, Ends), MeshError> {
        let program = config.program.clone();
        let card = OwnHandshake::new(config.federation, program, &secret, config.instance);
        let key = Keypair::ed25519_from_bytes(secret)
            .map_err(|error| MeshError::Start(format!("its key: {error}")))?;
        let (own, others) = places(roster, own_key(&key)?)?;
        let own_key = OwnKeySearch::new(secret, own.addresses.clone(), config.look);
        let targets = targets(config, &others)?;
        let addressed = targets.iter().filter(|(_, used)| !used.is_empty());
        let addressed = addressed.map(|(member, _)| *member).collect();
        let (door, crowds) = door(&targets);
        let dialer = Dialer::new(own.member, (config.first_retry, config.last_retry), targets);
        let (members, queues) = members(config, roster, &others)?;
        let (commands_in, commands) = mpsc::channel(config.commands.max(1));
        let (events, events_out) = mpsc::channel(config.events.max(1));
        let topic = gossip::topic(config.epoch);
        let peers = Peers::new(others.iter().map(|contact| contact.member));
        let keys = (&key, own_key.probe);
        let (swarm, opener) = behaviour::swarm(config, keys, (&members, door.clone()), &topic)?;
        let (knocks, notices) = NoticeFilter::new();
        let desk = BlobServer::new(events.clone());
        let ends = Ends {
            commands: commands_in,
            events: events_out,
            addresses: Vec::new(),
            peers: peers.clone(),
            asker: Asker {
                members: members.clone(),
                opener: opener.clone(),
            },
            served: desk.served.clone(),
            notices,
        };
        let mut node = Self {
            me: own.member,
            fetcher: Arc::new(fetcher(config, &members, &opener, &events)),
            members,
            swarm,
            transport: config.transport,
            frame: config.frame,
            commands,
            desk: Arc::new(desk),
            events,
            outbox: VecDeque::new(),
            topic,
            seen: Arc::new(Mutex::default()),
            links: BTreeMap::new(),
            readers: BTreeMap::new(),
            dialer,
            peers,
            resolving: JoinSet::new(),
            fetches: JoinSet::new(),
            tasks: JoinSet::new(),
            opener,
            handshakes: JoinSet::new(),
            card,
            rehearsal: config.rehearsal.clone(),
            probes: BTreeMap::new(),
            knocks,
            door,
            crowds,
            guests: Guests::new(config.stay),
            awaited: Awaited::new(),
            twins: Twins::default(),
            witnesses: config.witnesses,
            own_key,
            judging: WaitingFrames::default(),
            dials_only: config.dials_only,
            addressed,
            slots: Slots::default(),
            told: JoinSet::new(),
            answers: Answerer::new(config.tells.clone()),
            muted: BTreeMap::new(),
        };
        node.carry_frames(queues);
        Ok((node, ends))
    }

    /// Starts what writes and what reads the frames of every member.
    fn carry_frames(&mut self, queues: Queues) {
        for (member, frames) in queues {
            let Some(peer) = self.members.at(member) else {
                continue;
            };
            let written = direct::write(peer.clone(), self.opener.clone(), frames);
            self.tasks.spawn(written);
            let (reader, streams) = mpsc::channel(1);
            self.readers.insert(member, reader);
            let reader = Reader {
                member,
                pace: peer.pace.clone(),
                streams,
                events: self.events.clone(),
                seen: self.seen.clone(),
                limit: self.frame,
            };
            self.tasks.spawn(reader.run());
        }
    }

    /// Adds the addresses that a member that relays tells those that it relays to. They do not use
    /// them, but the relay protocol wants an address. A node that nobody can dial has none until
    /// others see it.
    ///
    /// # Errors
    /// [`MeshError`]: an address of the roster that is none.
    fn add_external(&mut self, roster: &[Contact], listened: &[String]) -> Result<(), MeshError> {
        let own = roster.iter().filter(|contact| contact.member == self.me);
        let own = own.flat_map(|contact| &contact.addresses);
        let reachable = own.chain(listened).filter(|_| !self.dials_only);
        for address in reachable {
            self.swarm.add_external_address(parse(address)?);
        }
        Ok(())
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

/// This node's place in the roster, and those of the others.
///
/// # Errors
/// [`MeshError::NotAMember`]: the roster does not have the key.
fn places(roster: &[Contact], own: PublicKey) -> Result<(&Contact, Vec<&Contact>), MeshError> {
    let me = roster.iter().find(|contact| contact.key == own);
    let me = me.ok_or(MeshError::NotAMember(own))?;
    let others = roster.iter().filter(|contact| contact.member != me.member);
    Ok((me, others.collect()))
}

/// Returns where the others can be dialled.
///
/// # Errors
/// [`MeshError`]: an address that is none.
fn targets(config: &Config, others: &[&Contact]) -> Result<DialTargets, MeshError> {
    let mut targets = Vec::new();
    for contact in others {
        let parsed: Result<Vec<_>, _> = contact.addresses.iter().map(|a| parse(a)).collect();
        let used = parsed?
            .into_iter()
            .filter(|a| config.transport.uses(a))
            .collect();
        targets.push((contact.member, used));
    }
    Ok(targets)
}

/// The door, which knows where the others come from, and its reports.
fn door(targets: &[(MemberIndex, Vec<Multiaddr>)]) -> (Door, mpsc::Receiver<Crowd>) {
    let (door, crowds) = Door::new(targets.len());
    for (member, used) in targets {
        used.iter().for_each(|address| door.know(*member, address));
    }
    (door, crowds)
}

/// The other members, and the former ones at positions behind the roster's.
///
/// # Errors
/// [`MeshError`]: a key that is none.
fn members(
    config: &Config,
    roster: &[Contact],
    others: &[&Contact],
) -> Result<(Arc<Members>, Queues), MeshError> {
    let behind = roster.iter().map(|contact| 1 + contact.member.0).max();
    let positions = (behind.unwrap_or(0)..).map(MemberIndex);
    let known = |key: &PublicKey| roster.iter().any(|contact| contact.key == *key);
    let guests = config.guests.iter().copied().filter(|key| !known(key));
    let guests = positions.zip(guests);
    let mut queues = Queues::new();
    let members = Members::new(others, guests, |member| {
        let (sender, receiver) = queue(config.queue, config.queue_bytes);
        queues.insert(member, receiver);
        sender
    })?;
    Ok((Arc::new(members), queues))
}

fn fetcher(
    config: &Config,
    members: &Arc<Members>,
    opener: &StreamOpener,
    events: &mpsc::Sender<Event>,
) -> Fetcher {
    Fetcher {
        members: members.clone(),
        opener: opener.clone(),
        events: events.clone(),
        patience: config.patience,
        resume: config.resume,
        spool: config.spool.clone(),
        unfinished: Mutex::default(),
    }
}

fn own_key(key: &Keypair) -> Result<PublicKey, MeshError> {
    let key = key.public().try_into_ed25519();
    let key = key.map_err(|error| MeshError::Start(format!("its key: {error}")))?;
    Ok(PublicKey(key.to_bytes()))
}
