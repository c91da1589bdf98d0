//! The loop of one node: commands of the silo, events of the swarm, and what is due.
//!
//! Frames and blobs are moved by tasks of their own, so that a large one does not hold up the loop;
//! they wait for the silo's channel by themselves. What the loop itself has to tell the silo waits
//! in `outbox`, and while it does the swarm is not polled: its connections then stop reading.

mod heard;
mod judging;
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
use libp2p::{PeerId, Stream, Swarm};
use protocol::net::{Command, Event};
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::behaviour::Behaviour;
use crate::blobs::{Desk, Fetcher};
use crate::config::Transport;
use crate::dial::{self, Dialer, Resolved};
use crate::direct::Said;
use crate::gossip::{self, Seen, Way};
use crate::members::{Members, Peer};

use judging::Judging;

/// Fetches that are under way at the same time; more are answered with `Missing`.
const FETCHES: usize = 256;
/// How long the end of a mesh waits for its connections to be closed in order.
const GOODBYE: Duration = Duration::from_millis(500);
/// How long it waits before it closes them.
const QUIET: Duration = Duration::from_millis(100);
/// How often it is looked whether a port is free.
const PORT: Duration = Duration::from_millis(10);

/// The silo's ends.
pub(crate) struct Ends {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) addresses: Vec<String>,
    pub(crate) served: Arc<AtomicU64>,
}

/// What is known of a connected member.
#[derive(Debug, Default)]
struct Link {
    /// Its round trip, smoothed, and as the silo knows it.
    round_trip: Option<(Duration, Duration)>,
    /// Pings in a row that were not answered.
    silent: u32,
    /// There is another connection than before: who was told that the member can be reached is told
    /// again, because it may be another process that knows of nothing.
    renewed: bool,
}

pub(crate) struct Node {
    me: MemberIndex,
    members: Arc<Members>,
    swarm: Swarm<Behaviour>,
    transport: Transport,
    /// Most bytes of a frame.
    frame: usize,
    commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<Event>,
    outbox: VecDeque<Event>,
    topic: IdentTopic,
    seen: Arc<Mutex<Seen>>,
    links: BTreeMap<MemberIndex, Link>,
    /// Streams of frames that members opened, on their way to the readers.
    readers: BTreeMap<MemberIndex, mpsc::Sender<Stream>>,
    dialer: Dialer,
    resolving: JoinSet<(MemberIndex, Resolved)>,
    desk: Arc<Desk>,
    fetcher: Arc<Fetcher>,
    fetches: JoinSet<()>,
    /// Readers and writers of frames, and blobs being served.
    tasks: JoinSet<()>,
    /// Strangers that were spoken of already.
    strangers: BTreeSet<PeerId>,
    judging: Judging,
    /// Members whose gossip is not heard, and until when.
    muted: BTreeMap<MemberIndex, Instant>,
}

impl Node {
    /// Until the silo drops an end.
    #[tracing::instrument(name = "mesh", level = "error", skip_all, fields(me = %self.me))]
    pub(crate) async fn run(mut self) {
        let events = self.events.clone();
        loop {
            let due = self.dialer.next();
            let heard_again = self.muted.values().min().copied();
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                () = events.closed() => break,
                event = self.swarm.select_next_some(), if self.outbox.is_empty() => {
                    self.hear(event);
                }
                Ok(room) = events.reserve(), if !self.outbox.is_empty() => {
                    if let Some(event) = self.outbox.pop_front() {
                        room.send(event);
                    }
                }
                () = at(due) => {
                    for (member, addresses) in self.dialer.due() {
                        self.resolving.spawn(async move {
                            (member, dial::resolve(addresses).await)
                        });
                    }
                }
                () = at(heard_again) => self.unmute(),
                Some(Ok((member, resolved))) = self.resolving.join_next() => {
                    self.dial(member, resolved);
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
        // QUIC says goodbye in a single packet. In the middle of a blob it would be one too many for
        // the reader's socket, so what is under way gets a moment to arrive.
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
        let ports: Vec<_> = self.swarm.listeners().filter_map(start::socket).collect();
        drop(self);
        // QUIC keeps its socket a little longer, in a task of its own that nobody can wait for.
        let _ = timeout(GOODBYE * 4, async {
            for (ip, port, udp) in ports {
                while udp && std::net::UdpSocket::bind((ip, port)).is_err() {
                    sleep(PORT).await;
                }
            }
        })
        .await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Send { to, frame } => self.send(to, frame),
            Command::Publish { frame } => self.publish(frame),
            Command::Serve { ticket, blobs } => self.desk.answer(ticket, blobs),
            Command::Judge { ticket, verdict } => self.judged(ticket, verdict),
            Command::Mute { peer, span } => {
                if let Some(peer) = self.members.at(peer).cloned() {
                    peer.pace.mute(span);
                    self.shut(&peer);
                }
            }
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
            Some(peer) => offer(peer, Said::Sent, frame),
            None => tracing::warn!(member = %to, "no such other member: a frame to it is lost"),
        }
    }

    fn publish(&mut self, frame: Bytes) {
        if !self.fits(&frame) {
            return;
        }
        let way = self
            .seen
            .lock()
            .expect("nobody panics while holding it")
            .publish(Hash::of(&frame));
        let small = frame.len() <= gossip::LARGEST;
        let gossiped = match way {
            Way::Done => return,
            Way::Spread if small => self.gossip(&frame),
            Way::Spread | Way::Again => false,
        };
        // Members that do not yet listen to gossip get it directly, like all where it is too large
        // or was said before.
        let topic = self.topic.hash();
        let listening: BTreeSet<PeerId> = match gossiped {
            true => {
                let peers = self.swarm.behaviour().gossip.all_peers();
                peers
                    .filter(|(_, topics)| topics.contains(&&topic))
                    .map(|(id, _)| *id)
                    .collect()
            }
            false => BTreeSet::new(),
        };
        for peer in self
            .members
            .all()
            .filter(|peer| !listening.contains(&peer.id))
        {
            offer(peer, Said::Published, frame.clone());
        }
    }

    /// Whether gossip took it.
    fn gossip(&mut self, frame: &Bytes) -> bool {
        match self
            .swarm
            .behaviour_mut()
            .gossip
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
            tracing::error!(
                bytes,
                limit,
                "a frame is larger than frames may be, and is lost"
            );
        }
        fits
    }

    fn dial(&mut self, member: MemberIndex, resolved: Resolved) {
        let Resolved {
            addresses,
            problems,
        } = resolved;
        let Some(peer) = self.members.at(member).filter(|peer| !peer.is_connected()) else {
            return;
        };
        if addresses.is_empty() {
            return self.dialer.failed(member, problems.join("; "));
        }
        if !problems.is_empty() {
            tracing::debug!(%member, "some addresses cannot be used: {}", problems.join("; "));
        }
        let dial = DialOpts::peer_id(peer.id)
            .condition(PeerCondition::DisconnectedAndNotDialing)
            .override_dial_concurrency_factor(NonZeroU8::MIN)
            .addresses(addresses)
            .build();
        if let Err(error) = self.swarm.dial(dial) {
            self.dialer.failed(member, dial::explain(&error));
        }
    }
}

fn offer(peer: &Peer, said: Said, frame: Bytes) {
    let member = peer.member;
    if !peer.is_connected() && peer.met() > 0 {
        tracing::debug!(%member, "a frame is lost: the member is not connected");
    } else if !peer.line.offer(said, frame) {
        tracing::debug!(%member, "a frame is lost: too much waits for the member");
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
