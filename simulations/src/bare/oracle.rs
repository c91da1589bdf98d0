//! Signatures that the world saw being made need no arithmetic to be checked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use protocol::charter::Epoch;
use protocol::envelope::OVERHEAD;
use protocol::identity::{Claim, PublicKey, Strict, Verifier};
use protocol::message::Message;
use protocol::{Hash, MemberIndex, envelope};

/// Knows every signature that was made in this world, and by whom over what; checks any other one
/// strictly, and remembers those that hold.
#[derive(Debug, Default)]
pub(super) struct Oracle(Mutex<BTreeMap<[u8; 64], Hash>>);

fn digest(key: &PublicKey, statement: &[u8]) -> Hash {
    Hash::labelled("claim", &[&key.0, statement])
}

impl Oracle {
    /// A member sealed this frame itself.
    pub(super) fn sealed(&self, epoch: &Epoch, by: MemberIndex, frame: &[u8]) {
        let Some((head, rest)) = frame.split_at_checked(OVERHEAD - 64) else {
            return;
        };
        let Some((signature, body)) = rest.split_first_chunk::<64>() else {
            return;
        };
        self.note(epoch, by, &[head, body].concat(), *signature);
    }

    /// A member signed this message.
    pub(super) fn signed(&self, epoch: &Epoch, message: &Message) {
        let Message {
            round,
            view,
            sender,
            body,
            signature,
        } = message;
        let statement = envelope::statement(epoch, *round, *view, *sender, body);
        self.note(epoch, *sender, &statement, signature.to_bytes());
    }

    fn note(&self, epoch: &Epoch, by: MemberIndex, statement: &[u8], signature: [u8; 64]) {
        if let Some(silo) = epoch.roster.silos().get(by.at()) {
            let digest = digest(&silo.key, statement);
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(signature, digest);
        }
    }
}

impl Verifier for Oracle {
    fn verify(&self, claim: &Claim<'_>) -> bool {
        let (bytes, digest) = (
            claim.signature.to_bytes(),
            digest(&claim.key.public(), claim.message),
        );
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&bytes) == Some(&digest) {
            return true;
        }
        let holds = Strict.verify(claim);
        if holds {
            known.insert(bytes, digest);
        }
        holds
    }

    fn verify_all(&self, claims: &[Claim<'_>]) -> bool {
        claims.iter().all(|claim| self.verify(claim))
    }
}
