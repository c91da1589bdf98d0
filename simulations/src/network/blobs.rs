//! Blobs under way: asked for one holder after another, verified by the receiving side.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use protocol::net::Event;
use protocol::{Hash, MemberIndex};
use tokio::time::Instant;

use crate::pool::wait;

use super::core::{Core, Due};

/// A holder that has not answered for that long is given up.
const ANSWER: Duration = Duration::from_secs(10);

/// Blobs up to this size are hashed at once: handing them to another thread costs as much.
const AT_ONCE: usize = 64 << 10;

/// A hash that is known, or being computed.
enum Verified {
    Now(Hash),
    Soon(Receiver<Result<Hash, String>>),
}

impl Verified {
    fn is(self, hash: Hash) -> bool {
        match self {
            Self::Now(is) => is == hash,
            Self::Soon(answer) => wait(&answer) == Ok(hash),
        }
    }
}

/// One silo's wish for one blob, and the holder that is being asked.
struct Fetch {
    by: usize,
    life: u32,
    hash: Hash,
    limit: u64,
    holders: VecDeque<MemberIndex>,
    asked: usize,
    asked_life: u32,
    transfer: Option<(Bytes, Verified)>,
}

/// Everything that is being fetched.
#[derive(Default)]
pub(super) struct Fetches {
    tickets: u64,
    open: BTreeMap<u64, Fetch>,
}

impl Core {
    pub(super) fn fetch(&mut self, by: usize, hash: Hash, limit: u64, from: Vec<MemberIndex>) {
        let life = self.ports[by].life;
        let holders = from.into_iter().filter(|holder| holder.at() < self.ports.len()).collect();
        let fetch =
            Fetch { by, life, hash, limit, holders, asked: by, asked_life: 0, transfer: None };
        self.ask(fetch);
    }

    /// Asks the next holder that can be reached.
    fn ask(&mut self, mut fetch: Fetch) {
        let by = fetch.by;
        if self.ports[by].life != fetch.life {
            return;
        }
        let Some(holder) = fetch.holders.pop_front() else {
            self.deliver(by, Duration::ZERO, Event::Missing { hash: fetch.hash });
            return;
        };
        let asked = holder.at();
        if asked == by || !self.connected(by, asked) {
            return self.ask(fetch);
        }
        (fetch.asked, fetch.asked_life) = (asked, self.ports[asked].life);
        self.fetches.tickets += 1;
        let (ticket, hash) = (self.fetches.tickets, fetch.hash);
        self.fetches.open.insert(ticket, fetch);
        let there = self.links.latency(by, asked);
        if let Some(blob) = self.ports[asked].tamper.as_ref().and_then(|liar| liar.blob(&hash)) {
            return self.serve(ticket, Some(blob));
        }
        let wanted = Event::Wanted { by: MemberIndex(by as u16), hash, ticket };
        self.deliver(asked, there, wanted);
        self.schedule(2 * there + ANSWER, Due::Refused { ticket });
    }

    /// A holder answers.
    pub(super) fn serve(&mut self, ticket: u64, blob: Option<Bytes>) {
        let Some(fetch) = self.fetches.open.get_mut(&ticket) else { return };
        let (by, asked) = (fetch.by, fetch.asked);
        let back = self.links.latency(asked, by);
        match blob.filter(|blob| blob.len() as u64 <= fetch.limit) {
            None => self.schedule(back, Due::Refused { ticket }),
            Some(blob) => {
                let verified = if blob.len() <= AT_ONCE {
                    Verified::Now(self.checks.hash(&blob))
                } else {
                    let (checks, bytes) = (self.checks.clone(), blob.clone());
                    Verified::Soon(self.threads.start(move || checks.hash(&bytes)))
                };
                let busy = self.links.transfer(blob.len());
                let port = &mut self.ports[asked];
                port.traffic.blobs += blob.len() as u64;
                let begins = port.free.map_or(Instant::now(), |free| free.max(Instant::now()));
                port.free = Some(begins + busy);
                fetch.transfer = Some((blob, verified));
                let after = begins + busy + back - Instant::now();
                self.schedule(after, Due::Arrived { ticket });
            }
        }
    }

    /// The asked holder does not give it: the next one.
    pub(super) fn refused(&mut self, ticket: u64) {
        let under_way = |fetch: &Fetch| fetch.transfer.is_some();
        if self.fetches.open.get(&ticket).is_some_and(under_way) {
            return;
        }
        if let Some(fetch) = self.fetches.open.remove(&ticket) {
            self.ask(fetch);
        }
    }

    /// A transfer ends: the blob is what was asked for, or the next holder is asked.
    pub(super) fn arrived(&mut self, ticket: u64) {
        let Some(mut fetch) = self.fetches.open.remove(&ticket) else { return };
        let Some((blob, verified)) = fetch.transfer.take() else { return };
        let unbroken = self.connected(fetch.by, fetch.asked)
            && self.ports[fetch.by].life == fetch.life
            && self.ports[fetch.asked].life == fetch.asked_life;
        let hash = fetch.hash;
        if unbroken && verified.is(hash) {
            self.deliver(fetch.by, Duration::ZERO, Event::Fetched { hash, blob });
        } else {
            self.ask(fetch);
        }
    }
}
