//! Checks that are pure functions of bytes: signatures, hashes, gates, decisions, outcomes. They are
//! counted and, where several silos share a process, cached for all of them.

mod cache;
#[cfg(test)]
mod tests;
mod transcripts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use methods::Params;
use methods::params::{LargestAbs, Reading};
use protocol::envelope::{self, Known, Opened};
use protocol::identity::{SignatureClaim, SimulatedKeys, Strict, Verifier};
use protocol::{Epoch, Frame, Hash};

pub(crate) use cache::Shared;
use cache::{BytesCache, HashCache, ResultCache, SignatureCache};
pub(crate) use transcripts::HeldTranscripts;

use crate::outcome::Settled;

/// Number of final rounds before the newest for which results are cached.
const BACK: u64 = 1;

/// Checks signatures, hashes blobs, and keeps the results of gates, checks and settlements.
///
/// With the cache, a result is computed once for all silos of the process, also when several of
/// them ask at the same time. Without it every silo computes everything, as on separate machines.
/// The results are the same, except that a neighbour that floods a silo is charged less for messages that
/// others have opened.
#[derive(Default)]
pub struct Checks {
    cached: bool,
    /// The keys of a simulation whose signatures are keyed hashes.
    simulated: Option<SimulatedKeys>,
    valid: SignatureCache,
    hashes: BytesCache<Hash>,
    largest: HashCache<LargestAbs>,
    frames: BytesCache<Arc<Opened>>,
    gates: ResultCache<Params>,
    checked: ResultCache<()>,
    settled: ResultCache<Arc<Settled>>,
    transcripts: Arc<HeldTranscripts>,
    round: AtomicU64,
    signatures: AtomicU64,
    hashed: AtomicU64,
    checks: AtomicU64,
    settles: AtomicU64,
}

/// Work done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// True if results were cached for all silos; then the numbers count distinct work.
    pub cache: bool,
    /// True if members signed by keyed hashes, which were checked every time and are not counted.
    pub simulated_signatures: bool,
    /// Signatures checked.
    pub signatures: u64,
    /// Bytes of blobs hashed.
    pub bytes_hashed: u64,
    /// Decisions checked.
    pub checks: u64,
    /// Outcomes computed.
    pub settles: u64,
}

impl Checks {
    /// With or without the cache.
    pub fn new(cached: bool) -> Arc<Self> {
        Arc::new(Self {
            cached,
            ..Self::default()
        })
    }

    /// With the cache, for a simulation whose members sign by keyed hashes with these keys.
    pub fn simulated(keys: SimulatedKeys) -> Arc<Self> {
        Arc::new(Self {
            cached: true,
            simulated: Some(keys),
            ..Self::default()
        })
    }

