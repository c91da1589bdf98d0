//! Transfers of blobs: requested from one holder after another, verified by the receiver.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use protocol::net::{BlobRequest, Event};
use protocol::{Hash, MemberIndex};
use silo::Checks;
use tokio::time::Instant;

use crate::pool::{Threads, wait};

use super::{Core, Due};

/// Time that a holder may take to answer before the next one is asked.
const ANSWER: Duration = Duration::from_secs(10);

/// Blobs up to this total size, in bytes, are hashed on the runtime's thread: handing them to
/// another costs as much.
const INLINE_BYTES: usize = 16 << 10;

/// Bytes that one job hashes, about: many small blobs or one large one, so that all threads end at about
/// the same time.
const JOB_BYTES: usize = 1 << 20;

/// Hashes that are known, or under computation.
enum VerifiedHashes {
    Now(Vec<Hash>),
    Soon(Vec<Receiver<Result<Vec<Hash>, String>>>),
}

impl VerifiedHashes {
    /// Starts hashing blobs of `size` bytes in total.
    fn begin(checks: &Arc<Checks>, threads: &Threads, blobs: &[Bytes], size: usize) -> Self {
        if let Some(known) = checks.hashes(blobs) {
            return Self::Now(known);
        }
        if size <= INLINE_BYTES {
            return Self::Now(blobs.iter().map(|blob| checks.hash(blob)).collect());
        }
        let (mut jobs, mut rest) = (Vec::new(), blobs);
        while !rest.is_empty() {
            let mut bytes = 0;
            let more = |blob: &&Bytes| {
                let more = bytes < JOB_BYTES;
                bytes += blob.len();
                more
            };
            let (next, others) = rest.split_at(rest.iter().take_while(more).count());
            let (checks, blobs) = (checks.clone(), next.to_vec());
            let hash = move || blobs.iter().map(|blob| checks.hash(blob)).collect();
            jobs.push(threads.start(hash));
            rest = others;
        }
        Self::Soon(jobs)
    }

    /// Empty where a job panicked.
    fn hashes(self) -> Vec<Hash> {
        match self {
            Self::Now(hashes) => hashes,
            Self::Soon(jobs) => {
                let each: Result<Vec<_>, _> = jobs.iter().map(wait).collect();
                each.map(|hashes| hashes.concat()).unwrap_or_default()
            }
        }
    }
}

/// One silo's request for some blobs, and the holder that is being asked.
struct BlobFetch {
    by: usize,
    restarts: u32,
    blobs: Vec<BlobRequest>,
    holders: VecDeque<MemberIndex>,
    asked: usize,
    asked_restarts: u32,
    transfer: Option<(Vec<Bytes>, VerifiedHashes)>,
}

/// All requests in progress.
#[derive(Default)]
pub(super) struct Fetches {
    tickets: u64,
    open: BTreeMap<u64, BlobFetch>,
}

impl Core {
    pub(super) fn fetch(&mut self, by: usize, blobs: Vec<BlobRequest>, from: Vec<MemberIndex>) {
        let here = |holder: &MemberIndex| holder.at() < self.ports.len();
        let holders = from.into_iter().filter(here).collect();
        self.ask(BlobFetch {
            by,
            restarts: self.ports[by].restarts,
            blobs,
            holders,
            asked: by,
            asked_restarts: 0,
            transfer: None,
        });
    }

