//! The guarantees of every network between silos. Each is a function over a [`Lab`], which makes
//! small networks of one kind; `main.rs` runs all of them on every kind.

mod blobs;
mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use mesh::{Acceptance, BlobRequest, Command, Event};
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

pub(crate) use blobs::*;
pub(crate) use messages::*;

/// Time within which every expected event must occur.
const PATIENCE: Duration = Duration::from_secs(30);

/// A member's ends of the network.
#[derive(Debug)]
pub(crate) struct MemberEnds {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: mpsc::Receiver<Event>,
}

/// Makes and changes one small network.
pub(crate) trait Lab: Sized {
    /// `true` if frames of one member to another arrive in the order in which they were sent.
    const ORDERED: bool;

    /// `true` if every frame arrives exactly once while no member stops.
    const FAITHFUL: bool;

    /// Runs a test on the clock of this kind of network.
    fn run(test: impl Future<Output = ()>);

    /// A network of this number of members, none of them started.
    async fn new(members: u16) -> Self;

    /// Starts or restarts a member, with a queue for this number of events.
    async fn start(&mut self, member: u16, events: usize) -> MemberEnds;

    /// Three running members, of which the first and the last have no link.
    async fn line() -> (Self, Vec<MemberEnds>);

    /// Stops a member, and waits for its end.
    async fn stop(&mut self, member: u16, ends: MemberEnds);
}

const ROOM: usize = 256;

impl MemberEnds {
    /// The next event for which `pick` returns a value. Other events are skipped.
    pub(crate) async fn next<T>(&mut self, mut pick: impl FnMut(Event) -> Option<T>) -> T {
        let found = async {
            loop {
                let event = self.events.recv().await.expect("the network is running");
                if let Some(found) = pick(event) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, found)
            .await
            .expect("the expected event occurs in time")
    }

    pub(crate) async fn say(&self, command: Command) {
        self.commands.send(command).await.unwrap();
    }

    pub(crate) async fn up(&mut self, peer: u16) -> Duration {
        self.next(|event| match event {
            Event::Up {
                peer: up,
                round_trip,
            } if up.0 == peer => Some(round_trip),
            _ => None,
        })
        .await
    }

    /// Waits until all of these members can be reached.
    pub(crate) async fn all_up(&mut self, members: impl IntoIterator<Item = u16>) {
        let mut missing: BTreeSet<u16> = members.into_iter().collect();
        while !missing.is_empty() {
            let up = self.next(|event| match event {
                Event::Up { peer, .. } => Some(peer.0),
                _ => None,
            });
            missing.remove(&up.await);
        }
    }

    /// The next frame. It is accepted, so that gossip passes it on.
    pub(crate) async fn frame(&mut self) -> (u16, Bytes) {
        let (from, frame, ticket) = self.unjudged().await;
        self.judge(ticket, Acceptance::Accept).await;
        (from, frame)
    }

    /// The next frame, with its ticket.
    async fn unjudged(&mut self) -> (u16, Bytes, Option<u64>) {
        self.next(|event| match event {
            Event::Received {
                from,
                frame,
                ticket,
            } => Some((from.0, frame, ticket)),
            _ => None,
        })
        .await
    }

    async fn judge(&self, ticket: Option<u64>, verdict: Acceptance) {
        if let Some(ticket) = ticket {
            // If the queue is full, others get the frame from another member.
            let _ = self.commands.try_send(Command::Judge { ticket, verdict });
        }
    }

    /// Fetches a blob from these members.
    async fn fetch(&self, hash: Hash, limit: u64, from: &[u16]) {
        let from = from.iter().map(|&member| MemberIndex(member)).collect();
        let blobs = vec![BlobRequest { hash, limit }];
        self.say(Command::Fetch { blobs, from }).await;
    }

    /// Answers the next request for blobs, and returns the member that sent it.
    async fn serve_once(&mut self, give: impl Fn(u16, Hash) -> Option<Bytes>) -> u16 {
        let (by, blobs, ticket) = self
            .next(|event| match event {
                Event::Wanted { by, blobs, ticket } => Some((by, blobs, ticket)),
                _ => None,
            })
            .await;
        let blobs = blobs.into_iter().map(|hash| give(by.0, hash)).collect();
        self.say(Command::Serve { ticket, blobs }).await;
        by.0
    }

    /// Answers requests for blobs, without end.
    async fn serve(&mut self, give: impl Fn(u16, Hash) -> Option<Bytes>) -> Infallible {
        loop {
            self.serve_once(&give).await;
        }
    }

    /// Waits for the answers to a fetch of this number of blobs. Returns the delivered ones by hash.
    async fn fetched(&mut self, blobs: usize) -> BTreeMap<Hash, Bytes> {
        let (mut came, mut answers) = (BTreeMap::new(), 0);
        while answers < blobs {
            let (here, missing) = self
                .next(|event| match event {
                    Event::Fetched { blobs } => Some((blobs, 0)),
                    Event::Missing { blobs } => Some((Vec::new(), blobs.len())),
                    _ => None,
                })
                .await;
            answers += here.len() + missing;
            came.extend(here);
        }
        assert_eq!(answers, blobs, "every blob is answered once");
        came
    }

    /// The answer to a fetch of one blob.
    async fn fetched_one(&mut self) -> Option<Bytes> {
        self.fetched(1).await.pop_first().map(|(_, blob)| blob)
    }
}

/// A network whose members all reach each other.
pub(crate) async fn whole<L: Lab>(members: u16, events: usize) -> (L, Vec<MemberEnds>) {
    let mut lab = L::new(members).await;
    let mut all = Vec::new();
    for member in 0..members {
        all.push(lab.start(member, events).await);
    }
    for (me, ends) in (0..).zip(&mut all) {
        ends.all_up((0..members).filter(|&other| other != me)).await;
    }
    (lab, all)
}

fn bytes(length: usize, seed: u64) -> Bytes {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    bytes.into()
}

fn numbered(number: u32, length: usize) -> Bytes {
    let mut frame = number.to_be_bytes().to_vec();
    frame.resize(length.max(4), number as u8);
    frame.into()
}