    /// Work done so far.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            cache: self.cached,
            simulated_signatures: self.simulated.is_some(),
            signatures: read(&self.signatures),
            bytes_hashed: read(&self.hashed),
            checks: read(&self.checks),
            settles: read(&self.settles),
        }
    }

    /// Caches the signature of a message that a silo of this process has just signed.
    pub(crate) fn signed(&self, epoch: &Epoch, frame: &Frame) {
        if !self.cached || self.simulated.is_some() {
            return;
        }
        if let Some((member, message, signature)) = frame.claimed()
            && let Some(signer) = epoch.roster.key(member)
        {
            let claim = SignatureClaim {
                key: signer,
                message: &message,
                signature,
            };
            self.valid.insert(key(&claim), true);
        }
    }

    /// The contents of a frame, opened once for all silos of the process, as by a silo that knows no
    /// certificates yet. None without the cache, and for frames that do not open.
    pub(crate) fn opened(&self, epoch: &Epoch, frame: &Frame) -> Option<Arc<Opened>> {
        if !self.cached {
            return None;
        }
        if let Some(opened) = self.frames.get(frame.bytes()) {
            return Some(opened);
        }
        let opened = Arc::new(envelope::open(epoch, self, &Known::default(), frame).ok()?);
        let round = self.round.load(Ordering::Relaxed);
        self.frames.insert(frame.bytes(), opened.clone(), round);
        Some(opened)
    }

    /// The hash of a blob.
    pub fn hash(&self, blob: &Bytes) -> Hash {
        if let Some(hash) = self.cached.then(|| self.hashes.get(blob)).flatten() {
            return hash;
        }
        let read = Reading::of(blob);
        let hash = Hash(read.hash);
        if let Some(largest) = read.largest {
            let round = self.round.load(Ordering::Relaxed);
            self.largest.insert(hash, largest, round);
        }
        self.insert_hash(blob, hash);
        hash
    }

    /// The largest absolute value of the document with that hash, if [`hash`](Self::hash) has read it. That
    /// is so for what silos fetch in a simulation, and also without the cache: then each of them has read
    /// it. A node does not know it; its mesh verifies blobs piece by piece.
    pub(crate) fn largest(&self, document: &Hash) -> Option<LargestAbs> {
        self.largest.known(document)
    }

    /// The hashes of blobs, if all of them are cached.
    pub fn hashes(&self, blobs: &[Bytes]) -> Option<Vec<Hash>> {
        self.cached.then(|| self.hashes.all(blobs)).flatten()
    }

    /// Caches a hash that was computed elsewhere. Called on the silos' own thread.
    pub(crate) fn insert_hash(&self, blob: &Bytes, hash: Hash) {
        let round = self.round.load(Ordering::Relaxed);
        if !self.cached || self.hashes.insert(blob, hash, round) {
            self.hashed.fetch_add(blob.len() as u64, Ordering::Relaxed);
        }
    }

    /// The result of passing a model through a gate. Asked for on the silos' own thread and computed
    /// in a job, so that the contents of the cache do not depend on the threads.
    pub(crate) fn gate(&self, key: Hash, round: u64) -> Shared<Params> {
        self.result(&self.gates, key, round)
    }

    /// The result of checking a decision, computed in a job like [`gate`](Self::gate).
    pub(crate) fn check(&self, key: Hash, round: u64) -> Shared<()> {
        self.result(&self.checked, key, round)
    }

    /// The outcome of a round, computed in a job like [`gate`](Self::gate).
    pub(crate) fn settle(&self, key: Hash, round: u64) -> Shared<Arc<Settled>> {
        self.result(&self.settled, key, round)
    }

    /// Transcripts that hold: those of all silos with the cache, those of `own` without.
    pub(crate) fn transcripts(&self, own: &Arc<HeldTranscripts>) -> Arc<HeldTranscripts> {
        Arc::clone(if self.cached { &self.transcripts } else { own })
    }

    /// Counts a checked decision.
    pub(crate) fn count_check(&self) {
        self.checks.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a computed outcome.
    pub(crate) fn count_settle(&self) {
        self.settles.fetch_add(1, Ordering::Relaxed);
    }

    /// A silo adopted a round: removes older results.
    pub(crate) fn advance(&self, round: u64) {
        if self.round.fetch_max(round, Ordering::Relaxed) < round {
            let oldest = round.saturating_sub(BACK);
            self.hashes.remove_before(oldest);
            self.largest.remove_before(oldest);
            self.frames.remove_before(oldest);
            self.gates.remove_before(oldest);
            self.checked.remove_before(oldest);
            self.settled.remove_before(oldest);
        }
    }

    fn result<T>(&self, cache: &ResultCache<T>, key: Hash, round: u64) -> Shared<T> {
        if self.cached {
            cache.get(key, round)
        } else {
            Shared::default()
        }
    }

    fn count_signatures(&self, signatures: usize) {
        self.signatures
            .fetch_add(signatures as u64, Ordering::Relaxed);
    }
}

/// Only valid signatures are cached, so that invalid ones cannot fill the memory.
impl Verifier for Checks {
    fn verify(&self, claim: &SignatureClaim<'_>) -> bool {
        if let Some(keys) = &self.simulated {
            return keys.verify(claim);
        }
        if !self.cached {
            self.count_signatures(1);
            return Strict.verify(claim);
        }
        let key = key(claim);
        if self.valid.is_valid(&key, true) {
            return true;
        }
        let holds = Strict.verify(claim);
        if !holds || self.valid.insert(key, true) {
            self.count_signatures(1);
        }
        holds
    }

    fn verify_all(&self, claims: &[SignatureClaim<'_>]) -> bool {
        if let Some(keys) = &self.simulated {
            return keys.verify_all(claims);
        }
        if !self.cached {
            self.count_signatures(claims.len());
            return Strict.verify_all(claims);
        }
        let (keys, unknown): (Vec<_>, Vec<_>) = claims
            .iter()
            .map(|claim| (key(claim), *claim))
            .filter(|(key, _)| !self.valid.is_valid(key, false))
            .unzip();
        let holds = Strict.verify_all(&unknown);
        let counted = keys
            .into_iter()
            .filter(|key| !holds || self.valid.insert(*key, false));
        self.count_signatures(counted.count());
        holds
    }
}

fn key(claim: &SignatureClaim<'_>) -> Hash {
    let (signer, signature) = (claim.key.public().0, claim.signature.to_bytes());
    Hash::labelled("signature", &[&signer, &signature, claim.message])
}
