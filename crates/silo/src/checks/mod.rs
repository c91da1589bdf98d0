//! Work that is a pure function of bytes: counted and, where several silos share a process,
//! remembered for all of them.

mod memo;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use methods::Params;
use protocol::envelope::{self, Known, Opened};
use protocol::identity::{Claim, Strict, Verifier};
use protocol::{Epoch, Hash};

pub(crate) use memo::Once;
use memo::{Held, Lying, Memo};

use crate::outcome::Settled;

/// Final rounds back that results are remembered for.
const BACK: u64 = 1;
/// Frames of that many bytes go to many silos; smaller ones are opened as fast as looked up.
const SHARED: usize = 1 << 10;

/// Checks signatures, hashes blobs, and keeps the results of gates, checks and settlements.
///
/// With the memo, a result is computed once for all silos of the process, also when several of
/// them ask at the same time. Without it everything is done every time, as on separate machines.
/// The answers are the same.
#[derive(Default)]
pub struct Checks {
    memo: bool,
    held: Held,
    lying: Lying<Hash>,
    frames: Lying<Arc<Opened>>,
    gates: Memo<Params>,
    checked: Memo<()>,
    settled: Memo<Arc<Settled>>,
    round: AtomicU64,
    signatures: AtomicU64,
    hashed: AtomicU64,
    checks: AtomicU64,
    settles: AtomicU64,
}

/// What was really done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// Whether results were shared between silos; then the numbers count distinct work.
    pub memo: bool,
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
    /// With or without the memo.
    pub fn new(memo: bool) -> Arc<Self> {
        Arc::new(Self {
            memo,
            ..Self::default()
        })
    }

    /// What was really done so far.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            memo: self.memo,
            signatures: read(&self.signatures),
            bytes_hashed: read(&self.hashed),
            checks: read(&self.checks),
            settles: read(&self.settles),
        }
    }

    /// Takes note of a message that a silo of this process has just signed: with the memo nobody
    /// here needs to check that signature, whose key was at hand when it was made.
    pub(crate) fn made(&self, epoch: &Epoch, frame: &[u8]) {
        if !self.memo {
            return;
        }
        if let Some((member, message, signature)) = envelope::claimed(frame)
            && let Some(signer) = epoch.roster.key(member)
        {
            let claim = Claim {
                key: signer,
                message: &message,
                signature,
            };
            self.held.insert(key(&claim), true);
        }
    }

    /// What a frame holds, where silos of this process share that: opened once as by a silo that
    /// knows nothing yet. None without the memo, and for what such a silo would refuse.
    pub(crate) fn shared(&self, epoch: &Epoch, frame: &Bytes) -> Option<Arc<Opened>> {
        if !self.memo || frame.len() < SHARED {
            return None;
        }
        if let Some(opened) = self.frames.get(frame) {
            return Some(opened);
        }
        let opened = Arc::new(envelope::open(epoch, self, &Known::default(), frame).ok()?);
        let round = self.round.load(Ordering::Relaxed);
        self.frames.insert(frame, opened.clone(), round);
        Some(opened)
    }

    /// The hash of a blob.
    pub fn hash(&self, blob: &Bytes) -> Hash {
        if let Some(hash) = self.memo.then(|| self.lying.get(blob)).flatten() {
            return hash;
        }
        let hash = Hash::of(blob);
        self.remember(blob, hash);
        hash
    }

    /// The hashes of blobs, if all of them are remembered.
    pub fn hashes(&self, blobs: &[Bytes]) -> Option<Vec<Hash>> {
        self.memo.then(|| self.lying.all(blobs)).flatten()
    }

    /// Takes note of a hash that was computed elsewhere. Called on the silos' own thread.
    pub(crate) fn remember(&self, blob: &Bytes, hash: Hash) {
        let round = self.round.load(Ordering::Relaxed);
        if !self.memo || self.lying.insert(blob, hash, round) {
            self.hashed.fetch_add(blob.len() as u64, Ordering::Relaxed);
        }
    }

    /// Where the result of passing a model through a gate is, or will be. Asked for on the silos'
    /// own thread and filled in a job, so that what is remembered does not depend on the threads.
    pub(crate) fn gate(&self, key: Hash, round: u64) -> Once<Params> {
        self.place(&self.gates, key, round)
    }

    /// Likewise for a checked decision.
    pub(crate) fn check(&self, key: Hash, round: u64) -> Once<()> {
        self.place(&self.checked, key, round)
    }

    /// Likewise for a computed outcome.
    pub(crate) fn settle(&self, key: Hash, round: u64) -> Once<Arc<Settled>> {
        self.place(&self.settled, key, round)
    }

    /// A decision is being checked.
    pub(crate) fn count_check(&self) {
        self.checks.fetch_add(1, Ordering::Relaxed);
    }

    /// An outcome is being computed.
    pub(crate) fn count_settle(&self) {
        self.settles.fetch_add(1, Ordering::Relaxed);
    }

    /// A silo adopted a round: what is older is forgotten.
    pub(crate) fn advance(&self, round: u64) {
        if self.round.fetch_max(round, Ordering::Relaxed) < round {
            let oldest = round.saturating_sub(BACK);
            self.lying.forget(oldest);
            self.frames.forget(oldest);
            self.gates.forget(oldest);
            self.checked.forget(oldest);
            self.settled.forget(oldest);
        }
    }

    fn place<T>(&self, memo: &Memo<T>, key: Hash, round: u64) -> Once<T> {
        if self.memo {
            memo.place(key, round)
        } else {
            Once::default()
        }
    }

    fn count_signatures(&self, signatures: usize) {
        self.signatures
            .fetch_add(signatures as u64, Ordering::Relaxed);
    }
}

/// Only signatures that hold are remembered: nobody can fill the memory with others.
impl Verifier for Checks {
    fn verify(&self, claim: &Claim<'_>) -> bool {
        if !self.memo {
            self.count_signatures(1);
            return Strict.verify(claim);
        }
        let key = key(claim);
        if self.held.holds(&key, true) {
            return true;
        }
        let holds = Strict.verify(claim);
        if !holds || self.held.insert(key, true) {
            self.count_signatures(1);
        }
        holds
    }

    fn verify_all(&self, claims: &[Claim<'_>]) -> bool {
        if !self.memo {
            self.count_signatures(claims.len());
            return Strict.verify_all(claims);
        }
        let (keys, unknown): (Vec<_>, Vec<_>) = claims
            .iter()
            .map(|claim| (key(claim), *claim))
            .filter(|(key, _)| !self.held.holds(key, false))
            .unzip();
        let holds = Strict.verify_all(&unknown);
        let counted = keys
            .into_iter()
            .filter(|key| !holds || self.held.insert(*key, false));
        self.count_signatures(counted.count());
        holds
    }
}

fn key(claim: &Claim<'_>) -> Hash {
    let (signer, signature) = (claim.key.public().0, claim.signature.to_bytes());
    Hash::labelled("signature", &[&signer, &signature, claim.message])
}
