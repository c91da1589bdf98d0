//! Which bytes have been published, and when they come to whom first.

use std::collections::{BTreeMap, VecDeque};

use protocol::Hash;
use tokio::time::Instant;

/// Published bytes that are remembered.
const SEEN: usize = 4096;

/// Everything that was published lately.
pub(super) struct Gossip {
    silos: usize,
    seen: BTreeMap<Hash, Seen>,
    order: VecDeque<Hash>,
}

/// When one publication comes to each silo first; its author has it from the beginning.
pub(super) struct Seen(Vec<Option<Instant>>);

impl Seen {
    /// When it comes to a silo, if it does.
    pub(super) fn at(&self, silo: usize) -> Option<Instant> {
        self.0[silo]
    }

    /// Whether a silo will not have had it before `at`; then it will from now on.
    pub(super) fn first(&mut self, silo: usize, at: Instant) -> bool {
        let is = self.0[silo].is_none_or(|known| known > at);
        if is {
            self.0[silo] = Some(at);
        }
        is
    }
}

impl Gossip {
    /// Among so many silos.
    pub(super) fn new(silos: usize) -> Self {
        Self {
            silos,
            seen: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// What is known of a publication, to be [put](Self::put) back.
    pub(super) fn take(&mut self, id: &Hash) -> Seen {
        let known = self
            .seen
            .get_mut(id)
            .map(|seen| Seen(std::mem::take(&mut seen.0)));
        known.unwrap_or_else(|| Seen(vec![None; self.silos]))
    }

    pub(super) fn put(&mut self, id: Hash, seen: Seen) {
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

    /// When a publication comes to a silo, if that is still known.
    pub(super) fn at(&self, id: &Hash, silo: usize) -> Option<Instant> {
        self.seen.get(id)?.at(silo)
    }

    /// A silo begins anew: it has had nothing.
    pub(super) fn forget(&mut self, silo: usize) {
        self.seen.values_mut().for_each(|seen| seen.0[silo] = None);
    }
}
