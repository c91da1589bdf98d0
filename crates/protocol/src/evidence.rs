//! Two signed messages that no honest member signs both.

use serde::{Deserialize, Serialize};

use crate::charter::Epoch;
use crate::envelope;
use crate::identity::{Claim, Signature, Verifier};
use crate::message::{Body, Message};
use crate::roster::MemberIndex;

/// A signed message, kept as proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signed {
    /// Its round.
    pub round: u64,
    /// Its view.
    pub view: u64,
    /// What it says.
    pub body: Body,
    /// The signature.
    pub signature: Signature,
}

/// Proof that a member broke the rules. Exactly: two proposals of one view; two Notarize, or two
/// Finalize, of one view for different blocks; Nullify and Finalize of one view; two different
/// contributions of one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Who.
    pub member: MemberIndex,
    /// One of the messages.
    pub first: Signed,
    /// The other.
    pub second: Signed,
}

/// Why evidence shows no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// The two messages may stand beside each other.
    #[error("evidence against {0}: its two messages do not conflict")]
    NoConflict(MemberIndex),
    /// A signature does not hold, or the member is nobody.
    #[error("evidence against {0}: a message was not signed by that member")]
    Signature(MemberIndex),
}

impl Evidence {
    /// The evidence that two messages of one member are, if they conflict.
    pub fn of(first: &Message, second: &Message) -> Option<Self> {
        let signed = |message: &Message| Signed {
            round: message.round,
            view: message.view,
            body: message.body.clone(),
            signature: message.signature,
        };
        let (one, other) = (signed(first), signed(second));
        (first.sender == second.sender && conflict(&one, &other)).then_some(Self {
            member: first.sender,
            first: one,
            second: other,
        })
    }

    /// What the member did, in words.
    pub fn charge(&self) -> String {
        let (round, view) = (self.first.round, self.first.view);
        match (&self.first.body, &self.second.body) {
            (Body::Contribution(_), _) => format!("two different contributions in round {round}"),
            (Body::Proposal(_), _) => format!("two proposals in view {view}"),
            (Body::Notarize { .. }, _) => format!("two Notarize votes in view {view}"),
            (Body::Finalize { .. }, Body::Finalize { .. }) => {
                format!("two Finalize votes in view {view}")
            }
            _ => format!("Nullify and Finalize in view {view}"),
        }
    }

    /// Whether it proves a fault.
    ///
    /// # Errors
    /// [`EvidenceError`]: no conflict, or not signed by the member.
    pub fn verify(&self, epoch: &Epoch, verifier: &dyn Verifier) -> Result<(), EvidenceError> {
        if !conflict(&self.first, &self.second) {
            return Err(EvidenceError::NoConflict(self.member));
        }
        let held = |signed: &Signed| {
            let message =
                envelope::statement(epoch, signed.round, signed.view, self.member, &signed.body);
            let key = epoch.roster.key(self.member);
            key.is_some_and(|key| {
                verifier.verify(&Claim {
                    key,
                    message: &message,
                    signature: signed.signature,
                })
            })
        };
        if held(&self.first) && held(&self.second) {
            Ok(())
        } else {
            Err(EvidenceError::Signature(self.member))
        }
    }
}

/// Whether no honest member signs both.
fn conflict(one: &Signed, other: &Signed) -> bool {
    let fits = |signed: &Signed| signed.body.kind().belongs().fits(signed.round, signed.view);
    let same = (one.round, one.view) == (other.round, other.view) && fits(one) && fits(other);
    same && match (&one.body, &other.body) {
        (Body::Contribution(a), Body::Contribution(b)) => !a.same(b),
        (Body::Proposal(a), Body::Proposal(b)) => a.block.hash() != b.block.hash(),
        (Body::Notarize { block: a, .. }, Body::Notarize { block: b, .. })
        | (Body::Finalize { block: a }, Body::Finalize { block: b }) => a != b,
        (Body::Nullify, Body::Finalize { .. }) | (Body::Finalize { .. }, Body::Nullify) => true,
        _ => false,
    }
}
