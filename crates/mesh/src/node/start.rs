//! Starts a node.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use protocol::{MemberIndex, PublicKey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::greeting::OwnKey;
use super::judging::Judging;
use super::outside::Awaited;
use super::{Ends, Node};
use crate::asking::{Asker, Told};
use crate::behaviour;
use crate::blobs::{Desk, Fetcher};
use crate::config::{Config, Contact, MeshError, parse};
use crate::dial::Dialer;
use crate::direct::{self, Reader};
use crate::door::Door;
use crate::gossip;
use crate::guests::Guests;
use crate::hello::Card;
use crate::knocks::Knocks;
use crate::listening::listening;
use crate::members::Members;
use crate::peers::Peers;
use crate::queue::queue;
use crate::relaying::Slots;
use crate::twins::Twins;

/// How long the operating system may take to give an address.
const LISTEN: Duration = Duration::from_secs(5);

impl Node {
    pub(crate) async fn start(
        config: Config,
        key: [u8; 32],
        roster: Vec<Contact>,
    ) -> Result<(Self, Ends), MeshError> {
        let (secret, instance) = (key, config.instance);
        let card = Card::new(config.federation, config.program.clone(), &key, instance);
        let key = Keypair::ed25519_from_bytes(key)
            .map_err(|error| MeshError::Start(format!("its key: {error}")))?;
        let own = own_key(&key)?;
        let me = roster.iter().find(|contact| contact.key == own);
        let me = me.ok_or(MeshError::NotAMember(own))?;
        let own_key = OwnKey::new(secret, me.addresses.clone(), config.look);
        let me = me.member;
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
        let (door, crowds) = Door::new(others.len());
        for (member, used) in &targets {
            used.iter().for_each(|address| door.know(*member, address));
        }
        let dialer = Dialer::new(me, (config.first_retry, config.last_retry), targets);

        let behind = roster.iter().map(|contact| 1 + contact.member.0).max();
        let positions = (behind.unwrap_or(0)..).map(MemberIndex);
        let known = |key: &PublicKey| roster.iter().any(|contact| contact.key == *key);
        let guests = config.guests.iter().copied().filter(|key| !known(key));
        let guests = positions.zip(guests);
        let mut queues = BTreeMap::new();
        let members = Arc::new(Members::new(&others, guests, |member| {
            let (sender, receiver) = queue(config.queue, config.queue_bytes);
            queues.insert(member, receiver);
            sender
        })?);
        let (commands_in, commands) = mpsc::channel(config.commands.max(1));
        let (events, events_out) = mpsc::channel(config.events.max(1));
        let topic = gossip::topic(config.epoch);
        let peers = Peers::new(others.iter().map(|contact| contact.member));
        let keys = (&key, own_key.probe);
        let (swarm, opener) = behaviour::swarm(&config, keys, (&members, door.clone()), &topic)?;

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
        let asker = Asker {
            members: members.clone(),
            opener: opener.clone(),
        };
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
            door,
            crowds,
            guests: Guests::new(config.stay),
            awaited: Awaited::new(),
            twins: Twins::default(),
            witnesses: config.witnesses,
            own_key,
            judging: Judging::default(),
            dials_only: config.dials_only,
            addressed,
            slots: Slots::default(),
            told: JoinSet::new(),
            answers: Told::new(config.tells.clone()),
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
            asker,
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
