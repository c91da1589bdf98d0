//! A cache of signatures: those that were made in the simulation need not be verified.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use protocol::envelope::{self, OVERHEAD};
use protocol::identity::{PublicKey, SignatureClaim, SimulatedKeys, Strict, Verifier};
use protocol::message::Message;
use protocol::parameters::Epoch;
use protocol::{MemberIndex, SecretKey};

/// Length of a frame before its signature.
const HEADER: usize = OVERHEAD - 64;

/// A verifier that knows every signature made in the simulation, with its key and statement. It
/// verifies any other signature, strictly or by the simulated keys, and caches the result.
#[derive(Debug, Default)]
pub(crate) struct KnownSignatures {
    made: Mutex<BTreeMap<[u8; 64], KnownSignature>>,
    /// The keys whose signatures are keyed hashes.
    simulated: Mutex<SimulatedKeys>,
}

/// What is known of a signature.
#[derive(Debug)]
enum KnownSignature {
    /// Made with that key over this frame, except the signature in it.
    Frame(PublicKey, Bytes),
    /// Verified with that key over this statement, with the result.
    Checked(PublicKey, Vec<u8>, bool),
}

impl KnownSignature {
    /// Returns whether the claim is valid, if that is known.
    fn answer(&self, claim: &SignatureClaim<'_>) -> Option<bool> {
        match self {
            Self::Frame(key, frame) => {
                let same = *key == claim.key.public()
                    && claim.message.get(..HEADER) == frame.get(..HEADER)
                    && claim.message.get(HEADER..) == frame.get(OVERHEAD..);
                same.then_some(true)
            }
            Self::Checked(key, statement, holds) => {
                (*key == claim.key.public() && claim.message == statement).then_some(*holds)
            }
        }
    }
}

impl KnownSignatures {
    /// A key like this one whose signatures are keyed hashes, which this verifier checks.
    pub(crate) fn simulate(&self, key: SecretKey) -> SecretKey {
        let key = key.simulated();
        let mut simulated = self
            .simulated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        simulated.extend([key.clone()]);
        key
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<[u8; 64], KnownSignature>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, claim: &SignatureClaim<'_>) -> bool {
        let simulated = self
            .simulated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if simulated.holds(&claim.key.public()) {
            simulated.verify(claim)
        } else {
            Strict.verify(claim)
        }
    }

    /// Records that a member sealed this frame itself.
    pub(crate) fn sealed(&self, epoch: &Epoch, by: MemberIndex, frame: &Bytes) {
        let signature = frame
            .get(HEADER..)
            .and_then(|rest| rest.first_chunk::<64>());
        let silo = epoch.roster.silos().get(by.at());
        if let (Some(silo), Some(signature), Some((sender, ..))) =
            (silo, signature, envelope::claimed(frame))
            && sender == by
        {
            self.note(*signature, KnownSignature::Frame(silo.key, frame.clone()));
        }
    }

    /// Records that a member signed this message.
    pub(crate) fn signed(&self, epoch: &Epoch, message: &Message) {
        let signature = message.signature.to_bytes();
        if !self.made().contains_key(&signature) {
            self.sealed(epoch, message.sender, &envelope::reseal(epoch, message));
        }
    }

    fn note(&self, signature: [u8; 64], entry: KnownSignature) {
        self.made().insert(signature, entry);
    }
}

impl Verifier for KnownSignatures {
    fn verify(&self, claim: &SignatureClaim<'_>) -> bool {
        let bytes = claim.signature.to_bytes();
        let mut known = self.made();
        if let Some(holds) = known.get(&bytes).and_then(|entry| entry.answer(claim)) {
            return holds;
        }
        let holds = self.check(claim);
        let entry = KnownSignature::Checked(claim.key.public(), claim.message.to_vec(), holds);
        // An invalid claim does not replace a valid one.
        if holds || !known.contains_key(&bytes) {
            known.insert(bytes, entry);
        }
        holds
    }

    fn verify_all(&self, claims: &[SignatureClaim<'_>]) -> bool {
        claims.iter().all(|claim| self.verify(claim))
    }
}
