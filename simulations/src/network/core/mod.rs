//! The network's state: messages in flight, connections, and the queue of what happens next.

mod blobs;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::net::{Acceptance, Command, Event};
use protocol::{Hash, MemberIndex, codec};
use silo::Checks;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use crate::pool::Threads;
use crate::recorder::Recorder;
use crate::tamper::Tamper;

use self::blobs::Fetches;
use super::Traffic;
use super::gossip::{FirstArrivals, Gossip, UnjudgedFrames};
use super::model::{LinkConfig, Links};

/// Something that is scheduled to happen.
pub(super) enum Due {
    /// A message arrives.
    Message {
        from: usize,
        to: usize,
        restarts: u32,
        id: Hash,
        frame: Bytes,
        gossip: Option<Instant>,
    },
    /// Anything else reaches a silo.
    Event {
        to: usize,
        restarts: u32,
        event: Event,
    },
    /// Events that did not fit into a silo's inbox are tried again.
    Drain { to: usize },
    /// A holder refuses a request for blobs, or its time to answer is over.
    Refused { ticket: u64 },
    /// A transfer of blobs ends.
    Arrived { ticket: u64 },
}

/// A silo's connection to the network.
#[derive(Default)]
pub(super) struct SiloPort {
    inbox: Option<mpsc::Sender<Event>>,
    /// Counts the restarts of the silo: what was sent to it before the last one is lost.
    pub(super) restarts: u32,
    backlog: VecDeque<Event>,
    /// Time at which its line is free for the next transfer.
    pub(super) free: Option<Instant>,
    pub(super) traffic: Traffic,
    pub(super) tamper: Option<Tamper>,
    /// Peers whose messages it does not read, and until when.
    muted: BTreeMap<usize, Instant>,
}

impl SiloPort {
    pub(super) fn alive(&self) -> bool {
        self.inbox.is_some()
    }
}

pub(super) struct Core {
    links: Links,
    ports: Vec<SiloPort>,
    fetches: Fetches,
    checks: Arc<Checks>,
    threads: Arc<Threads>,
    queue: BTreeMap<(Instant, u64), Due>,
    sequence: u64,
    /// `true` for two silos that know of each other that they run: at the lower one's place times n and the
    /// other's.
    linked: Vec<bool>,
    gossip: Gossip,
    judging: UnjudgedFrames,
    recorder: Recorder,
}

impl Core {
    pub(super) fn new(
        config: LinkConfig,
        n: usize,
        seed: u64,
        recorder: Recorder,
        checks: Arc<Checks>,
        threads: Arc<Threads>,
    ) -> Self {
        Self {
            links: Links::new(config, n, seed),
            ports: (0..n).map(|_| SiloPort::default()).collect(),
            fetches: Fetches::default(),
            checks,
            threads,
            queue: BTreeMap::new(),
            sequence: 0,
            linked: vec![false; n * n],
            gossip: Gossip::new(n),
            judging: UnjudgedFrames::default(),
            recorder,
        }
    }

    /// Processes everything that is due. Returns the time of what comes next.
    pub(super) fn run(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while let Some(first) = self.queue.first_entry() {
            if first.key().0 > now {
                return Some(first.key().0);
            }
            let due = first.remove();
            self.process(due);
        }
        None
    }

    pub(super) fn schedule(&mut self, after: Duration, due: Due) {
        self.sequence += 1;
        self.queue
            .insert((Instant::now() + after, self.sequence), due);
    }

    pub(super) fn connect(&mut self, silo: usize, inbox: mpsc::Sender<Event>) -> u32 {
        let port = &mut self.ports[silo];
        port.inbox = Some(inbox);
        port.muted.clear();
        let restarts = port.restarts;
        self.gossip.forget(silo);
        self.relink_one(silo);
        restarts
    }

    pub(super) fn disconnect(&mut self, silo: usize) {
        let port = &mut self.ports[silo];
        port.restarts += 1;
        port.inbox = None;
        port.backlog.clear();
        port.free = None;
        self.relink_one(silo);
    }

    pub(super) fn cut(&mut self, links: &[(usize, usize)]) {
        self.links.cuts.cut(links);
        self.relink();
    }

    pub(super) fn mend(&mut self, links: &[(usize, usize)]) {
        self.links.cuts.mend(links);
        self.relink();
    }

    pub(super) fn tamper(&mut self, silo: usize, tamper: Tamper) {
        self.ports[silo].tamper = Some(tamper);
    }

    pub(super) fn traffic(&self) -> Vec<Traffic> {
        self.ports.iter().map(|port| port.traffic).collect()
    }

