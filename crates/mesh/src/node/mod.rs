//! The event loop of one node: commands of the silo, events of the swarm, timers.
//!
//! Frames and blobs are moved by tasks of their own, so that a large one does not hold up the loop;
//! they wait for the silo's channel by themselves. Events of the loop itself wait in `outbox` for the
//! silo, and meanwhile the swarm is not polled, so that its connections stop reading.

mod events;
mod handshake;
mod judging;
mod outside;
mod relays;
mod start;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::pending;
use std::num::NonZeroU8;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use libp2p::gossipsub::{IdentTopic, PublishError};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, PeerId, Stream, Swarm};
use protocol::net::{Command, Event};
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::asking::{Answerer, Asker};
use crate::behaviour::MeshBehaviour;
use crate::blobs::{BlobServer, Fetcher};
use crate::config::{Transport, is_relayed, socket};
use crate::dial::{self, Dialer, Resolved};
use crate::door::{Crowd, Door};
use crate::gossip::{self, PublishBy, PublishedFrames};
use crate::guests::Guests;
use crate::hello::{Greeted, OwnHandshake};
use crate::members::{Members, Peer};
use crate::notices::{Notice, NoticeFilter};
use crate::peers::Peers;
use crate::queue::Addressed;
use crate::rehearsal::Rehearsal;
use crate::relaying::Slots;
use crate::streams::StreamOpener;
use crate::twins::Twins;

use handshake::OwnKeySearch;
use judging::WaitingFrames;
use outside::Awaited;

/// Fetches that are under way at the same time; more are answered with `Missing`.
const FETCHES: usize = 256;
/// How long the end of a mesh waits for its connections to be closed in order.
const GOODBYE: Duration = Duration::from_millis(500);
/// How long it waits before it closes them, for blobs under way.
const QUIET: Duration = Duration::from_millis(100);
/// Interval between attempts to bind a port until it is free.
const PORT: Duration = Duration::from_millis(10);

/// The caller's ends of a node.
pub(crate) struct Ends {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) addresses: Vec<String>,
    pub(crate) peers: Peers,
    pub(crate) asker: Asker,
    pub(crate) served: Arc<AtomicU64>,
    pub(crate) notices: mpsc::Receiver<Notice>,
}

/// State of a connected member.
#[derive(Debug, Default)]
struct MemberLink {
    /// Round trip of the connection: smoothed, and as last reported to the silo.
    round_trip: Option<(Duration, Duration)>,
    /// Pings in a row without an answer.
    silent: u32,
    /// True if the connection is new. Then the member is reported up to the silo again, because the
    /// member may have restarted.
    renewed: bool,
    /// True if its program only checks its addresses and leaves again.
    probing: bool,
}

pub(crate) struct Node {
    me: MemberIndex,
    members: Arc<Members>,
    swarm: Swarm<MeshBehaviour>,
    transport: Transport,
    /// Largest frame, in bytes.
    frame: usize,
    commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<Event>,
    outbox: VecDeque<Event>,
    topic: IdentTopic,
    seen: Arc<Mutex<PublishedFrames>>,
    links: BTreeMap<MemberIndex, MemberLink>,
    /// Streams of frames that members opened, on their way to the readers.
    readers: BTreeMap<MemberIndex, mpsc::Sender<Stream>>,
    dialer: Dialer,
    peers: Peers,
    resolving: JoinSet<(MemberIndex, Resolved)>,
    desk: Arc<BlobServer>,
    fetcher: Arc<Fetcher>,
    fetches: JoinSet<()>,
    /// Readers and writers of frames, and blobs being served.
    tasks: JoinSet<()>,
    opener: StreamOpener,
    /// Handshakes under way.
    handshakes: JoinSet<Option<Greeted>>,
    /// What this node says in handshakes.
    card: OwnHandshake,
    /// What it answers to challenges.
    rehearsal: Rehearsal,
    /// The other key with which each member checks addresses while its node runs.
    probes: BTreeMap<MemberIndex, PeerId>,
    knocks: NoticeFilter,
    /// Limits connections that have proved no key.
    door: Door,
    crowds: mpsc::Receiver<Crowd>,
    /// How long former members stay.
    guests: Guests,
    /// Keys whose nodes are reported when they connect.
    awaited: Awaited,
    /// Processes that share a key, and how many members have to say so of this node's.
    twins: Twins,
    witnesses: usize,
    /// What this node does to find another process with its own key.
    own_key: OwnKeySearch,
    judging: WaitingFrames,
    /// True if no other node can dial this one.
    dials_only: bool,
    /// Members with a known address, which may relay.
    addressed: BTreeSet<MemberIndex>,
    /// Slots at members that relay to this node.
    slots: Slots,
    /// Questions for this node's address under way.
    told: JoinSet<Option<Multiaddr>>,
    /// Answers other members that ask how this node is doing.
    answers: Answerer,
    /// Members whose gossip is ignored, and until when.
    muted: BTreeMap<MemberIndex, Instant>,
}

