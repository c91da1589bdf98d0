//! Signatures that the world saw being made need no arithmetic to be checked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use protocol::MemberIndex;
use protocol::charter::Epoch;
use protocol::envelope::{self, OVERHEAD};
use protocol::identity::{Claim, PublicKey, Strict, Verifier};
use protocol::message::Message;

/// Length of what is signed of a frame before the body.
const HEADER: usize = OVERHEAD - 64;

/// Knows every signature that was made in this world, and by whom over what; checks any other one
/// strictly, and remembers the answer.
#[derive(Debug, Default)]
pub(super) struct Oracle(Mutex<BTreeMap<[u8; 64], Made>>);

/// What a signature is known to be.
#[derive(Debug)]
enum Made {
    /// By that key over this frame, without the signature in it.
    Frame(PublicKey, Bytes),
    /// Looked at: by that key over this statement it holds, or not.
    Checked(PublicKey, Vec<u8>, bool),
}

impl Made {
    /// Whether the claim holds, if that is known.
    fn says(&self, claim: &Claim<'_>) -> Option<bool> {
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

impl Oracle {
    /// A member sealed this frame itself.
    pub(super) fn sealed(&self, epoch: &Epoch, by: MemberIndex, frame: &Bytes) {
        let signature = frame
            .get(HEADER..)
            .and_then(|rest| rest.first_chunk::<64>());
        let silo = epoch.roster.silos().get(by.at());
        if let (Some(silo), Some(signature), Some((sender, ..))) =
            (silo, signature, envelope::claimed(frame))
            && sender == by
        {
            self.note(*signature, Made::Frame(silo.key, frame.clone()));
        }
    }

    /// A member signed this message.
    pub(super) fn signed(&self, epoch: &Epoch, message: &Message) {
        let signature = message.signature.to_bytes();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = !known.contains_key(&signature);
        drop(known);
        if unknown {
            self.sealed(epoch, message.sender, &envelope::reseal(epoch, message));
        }
    }

    fn note(&self, signature: [u8; 64], made: Made) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(signature, made);
    }
}

impl Verifier for Oracle {
    fn verify(&self, claim: &Claim<'_>) -> bool {
        let bytes = claim.signature.to_bytes();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holds) = known.get(&bytes).and_then(|made| made.says(claim)) {
            return holds;
        }
        let holds = Strict.verify(claim);
        let made = Made::Checked(claim.key.public(), claim.message.to_vec(), holds);
        // What holds is not forgotten for what does not.
        if holds || !known.contains_key(&bytes) {
            known.insert(bytes, made);
        }
        holds
    }

    fn verify_all(&self, claims: &[Claim<'_>]) -> bool {
        claims.iter().all(|claim| self.verify(claim))
    }
}
