//! The state of gossip: what was published, when it first reaches each silo, and which publications
//! a silo has not judged yet. A silo forwards only what it accepted.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use protocol::Hash;
use protocol::net::JUDGED;
use tokio::time::Instant;

/// Publications that are remembered.
const SEEN: usize = 4096;

/// The latest publications.
pub(super) struct Gossip {
    silos: usize,
    seen: BTreeMap<Hash, FirstArrivals>,
    order: VecDeque<Hash>,
}

/// Times at which one publication first reaches each silo; its author has it from the beginning.
pub(super) struct FirstArrivals {
    at: Vec<Option<Instant>>,
    /// Silo that published it last.
    author: Option<usize>,
}

impl FirstArrivals {
    /// Returns when it reaches a silo, if it does.
    pub(super) fn at(&self, silo: usize) -> Option<Instant> {
        self.at[silo]
    }

    /// Returns who published it last.
    pub(super) fn author(&self) -> Option<usize> {
        self.author
    }

    /// A silo publishes it.
    pub(super) fn published(&mut self, by: usize, at: Instant) {
        self.author = Some(by);
        self.first(by, at);
    }

    /// Records that a copy reaches a silo at `at`. True if that is its first.
    pub(super) fn first(&mut self, silo: usize, at: Instant) -> bool {
        let is = self.at[silo].is_none_or(|known| known > at);
        if is {
            self.at[silo] = Some(at);
        }
        is
    }
}

/// Publications that were delivered and not judged yet.
#[derive(Default)]
pub(super) struct UnjudgedFrames {
    last: u64,
    waiting: BTreeMap<u64, (usize, Hash, Bytes, Instant)>,
}

impl UnjudgedFrames {
    /// Issues the ticket under which a silo judges a publication that is delivered to it.
    pub(super) fn ask(&mut self, silo: usize, id: Hash, frame: &Bytes) -> u64 {
        let now = Instant::now();
        while let Some(oldest) = self.waiting.first_entry()
            && now - oldest.get().3 > JUDGED
        {
            oldest.remove();
        }
        if self.waiting.len() >= SEEN {
            self.waiting.pop_first();
        }
        self.last += 1;
        self.waiting
            .insert(self.last, (silo, id, frame.clone(), now));
        self.last
    }

    /// The publication that a ticket of that silo stands for, unless the answer comes too late.
    pub(super) fn answer(&mut self, ticket: u64, by: usize) -> Option<(Hash, Bytes)> {
        let asked = self
            .waiting
            .get(&ticket)
            .is_some_and(|(silo, ..)| *silo == by);
        let (_, id, frame, since) = asked.then(|| self.waiting.remove(&ticket)).flatten()?;
        (since.elapsed() <= JUDGED).then_some((id, frame))
    }
}

impl Gossip {
    /// An empty state for this number of silos.
    pub(super) fn new(silos: usize) -> Self {
        Self {
            silos,
            seen: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Takes out what is known of a publication, to be [put](Self::put) back.
    pub(super) fn take(&mut self, id: &Hash) -> FirstArrivals {
        let known = self.seen.get_mut(id).map(|seen| FirstArrivals {
            at: std::mem::take(&mut seen.at),
            author: seen.author,
        });
        known.unwrap_or_else(|| FirstArrivals {
            at: vec![None; self.silos],
            author: None,
        })
    }

    pub(super) fn put(&mut self, id: Hash, seen: FirstArrivals) {
        if self.seen.insert(id, seen).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
    }

    /// Returns when a publication reaches a silo, if that is still known.
    pub(super) fn at(&self, id: &Hash, silo: usize) -> Option<Instant> {
        self.seen.get(id)?.at(silo)
    }

    /// A silo restarted: it has received nothing yet.
    pub(super) fn forget(&mut self, silo: usize) {
        self.seen.values_mut().for_each(|seen| seen.at[silo] = None);
    }

    /// A publication did not reach a silo after all.
    pub(super) fn lost(&mut self, id: &Hash, silo: usize) {
        if let Some(seen) = self.seen.get_mut(id) {
            seen.at[silo] = None;
        }
    }
}