    /// Takes a command of a silo; false if the silo was restarted since.
    pub(super) fn command(&mut self, from: usize, restarts: u32, command: Command) -> bool {
        if self.ports[from].restarts != restarts {
            return false;
        }
        match self.ports[from].tamper.take() {
            None => self.execute(from, command),
            Some(mut tamper) => {
                let instead = tamper.outgoing(command);
                self.ports[from].tamper = Some(tamper);
                instead
                    .into_iter()
                    .for_each(|command| self.execute(from, command));
            }
        }
        true
    }

    /// Returns whether a silo gets a frame that is delivered: a Byzantine one may keep it from itself.
    fn hears(&mut self, to: usize, frame: &Bytes) -> bool {
        let Some(mut tamper) = self.ports[to].tamper.take() else {
            return true;
        };
        let (commands, hears) = tamper.incoming(frame);
        self.ports[to].tamper = Some(tamper);
        commands
            .into_iter()
            .for_each(|command| self.execute(to, command));
        hears
    }

    /// Returns whether two silos run and the link between them is open in both directions.
    pub(super) fn connected(&self, a: usize, b: usize) -> bool {
        let alive = self.ports[a].alive() && self.ports[b].alive();
        alive && self.links.cuts.open(a, b) && self.links.cuts.open(b, a)
    }

    pub(super) fn deliver(&mut self, to: usize, after: Duration, event: Event) {
        let restarts = self.ports[to].restarts;
        self.schedule(
            after,
            Due::Event {
                to,
                restarts,
                event,
            },
        );
    }

    fn execute(&mut self, from: usize, command: Command) {
        if let Command::Send { frame, .. } | Command::Publish { frame } = &command
            && frame.len() > codec::LIMIT
        {
            return;
        }
        match command {
            Command::Send { to, frame } => self.send(from, to.at(), frame),
            Command::Publish { frame } => self.publish(from, &frame),
            Command::Fetch {
                blobs,
                from: holders,
            } => self.fetch(from, blobs, holders),
            Command::Serve { ticket, blobs } => self.serve(ticket, blobs),
            Command::Judge { ticket, verdict } => self.judged(from, ticket, verdict),
            // New members are there as soon as they are proposed.
            Command::Await { keys } => {
                for key in keys {
                    self.deliver(from, Duration::ZERO, Event::Arrived { key });
                }
            }
            Command::Mute { peer, span } => {
                let until = self.ports[from].muted.entry(peer.at());
                let until = until.or_insert_with(Instant::now);
                *until = (*until).max(Instant::now() + span);
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, frame: Bytes) {
        let to_member = Some(MemberIndex(to as u16));
        self.recorder
            .sent(MemberIndex(from as u16), to_member, &frame);
        if to == from || to >= self.ports.len() {
            return;
        }
        self.ports[from].traffic.messages += frame.len() as u64;
        if !self.ports[to].alive() || !self.links.cuts.open(from, to) {
            return;
        }
        let id = Hash::of(&frame);
        for after in self.links.copies(from, to, frame.len()) {
            self.carry(from, to, after, id, &frame, None);
        }
    }

    /// Schedules the arrival of a copy of a message.
    fn carry(
        &mut self,
        from: usize,
        to: usize,
        after: Duration,
        id: Hash,
        frame: &Bytes,
        gossip: Option<Instant>,
    ) {
        let due = Due::Message {
            from,
            to,
            restarts: self.ports[to].restarts,
            id,
            frame: frame.clone(),
            gossip,
        };
        self.schedule(after, due);
    }

    fn publish(&mut self, from: usize, frame: &Bytes) {
        self.recorder.sent(MemberIndex(from as u16), None, frame);
        let (id, now) = (Hash::of(frame), Instant::now());
        let mut seen = self.gossip.take(&id);
        seen.published(from, now);
        for to in (0..self.ports.len()).filter(|&to| to != from) {
            // Most gossip is forwarded to members that have it already.
            if !self.ports[to].alive() || seen.at(to).is_some_and(|at| at <= now) {
                continue;
            }
            if self.links.cuts.open(from, to) {
                self.spread(from, to, id, frame, &mut seen);
            }
        }
        self.gossip.put(id, seen);
    }

    /// A silo has judged a publication: what it accepted is forwarded to those that the author
    /// cannot reach.
    fn judged(&mut self, via: usize, ticket: u64, verdict: Acceptance) {
        let Some((id, frame)) = self.judging.answer(ticket, via) else {
            return;
        };
        if verdict != Acceptance::Accept {
            return;
        }
        let mut seen = self.gossip.take(&id);
        for to in (0..self.ports.len()).filter(|&to| to != via) {
            let cut = |author| author != to && !self.links.cuts.open(author, to);
            let unreached = seen.at(to).is_none() && seen.author().is_some_and(cut);
            if unreached && self.ports[to].alive() && self.links.cuts.open(via, to) {
                self.spread(via, to, id, &frame, &mut seen);
            }
        }
        self.gossip.put(id, seen);
    }

    /// Sends copies of a publication from one silo to another.
    fn spread(
        &mut self,
        from: usize,
        to: usize,
        id: Hash,
        frame: &Bytes,
        seen: &mut FirstArrivals,
    ) {
        let now = Instant::now();
        for after in self.links.copies(from, to, frame.len()) {
            if seen.first(to, now + after) {
                self.ports[from].traffic.messages += frame.len() as u64;
                self.carry(from, to, after, id, frame, Some(now + after));
            }
        }
    }

    fn process(&mut self, due: Due) {
        match due {
            Due::Message {
                from,
                to,
                restarts,
                id,
                frame,
                gossip,
            } => {
                let port = &self.ports[to];
                // Of the copies that several members forward, the earliest counts.
                let seen = gossip.and_then(|at| Some(self.gossip.at(&id, to)? != at));
                let other = seen == Some(true);
                let open = gossip.is_some() || self.links.cuts.open(from, to);
                if port.restarts != restarts || !port.alive() || !open || other {
                    return;
                }
                let now = Instant::now();
                if port.muted.get(&from).is_some_and(|until| *until > now) {
                    // Other members may still forward it.
                    self.gossip.lost(&id, to);
                    return;
                }
                let (from, reader) = (MemberIndex(from as u16), MemberIndex(to as u16));
                self.recorder.delivered(from, reader, &id, &frame);
                if !self.hears(to, &frame) {
                    return;
                }
                let ticket = gossip.map(|_| self.judging.ask(to, id, &frame));
                self.enqueue(
                    to,
                    Event::Received {
                        from,
                        frame,
                        ticket,
                    },
                );
            }
            Due::Event {
                to,
                restarts,
                event,
            } => {
                if self.ports[to].restarts != restarts || !self.ports[to].alive() {
                    return;
                }
                let (kind, what) = match &event {
                    Event::Fetched { blobs } => (4, all(blobs.iter().map(|(hash, _)| hash))),
                    Event::Missing { blobs } => (5, all(blobs.iter())),
                    Event::Wanted { blobs, .. } => (6, all(blobs.iter())),
                    Event::Up { peer, .. } => (7, Hash([peer.0 as u8; 32])),
                    Event::Down { peer } => (8, Hash([peer.0 as u8; 32])),
                    Event::Received { frame, .. } => (9, Hash::of(frame)),
                    Event::Arrived { key } => (10, Hash(key.0)),
                    Event::KeyElsewhere => (11, Hash([0; 32])),
                };
                self.recorder.event(kind, &[MemberIndex(to as u16)], &what);
                self.enqueue(to, event);
            }
            Due::Drain { to } => self.drain(to),
            Due::Refused { ticket } => self.refused(ticket),
            Due::Arrived { ticket } => self.arrived(ticket),
        }
    }

    /// Gives an event to a silo, behind those that wait for it.
    fn enqueue(&mut self, to: usize, event: Event) {
        self.ports[to].backlog.push_back(event);
        if self.ports[to].backlog.len() == 1 {
            self.drain(to);
        }
    }

    fn drain(&mut self, to: usize) {
        let port = &mut self.ports[to];
        let Some(inbox) = &port.inbox else { return };
        while let Some(event) = port.backlog.pop_front() {
            match inbox.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Full(event)) => {
                    port.backlog.push_front(event);
                    self.schedule(Duration::from_millis(1), Due::Drain { to });
                    return;
                }
                // The silo has stopped; it is disconnected soon.
                Err(TrySendError::Closed(_)) => return,
            }
        }
    }