    /// Asks the next holder that can be reached.
    fn ask(&mut self, mut fetch: BlobFetch) {
        let by = fetch.by;
        if self.ports[by].restarts != fetch.restarts || fetch.blobs.is_empty() {
            return;
        }
        let blobs: Vec<_> = fetch.blobs.iter().map(|wish| wish.hash).collect();
        let Some(holder) = fetch.holders.pop_front() else {
            return self.deliver(by, Duration::ZERO, Event::Missing { blobs });
        };
        let asked = holder.at();
        if asked == by || !self.connected(by, asked) {
            return self.ask(fetch);
        }
        (fetch.asked, fetch.asked_restarts) = (asked, self.ports[asked].restarts);
        self.fetches.tickets += 1;
        let ticket = self.fetches.tickets;
        self.fetches.open.insert(ticket, fetch);
        let there = self.links.latency(by, asked);
        let by = MemberIndex(by as u16);
        let tamper = self.ports[asked].tamper.as_ref();
        if let Some(answer) = tamper.and_then(|tamper| tamper.answer(by, &blobs)) {
            return self.serve(ticket, answer);
        }
        self.deliver(asked, there, Event::Wanted { by, blobs, ticket });
        self.schedule(2 * there + ANSWER, Due::Refused { ticket });
    }

    /// Takes a holder's answer.
    pub(super) fn serve(&mut self, ticket: u64, blobs: Vec<Option<Bytes>>) {
        let Some(fetch) = self.fetches.open.get_mut(&ticket) else {
            return;
        };
        if fetch.transfer.is_some() {
            return;
        }
        let (by, asked) = (fetch.by, fetch.asked);
        let back = self.links.latency(asked, by);
        let (mut given, mut kept, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut blobs = blobs.into_iter();
        for wish in std::mem::take(&mut fetch.blobs) {
            let fits = |blob: &Bytes| blob.len() as u64 <= wish.limit;
            match blobs.next().flatten().filter(fits) {
                Some(blob) => {
                    kept.push(wish);
                    given.push(blob);
                }
                None => others.push(wish),
            }
        }
        if given.is_empty() {
            fetch.blobs = others;
            return self.schedule(back, Due::Refused { ticket });
        }
        fetch.blobs = kept;
        let rest = BlobFetch {
            by,
            restarts: fetch.restarts,
            blobs: others,
            holders: fetch.holders.clone(),
            asked: by,
            asked_restarts: 0,
            transfer: None,
        };
        let size = given.iter().map(Bytes::len).sum();
        let verified = VerifiedHashes::begin(&self.checks, &self.threads, &given, size);
        fetch.transfer = Some((given, verified));
        let busy = self.links.transfer(size);
        let port = &mut self.ports[asked];
        port.traffic.blobs += size as u64;
        let now = Instant::now();
        let begins = port.free.map_or(now, |free| free.max(now));
        port.free = Some(begins + busy);
        self.schedule(begins + busy + back - now, Due::Arrived { ticket });
        // The next holder may have what this one does not serve.
        self.ask(rest);
    }

    /// The asked holder does not serve the blobs: asks the next one.
    pub(super) fn refused(&mut self, ticket: u64) {
        let under_way = |fetch: &BlobFetch| fetch.transfer.is_some();
        if self.fetches.open.get(&ticket).is_some_and(under_way) {
            return;
        }
        if let Some(fetch) = self.fetches.open.remove(&ticket) {
            self.ask(fetch);
        }
    }

    /// A transfer ends: delivers the blobs whose hashes are right, and asks the next holder for the
    /// others.
    pub(super) fn arrived(&mut self, ticket: u64) {
        let Some(mut fetch) = self.fetches.open.remove(&ticket) else {
            return;
        };
        let Some((blobs, verified)) = fetch.transfer.take() else {
            return;
        };
        let unbroken = self.connected(fetch.by, fetch.asked)
            && self.ports[fetch.by].restarts == fetch.restarts
            && self.ports[fetch.asked].restarts == fetch.asked_restarts;
        if unbroken {
            let mut good = Vec::new();
            let mut hashes = verified.hashes().into_iter().zip(blobs);
            fetch.blobs.retain(|wish| match hashes.next() {
                Some((hash, blob)) if hash == wish.hash => {
                    good.push((hash, blob));
                    false
                }
                _ => true,
            });
            if !good.is_empty() {
                self.deliver(fetch.by, Duration::ZERO, Event::Fetched { blobs: good });
            }
        }
        self.ask(fetch);
    }
}