impl Node {
    /// Runs until the silo drops one of its ends.
    #[tracing::instrument(name = "mesh", level = "error", skip_all, fields(me = %self.me))]
    pub(crate) async fn run(mut self) {
        let events = self.events.clone();
        loop {
            let due = self.dialer.next();
            let unmute = self.muted.values().min().copied();
            let slots = self.slots.next();
            let (guests, look) = (self.guests.next(), self.own_key.due());
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => break,
                },
                () = events.closed() => break,
                event = self.swarm.select_next_some(), if self.outbox.is_empty() => {
                    self.swarm_event(event);
                }
                Ok(room) = events.reserve(), if !self.outbox.is_empty() => {
                    if let Some(event) = self.outbox.pop_front() {
                        room.send(event);
                    }
                }
                () = at(due) => {
                    for attempt in self.dialer.due() {
                        self.attempt(attempt);
                    }
                }
                () = at(unmute) => self.unmute(),
                () = at(slots) => self.take_slots(),
                () = at(guests) => self.turn_guests(),
                () = at(look) => self.own_key.look(&self.card),
                Some(found) = self.own_key.found() => self.looked(found),
                Some(Crowd { from, turned_away }) = self.crowds.recv() => {
                    self.knocks.crowd(from, turned_away);
                }
                Some(told) = self.told.join_next() => {
                    if let Ok(Some(address)) = told {
                        self.seen_at(address);
                    }
                }
                Some(Ok((member, resolved))) = self.resolving.join_next() => {
                    self.dial(member, resolved);
                }
                Some(greeted) = self.handshakes.join_next() => {
                    if let Ok(Some(greeted)) = greeted {
                        self.greeted(greeted);
                    }
                }
                Some(_) = self.fetches.join_next() => {}
                Some(_) = self.tasks.join_next() => {}
            }
        }
        self.leave().await;
    }

    /// Closes connections in order, so that peers need not find out by silence, and waits until the
    /// ports are free.
    async fn leave(mut self) {
        self.tasks.abort_all();
        self.fetches.abort_all();
        // QUIC closes a connection with a single packet. In the middle of a blob the reader's socket may
        // drop it, so bytes under way get a moment to arrive.
        let quiet = async {
            loop {
                self.swarm.select_next_some().await;
            }
        };
        let _: Result<(), _> = timeout(QUIET, quiet).await;
        for peer in self.members.all() {
            let _ = self.swarm.disconnect_peer_id(peer.id);
        }
        let _ = timeout(GOODBYE, async {
            while self.swarm.connected_peers().next().is_some() {
                self.swarm.select_next_some().await;
            }
        })
        .await;
        let own = self.swarm.listeners().filter(|own| !is_relayed(own));
        let ports: Vec<_> = own.filter_map(socket).collect();
        drop(self);
        // QUIC keeps its socket a little longer, in a task that cannot be awaited.
        let _ = timeout(GOODBYE * 4, async {
            for (ip, port, udp) in ports {
                while udp && std::net::UdpSocket::bind((ip, port)).is_err() {
                    sleep(PORT).await;
                }
            }
        })
        .await;
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Send { to, frame } => self.send(to, frame),
            Command::Publish { frame } => self.publish(frame),
            Command::Serve { ticket, blobs } => self.desk.answer(ticket, blobs),
            Command::Judge { ticket, verdict } => self.judged(ticket, verdict),
            Command::Mute { peer, span } => {
                if let Some(peer) = self.members.at(peer).cloned() {
                    peer.pace.mute(span);
                    self.mute_gossip(&peer);
                }
            }
            Command::Await { keys } => self.awaits(&keys),
            Command::Fetch { blobs, from } => {
                if self.fetches.len() < FETCHES {
                    self.fetches.spawn(self.fetcher.clone().fetch(blobs, from));
                } else {
                    tracing::warn!("{FETCHES} fetches are under way: one more is refused");
                    let blobs = blobs.into_iter().map(|wish| wish.hash).collect();
                    self.outbox.push_back(Event::Missing { blobs });
                }
            }
        }
    }

    fn send(&mut self, to: MemberIndex, frame: Bytes) {
        if !self.fits(&frame) {
            return;
        }
        match self.members.at(to) {
            Some(peer) => offer(peer, Addressed::Sent, frame),
            None => tracing::warn!(member = %to, "no such other member: a frame to it is lost"),
        }
    }

    fn publish(&mut self, frame: Bytes) {
        if !self.fits(&frame) {
            return;
        }
        let publish_by = self
            .seen
            .lock()
            .expect("no code panics while it holds this lock")
            .publish(Hash::of(&frame));
        let small = frame.len() <= gossip::LARGEST;
        let gossiped = match publish_by {
            PublishBy::Nothing => return,
            PublishBy::Gossip if small => self.gossip(&frame),
            PublishBy::Gossip | PublishBy::Direct => false,
        };
        // Members that are not subscribed yet get it directly. So do all members if it is too large
        // for gossip or repeated.
        let topic = self.topic.hash();
        let subscribed: BTreeSet<PeerId> = if gossiped {
            let peers = self.swarm.behaviour().gossip.inner.all_peers();
            peers
                .filter(|(_, topics)| topics.contains(&&topic))
                .map(|(id, _)| *id)
                .collect()
        } else {
            BTreeSet::new()
        };
        for peer in self
            .members
            .present()
            .filter(|peer| !subscribed.contains(&peer.id))
        {
            offer(peer, Addressed::Published, frame.clone());
        }
    }

    /// Publishes by gossip. False if gossip does not take the frame.
    fn gossip(&mut self, frame: &Bytes) -> bool {
        match self
            .swarm
            .behaviour_mut()
            .gossip
            .inner
            .publish(self.topic.clone(), frame.to_vec())
        {
            Ok(_) => true,
            Err(PublishError::NoPeersSubscribedToTopic) => false,
            Err(error) => {
                tracing::debug!("gossip does not take a frame: {error}; it goes directly");
                false
            }
        }
    }

    fn fits(&self, frame: &Bytes) -> bool {
        let fits = frame.len() <= self.frame;
        if !fits {
            let (bytes, limit) = (frame.len(), self.frame);
            tracing::error!(bytes, limit, "a frame larger than the limit is lost");
        }
        fits
    }

    fn dial(&mut self, member: MemberIndex, resolved: Resolved) {
        let Resolved {
            addresses,
            problems,
        } = resolved;
        let Some(peer) = self.members.at(member).cloned() else {
            return;
        };
        let relayed = self.swarm.behaviour().streams.relayed_by(&peer.id);
        if peer.is_connected() && relayed.is_none() {
            return;
        }
        if relayed.is_some() && addresses.is_empty() {
            return self.dialer.again_directly(member);
        }
        if addresses.is_empty() {
            let why = format!("cannot be found: {}", problems.join("; "));
            return self.failed(member, why, true);
        }
        for address in &addresses {
            self.door.know(member, address);
        }
        if !problems.is_empty() {
            tracing::debug!(%member, "some addresses cannot be used: {}", problems.join("; "));
        }
        let dial = DialOpts::peer_id(peer.id)
            .condition(match relayed {
                Some(_) => PeerCondition::NotDialing,
                None => PeerCondition::DisconnectedAndNotDialing,
            })
            .override_dial_concurrency_factor(NonZeroU8::MIN)
            .addresses(addresses)
            .build();
        let Err(error) = self.swarm.dial(dial) else {
            return;
        };
        if relayed.is_some() {
            self.dialer.again_directly(member);
        } else {
            self.failed(
                member,
                dial::explain(&error),
                dial::is_configuration(&error),
            );
        }
    }

    /// An attempt to reach a member failed. `why` follows the member's name.
    fn failed(&mut self, member: MemberIndex, why: String, configured: bool) {
        self.peers.failed(member, &why);
        self.dialer.failed(member, why, configured);
    }
}

/// Queues a frame for a member.
fn offer(peer: &Peer, addressed: Addressed, frame: Bytes) {
    let member = peer.member;
    if !peer.is_connected() && peer.connections() > 0 {
        tracing::debug!(%member, "a frame is lost: the member is not connected");
    } else if !peer.queue.offer(addressed, frame) {
        tracing::debug!(%member, "a frame is lost: the queue to the member is full");
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