    /// Notifies silos whose connections changed. A link that is cut in one direction goes
    /// unnoticed, as with real connections, which notice only missing answers.
    fn relink(&mut self) {
        (0..self.ports.len()).for_each(|silo| self.relink_one(silo));
    }

    /// Notifies silos whose connections changed, if only connections of `silo` can have changed.
    fn relink_one(&mut self, silo: usize) {
        for other in (0..self.ports.len()).filter(|&other| other != silo) {
            let alive = self.ports[silo].alive() && self.ports[other].alive();
            let open = self.links.cuts.open(silo, other) || self.links.cuts.open(other, silo);
            let is = alive && open;
            let link = silo.min(other) * self.ports.len() + silo.max(other);
            if is == self.linked[link] {
                continue;
            }
            self.linked[link] = is;
            for (a, b) in [(silo, other), (other, silo)] {
                let peer = MemberIndex(b as u16);
                let latency = self.links.latency(a, b);
                let round_trip = 2 * latency;
                let event = if is {
                    Event::Up { peer, round_trip }
                } else {
                    Event::Down { peer }
                };
                self.deliver(a, latency, event);
            }
        }
    }
}

/// One hash for several.
fn all<'a>(hashes: impl Iterator<Item = &'a Hash>) -> Hash {
    let bytes: Vec<u8> = hashes.flat_map(|hash| hash.0).collect();
    Hash::of(&bytes)
}
